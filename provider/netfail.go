package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"understudy/llm"
)

// TransportOf turns a Go error of the network into the kind that classification knows. It looks at
// types first; at text only where the standard library exports no type.
func TransportOf(err error) llm.Transport {
	if err == nil {
		return llm.TransportNone
	}
	if t := socketFailure(err); t != llm.TransportNone {
		return t
	}
	switch {
	case isTLS(err):
		return llm.TransportTLS
	case isDial(err):
		return llm.TransportDial
	case isHTTP2(err):
		return llm.TransportGoAway
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, io.ErrClosedPipe), errors.Is(err, fs.ErrClosed):
		return llm.TransportEOF
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return llm.TransportDeadline
	}
	return llm.TransportOther
}

// socketFailure recognises what the operating system and the resolver report.
func socketFailure(err error) llm.Transport {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return llm.TransportDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return llm.TransportRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return llm.TransportDial
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return llm.TransportReset
	}
	return llm.TransportNone
}

func isTLS(err error) bool {
	var (
		record  tls.RecordHeaderError
		alert   tls.AlertError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) ||
		errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) ||
		strings.Contains(err.Error(), "TLS handshake timeout") // net/http keeps this type to itself
}

func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// isHTTP2 recognises stream and connection errors of net/http's own HTTP/2, whose types are not
// exported.
func isHTTP2(err error) bool {
	text := err.Error()
	return strings.Contains(text, "http2: server sent GOAWAY") || strings.Contains(text, "stream error: stream ID") ||
		strings.Contains(text, "http2: client connection lost")
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
