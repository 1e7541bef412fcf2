package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// RPCRoute is where the control socket answers JSON-RPC.
const RPCRoute = "/v1/rpc"

// CallRPC calls a method of the running bot and decodes its result into out, which may be nil. What the
// bot refuses is an *RPCError. events, which may be nil, is given what a slow method tells while it
// works. Ending ctx ends the call, and what it began (docs/rpc.md).
func (c *ControlClient) CallRPC(ctx context.Context, method string, params, out any, events func(event json.RawMessage)) error {
	call := map[string]any{"jsonrpc": "2.0", "id": 1, "method": method}
	if params != nil {
		call["params"] = params
	}
	body, err := json.Marshal(call)
	if err != nil {
		return fmt.Errorf("control request %s: %w", method, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL(RPCRoute), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("control request %s: %w", method, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if events != nil {
		req.Header.Set("Accept", contentStream)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreached(method, err)
	}
	defer res.Body.Close()
	return readAnswer(json.NewDecoder(res.Body), method, out, events)
}

// readAnswer reads events until the response.
func readAnswer(dec *json.Decoder, method string, out any, events func(json.RawMessage)) error {
	for {
		var line struct {
			Params json.RawMessage `json:"params"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  *RPCError       `json:"error"`
		}
		err := dec.Decode(&line)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		switch {
		case err != nil:
			return fmt.Errorf("control answer %s: %w", method, err)
		case line.Method != "":
			if events != nil {
				events(line.Params)
			}
			continue
		case line.Error != nil:
			return line.Error
		case out == nil:
			return nil
		}
		if err := json.Unmarshal(line.Result, out); err != nil {
			return fmt.Errorf("control answer %s: %w", method, err)
		}
		return nil
	}
}
