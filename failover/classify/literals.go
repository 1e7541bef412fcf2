package classify

import (
	"bytes"
	"strings"

	"understudy/llm"
)

// endings are finish reasons that are failures, folded. Every other one is an ordinary end.
var endings = map[string]verdict{
	"error":                      ending(llm.ReasonTimeout, llm.DetailServerError),
	"errortoxic":                 ending(llm.ReasonRefusal, ""),
	"errorlimit":                 ending(llm.ReasonContextOverflow, ""),
	"modelcontextwindowexceeded": ending(llm.ReasonContextOverflow, ""),
	"contextwindowexceeded":      ending(llm.ReasonContextOverflow, ""),
	"abort":                      ending(llm.ReasonTimeout, llm.DetailNetwork),
	"networkerror":               ending(llm.ReasonTimeout, llm.DetailNetwork),
	"malformedresponse":          ending(llm.ReasonTimeout, llm.DetailNetwork),
	"malformedfunctioncall":      ending(llm.ReasonUnclassified, ""), // the model's slip, not the server's
	"unexpectedtoolcall":         ending(llm.ReasonUnclassified, ""),
	"malformedmodeloutput":       ending(llm.ReasonUnclassified, ""),
	"malformedtooluse":           ending(llm.ReasonUnclassified, ""),
	"insufficientsystemresource": ending(llm.ReasonOverloaded, ""),
	"contentfilter":              ending(llm.ReasonRefusal, ""),
	"contentfiltered":            ending(llm.ReasonRefusal, ""),
	"guardrailintervened":        ending(llm.ReasonRefusal, ""),
	"sensitive":                  ending(llm.ReasonRefusal, ""),
	"refusal":                    ending(llm.ReasonRefusal, ""),
	"safety":                     ending(llm.ReasonRefusal, ""),
	"recitation":                 ending(llm.ReasonRefusal, ""),
	"blocklist":                  ending(llm.ReasonRefusal, ""),
	"prohibitedcontent":          ending(llm.ReasonRefusal, ""),
	"spii":                       ending(llm.ReasonRefusal, ""),
	"imagesafety":                ending(llm.ReasonRefusal, ""),
	"imageprohibitedcontent":     ending(llm.ReasonRefusal, ""),
	"modelarmor":                 ending(llm.ReasonRefusal, ""),
	"jailbreak":                  ending(llm.ReasonRefusal, ""),
}

func ending(reason llm.Reason, detail llm.Detail) verdict {
	return verdict{reason: reason, detail: detail, rule: "finish"}
}

// sentences are whole messages with a meaning of their own (spec/failover.md §6), in lower case and
// without the full stop. As part of a longer text they mean nothing.
var sentences = map[string]verdict{
	"an unknown error occurred":                    {reason: llm.ReasonTimeout, detail: llm.DetailServerError, rule: "literal/unknown-error"},
	"unknown error (no error details in response)": {reason: llm.ReasonNoErrorDetails, rule: "literal/no-details"},
	"llm request failed with an unknown error":     {reason: llm.ReasonUnclassified, rule: "literal/own"},
}

// routerSentence counts at OpenRouter only.
const routerSentence = "provider returned error"

// finishPrefixes introduce a finish reason that an SDK turned into an error.
var finishPrefixes = [...]string{
	"provider finish_reason: ", "unhandled stop reason: ", "unhandled finish reason: ", "stop reason: ", "finish reason: ",
	"finish_reason: ", "stop_reason: ", "reason: ",
}

// refusals are the HTTP status texts with which a proxy declines a tunnel. Go reports nothing else of
// its answer: `Post "https://…": Forbidden`.
var refusals = map[string]bool{
	"proxy authentication required": true, "forbidden": true, "bad gateway": true, "service unavailable": true,
	"gateway timeout": true, "method not allowed": true, "internal server error": true, "bad request": true,
}

// tunnelRefused tells whether a Go error is a proxy's refusal.
func tunnelRefused(msg []byte) bool {
	rest, ok := bytes.CutPrefix(msg, []byte(`Post "http`))
	_, text, cut := bytes.Cut(rest, []byte(`": `))
	return ok && cut && refusals[strings.ToLower(string(text[:min(len(text), maxLiteral)]))]
}

// maxLiteral bounds the messages that are compared as a whole.
const maxLiteral = 120

// literal judges a message that is one of the known sentences, perhaps behind "provider: "; bare
// lets the router's sentence count.
func literal(msg []byte, bare bool) (verdict, bool) {
	if tunnelRefused(msg) {
		return vUnreached, true
	}
	if len(msg) == 0 || len(msg) > maxLiteral {
		return verdict{}, false
	}
	var buf [maxLiteral]byte
	n := 0
	for _, c := range msg {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[n] = c
		n++
	}
	text := bytes.TrimRight(buf[:n], ". \n")
	for {
		if v, ok := sentences[string(text)]; ok {
			return v, true
		}
		if bare && string(text) == routerSentence {
			return verdict{reason: llm.ReasonTimeout, detail: llm.DetailServerError, rule: "openrouter/bare"}, true
		}
		for _, p := range finishPrefixes {
			if len(text) > len(p) && string(text[:len(p)]) == p {
				v, known := endings[foldString(text[len(p):])]
				return v, known
			}
		}
		_, rest, ok := bytes.Cut(text, []byte(": "))
		if !ok {
			return verdict{}, false
		}
		text = rest
	}
}
