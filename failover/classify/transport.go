package classify

import (
	"strings"

	"understudy/llm"
)

// transportVerdict returns what a failure below HTTP means; ok is false where the text has to tell.
func transportVerdict(t llm.Transport) (v verdict, notSent, ok bool) {
	network := func(rule string) verdict {
		return verdict{reason: llm.ReasonTimeout, detail: llm.DetailNetwork, rule: rule}
	}
	deadline := func(rule string) verdict {
		return verdict{reason: llm.ReasonTimeout, detail: llm.DetailDeadline, rule: rule}
	}
	switch t {
	case llm.TransportCancelled:
		return verdict{reason: llm.ReasonAborted, rule: "transport/cancelled"}, false, true
	case llm.TransportRefused:
		return network("transport/refused"), true, true
	case llm.TransportDNS:
		return network("transport/dns"), true, true
	case llm.TransportTLS:
		return network("transport/tls"), true, true
	case llm.TransportDial:
		return network("transport/dial"), true, true
	case llm.TransportReset:
		return network("transport/reset"), false, true
	case llm.TransportEOF:
		return network("transport/eof"), false, true
	case llm.TransportGoAway:
		return network("transport/goaway"), false, true
	case llm.TransportIdle:
		return deadline("transport/idle"), false, true
	case llm.TransportFirstContent:
		return deadline("transport/first-content"), false, true
	case llm.TransportDeadline:
		return deadline("transport/deadline"), false, true
	}
	return verdict{}, false, false
}

// TransportOf maps what errors.Is and errors.As found in a Go error, by the names that
// `bot classify` reads as error_type (spec/tools.md), to a Transport. The message settles the
// general ones: a net.Error may be a failed look-up or a failed handshake.
func TransportOf(errorType, message string) llm.Transport {
	switch errorType {
	case "":
		return llm.TransportNone
	case "context.Canceled", "context.Cause":
		return llm.TransportCancelled
	case "context.DeadlineExceeded", "os.ErrDeadlineExceeded":
		return llm.TransportDeadline
	case "io.EOF", "io.ErrUnexpectedEOF":
		return llm.TransportEOF
	case "ECONNREFUSED":
		return llm.TransportRefused
	case "ECONNRESET", "EPIPE", "ECONNABORTED", "net.ErrClosed":
		return llm.TransportReset
	case "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN":
		return llm.TransportDial
	}
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(message, p) {
				return true
			}
		}
		return false
	}
	low := strings.ToLower(errorType)
	switch {
	case strings.Contains(low, "dns"), has("dial tcp: lookup", "no such host"):
		return llm.TransportDNS
	case strings.Contains(low, "goaway"), strings.Contains(low, "http2"):
		return llm.TransportGoAway
	case strings.Contains(low, "x509"), has("TLS handshake timeout", "x509: ", "tls: failed to verify", "tls: handshake"):
		return llm.TransportTLS
	case strings.Contains(low, "tls"):
		return llm.TransportTLS
	case has("connection refused"):
		return llm.TransportRefused
	case has("dial tcp", "proxyconnect"):
		return llm.TransportDial
	case has("awaiting response headers", "awaiting headers", "Client.Timeout"):
		return llm.TransportDeadline
	case strings.HasPrefix(errorType, "net."), strings.Contains(errorType, "net.OpError"), errorType == "ETIMEDOUT":
		return llm.TransportReset
	}
	return llm.TransportOther
}
