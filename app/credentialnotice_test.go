package app_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/app"
	emullm "understudy/internal/emulate/llm"
)

// The owner hears of a credential that dies or is unpaid once, however often it fails and whatever is
// restarted, and again only after it had worked or somebody had put it back in use.
func TestTheOwnerHearsOnceOfADeadCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		models := emullm.New()
		t.Cleanup(models.Close)
		o.models = models.Transport()
		o.configure(o.telegramServer(`dmPolicy: allowlist, allowFrom: ["1001"]`) + "commands: {ownerAllowFrom: [\"telegram:1001\"]}\n")
		o.replaceModel("alpha/a1, fallbacks: [beta/b1]", `alpha: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key-for-alpha}, beta: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key-for-beta}`)
		o.person(aliceID, "Alice")
		o.open()
		seen := 0
		// told is what the owner was told of credentials while one message was answered.
		told := func(step string, want ...string) {
			t.Helper()
			o.tg.UserSays(aliceID, aliceID, step)
			o.settle()
			sent := o.tg.Sent(aliceID)
			var got []string
			for _, m := range sent[seen:] {
				if strings.Contains(m.Text, "alpha:env") {
					got = append(got, m.Text)
				}
			}
			seen = len(sent)
			if len(got) != len(want) {
				t.Fatalf("%s: told %q\n%s", step, got, o.logs)
			}
			for i, w := range want {
				if !strings.HasPrefix(got[i], w) {
					t.Errorf("%s: told %q, want %s", step, got[i], w)
				}
			}
		}
		broken := func(status int, body string) {
			models.Heal()
			models.Fault(emullm.Fault{Match: emullm.Match{Key: "key-for-alpha"}, Status: status, Body: body})
		}
		away := func(d time.Duration) {
			o.close()
			pass(d)
			o.open()
		}
		told("hello")
		broken(http.StatusPaymentRequired, apiError("insufficient_quota", "insufficient_quota", "Insufficient credits"))
		told("first", "💳 alpha:env does not answer for billing reasons")
		told("while it rests")
		away(6 * time.Hour)
		told("the next rest")
		away(11 * time.Hour)
		told("and the one after it")
		broken(http.StatusUnauthorized, apiError("invalid_request_error", "account_deactivated", "This API key has been revoked"))
		away(30 * time.Hour)
		told("another trouble", "🔑 alpha:env was revoked or is not allowed there any more; I leave it out until ")
		var out bytes.Buffer
		if app.AuthEnable(t.Context(), o.options(), app.Std{Out: &out, Err: &out}, "", "alpha") != app.ExitOK {
			t.Fatal(out.String())
		}
		told("put back by hand", "🔑 alpha:env was revoked")
		models.Heal()
		away(2 * time.Hour)
		told("it works")
		broken(http.StatusPaymentRequired, apiError("insufficient_quota", "insufficient_quota", "Insufficient credits"))
		told("broken again", "💳 alpha:env")
	})
}
