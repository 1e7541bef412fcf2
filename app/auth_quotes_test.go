package app_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
)

// A gateway quotes the request in its error: what a person wrote and the header with the key. Neither
// gets into the log or into anybody's chat.
func TestQuotedRequestsStayOut(t *testing.T) {
	const pin = "my pin is 4711"
	synctest.Test(t, func(t *testing.T) {
		w := drill.New(t, drill.Options{Config: alphaThenBeta})
		w.Models.Fault(emullm.Fault{Status: 500, Body: `{"error":{"message":"could not process '` + pin + `' with Authorization: Bearer ` + drill.AlphaKey + `","type":"x","code":"y"}}`})
		w.Start()
		say(t, w, pin, 1)
		say(t, w, "/why", 1)
		w.Stop()
		if strings.Contains(w.Log(), pin) {
			t.Error("the log quotes the person")
		}
		for _, m := range w.Telegram.Sent(alice) {
			if strings.Contains(m.Text, pin) {
				t.Errorf("the chat quotes the person: %s", m.Text)
			}
		}
		if !strings.Contains(w.Log(), "could not process") {
			t.Error("the log explains nothing")
		}
		shown.add(t.Name(), w.Outputs())
	})
}
