package app

import (
	"context"
	"strings"
	"testing"
)

// A bot that runs without configured models takes up the provider of a credential that is stored
// beside it.
func TestARunningBotTakesUpANewProvider(t *testing.T) {
	d := newDesk(t, "")
	d.env["OLLAMA_HOST"] = "127.0.0.1:1"
	add := func() (int, string) {
		return d.do("sk-new", func(ctx context.Context, o Options, std Std) int {
			return AuthAdd(ctx, o, std, NewCredential{Profile: "openai:new", Type: "api_key"})
		})
	}
	a, err := New(t.Context(), d.options())
	if err != nil {
		t.Fatal(err)
	}
	if got := a.cfg().Agent("").Models.Primary.Provider; got != "sim" {
		t.Errorf("it began with %s", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	if code, printed := add(); code != ExitOK || !strings.Contains(printed, "The running bot uses it from now on.") {
		t.Errorf("%d: %s", code, printed)
	}
	if got := a.cfg().Agent("").Models.Primary.Provider; got != "openai" {
		t.Errorf("it goes on with %s", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if code, printed := add(); code != ExitOK || !strings.Contains(printed, "The bot uses it when it starts.") {
		t.Errorf("%d: %s", code, printed)
	}
}
