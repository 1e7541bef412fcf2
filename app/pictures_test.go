package app_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/telegram"
)

// TestAPictureGoesToTheModelForPictures has a lead that takes none. A model that somebody chose is never
// replaced, not even for that.
func TestAPictureGoesToTheModelForPictures(t *testing.T) {
	var drawing bytes.Buffer
	if err := png.Encode(&drawing, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		models := emullm.New()
		t.Cleanup(models.Close)
		o.models = models.Transport()
		api := `{api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key-for-%s, models: [{id: %s, input: [text]}]}`
		text := "agents: {defaults: {model: {primary: alpha/a1}, imageModel: {primary: beta/b1}}}\n" +
			"models: {providers: {alpha: " + fmt.Sprintf(api, "alpha", "a1") + ", beta: {api: openai-chat, baseUrl: \"http://models.test/v1\", apiKey: key-for-beta}}}\n" +
			o.telegramServer(`dmPolicy: allowlist, allowFrom: ["1001"]`)
		if err := os.WriteFile(o.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o.person(aliceID, "Alice")
		o.open()
		shows := func() (asked []string) {
			before := len(models.Requests())
			o.tg.UserSays(aliceID, aliceID, "what is this?", telegram.WithFile("photo", "", "image/png", drawing.Bytes()))
			o.settle()
			for _, r := range models.Requests()[before:] {
				asked = append(asked, fmt.Sprint(r.Model, " ", strings.Contains(string(r.Body), "data:image/")))
			}
			return asked
		}
		if got := shows(); len(got) != 1 || got[0] != "b1 true" {
			t.Errorf("asked %q\n%s", got, o.logs)
		}
		o.tg.UserSays(aliceID, aliceID, "and in words?")
		o.settle()
		if r := models.Requests(); r[len(r)-1].Model != "a1" || strings.Contains(string(r[len(r)-1].Body), "data:image/") {
			t.Errorf("words go to %s", r[len(r)-1].Model)
		}
		o.asks(aliceID, aliceID, "/model default@env")
		if got := shows(); len(got) != 1 || got[0] != "b1 true" {
			t.Errorf("with a locked profile: asked %q", got)
		}
		o.configure("") // nothing but the offline models
		if err := os.WriteFile(o.file, []byte(strings.Replace(text, "primary: alpha/a1", "primary: beta/b1", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		o.settle()
		o.asks(aliceID, aliceID, "/model alpha/a1")
		if got := shows(); len(got) != 0 {
			t.Errorf("a chosen model is replaced: %q", got)
		}
		if got := tgTexts(o, aliceID); !strings.Contains(got[len(got)-1], "alpha/a1") {
			t.Errorf("said %q", got[len(got)-1])
		}
	})
}

// TestCommandsSeeAsMuchAsATurn: what a question aside is shown and what /context counts is bounded as a turn is.
func TestCommandsSeeAsMuchAsATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, models := modelOffice(t, betaModels, ", dmHistoryLimit: 2", "")
		for i := range 4 {
			o.asks(aliceID, aliceID, fmt.Sprint("message ", i))
		}
		if text := o.asks(aliceID, aliceID, "/context list"); !strings.Contains(text, "(4)") {
			t.Errorf("/context: %q", text)
		}
		for _, text := range []string{"/btw what was said?", "what was said?"} {
			o.asks(aliceID, aliceID, text)
			r := models.Requests()
			if body := string(r[len(r)-1].Body); strings.Contains(body, "message 1") || !strings.Contains(body, "message 2") || !strings.Contains(body, "message 3") {
				t.Errorf("%s: shown %s", text, body)
			}
		}
	})
}
