package app

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/inbound"
)

// TestAChannelThatStaysHoldsNobodyUp: stopping waits for a connection that does not end, but not for ever,
// and the log names it.
func TestAChannelThatStaysHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := &App{log: slog.New(slog.NewTextHandler(&log, nil))}
		left := make(chan struct{})
		close(left)
		a.roster.list = []*account{
			{key: inbound.Account{Channel: "slack"}, ended: left},
			{key: inbound.Account{Channel: "discord", Name: "ops"}, ended: make(chan struct{})},
			{key: inbound.Account{Channel: "telegram"}}, // never started
		}
		var inner sync.WaitGroup
		stays := make(chan struct{})
		inner.Go(func() { <-stays })
		began := time.Now()
		a.letGo(&inner)
		if waited := time.Since(began); waited != endLimit {
			t.Errorf("waited for %v", waited)
		}
		text := log.String()
		if !strings.Contains(text, "channel=discord account=ops") || strings.Contains(text, "slack") || strings.Contains(text, "telegram") {
			t.Errorf("the log says:\n%s", text)
		}
		close(stays)
	})
}
