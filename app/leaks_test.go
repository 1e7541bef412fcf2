package app_test

import (
	"fmt"
	"testing"

	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/telegram"
)

// TestQuotedSecrets lets every host quote the credential it was given, in every shape and place that
// hosts do, and Telegram its token. TestMain then looks for them in the log, the chats, the pages and
// the output of the command line.
func TestQuotedSecrets(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"announced":   `{"error":{"message":"Incorrect API key provided: %s. You can find your key at https://example.com.","type":"authentication_error","code":"invalid_api_key"}}`,
		"in passing":  `{"error":{"message":"user %s may not do that","type":"authentication_error","code":"denied"}}`,
		"as a code":   `{"error":{"message":"no","type":"authentication_error","code":"%s"}}`,
		"as a header": `{"error":{"message":"bad header: Authorization: Bearer %s","type":"authentication_error","code":"denied"}}`,
		"in an URL":   `{"error":{"message":"GET https://example.com/v1?key=%s&x=1 failed","type":"authentication_error","code":"denied"}}`,
		"in HTML":     `<html><body><pre>Authorization: Bearer %s</pre></body></html>`,
		"bare":        `%s`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := drill.New(t, drill.Options{
				Network: true,
				Config:  "agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1, gamma/g1, spare/s1]}}}\n",
			})
			for model, key := range map[string]string{"a1": drill.AlphaKey, "b1": drill.BetaKey, "g1": drill.GammaToken, "s1": drill.SpareKey} {
				w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: model, Key: key}, Status: 401, Body: fmt.Sprintf(body, key)})
			}
			w.Telegram.Inject(telegram.Fault{Method: "sendChatAction", Status: 400, Times: -1, Description: "Bad Request: bot" + w.Telegram.Token() + " is not allowed"})
			w.Telegram.Inject(telegram.Fault{Method: "sendMessage", Body: "<html>POST /bot" + w.Telegram.Token() + "/sendMessage: 502</html>", Status: 502})
			w.Start()
			say(t, w, "hi", 1)
			if n := len(w.Models.Requests()); n != 4 {
				t.Errorf("%d hosts were asked", n)
			}
			for _, text := range []string{"/why", "/status", "/failover", "/models"} {
				say(t, w, text, 1)
			}
			w.Stop()
			shown.add(t.Name(), w.Outputs())
		})
	}
}
