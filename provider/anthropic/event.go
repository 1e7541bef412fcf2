package anthropic

import (
	"encoding/json"
	"errors"
)

// event is one event of a stream, as far as it matters here. Unknown fields and types are ignored,
// because the API adds some without notice.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message message         `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   usage           `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// message is a whole answer, or the beginning of one.
type message struct {
	Content    []json.RawMessage `json:"content"`
	StopReason string            `json:"stop_reason"`
	Usage      usage             `json:"usage"`
}

// block is one piece of content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	To        struct {
		Model string `json:"model"`
	} `json:"to"`
}

// delta continues a block, or ends the message.
type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	PartialJSON string `json:"partial_json"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	StopReason  string `json:"stop_reason"`
}

// usage counts tokens; later events repeat the fields they know better.
type usage struct {
	Input      *int        `json:"input_tokens"`
	Output     *int        `json:"output_tokens"`
	CacheRead  *int        `json:"cache_read_input_tokens"`
	CacheWrite *int        `json:"cache_creation_input_tokens"`
	Iterations []iteration `json:"iterations"`
}

// iteration is one run of a model behind a single answer.
type iteration struct {
	Type  string `json:"type"`
	Model string `json:"model"`
}

// decode parses JSON of strangers into v. A field of an unexpected type is left out rather than
// spoiling the rest; only what is no JSON at all is an error.
func decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return nil
	}
	return err
}
