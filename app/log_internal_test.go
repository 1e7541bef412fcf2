package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestLogAttributesReadAlike: whatever room writes them.
func TestLogAttributesReadAlike(t *testing.T) {
	for _, tt := range []struct {
		hashed bool
		attrs  []any
		want   string
	}{
		{true, []any{"wait", 400 * time.Millisecond, "seconds", 2.5}, `"wait":0.4,"seconds":2.5`},
		{true, []any{"oldest", 26 * time.Hour}, `"oldest":93600`},
		{true, []any{"account", ""}, `"account":"default"`},
		{true, []any{"account", "work", "session", "", "turn", ""}, `"account":"work"`},
		{true, []any{"session", "agent:main:telegram:direct:7", "turn", "in-1"}, `"session":"6941f510bea2","turn":"in-1"`},
		{false, []any{"session", "agent:main:telegram:direct:7", "turn", ""}, `"session":"agent:main:telegram:direct:7"`},
	} {
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: logged(tt.hashed)})).Info("x", tt.attrs...)
		if !strings.HasSuffix(out.String(), `"msg":"x",`+tt.want+"}\n") {
			t.Errorf("%v is written as %s", tt.attrs, out.String())
		}
	}
}
