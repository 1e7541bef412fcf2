package app_test

import (
	"strings"
	"testing"
	"testing/synctest"

	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/telegram"
	"understudy/provider"
)

// Models of an office that speaks to emulated APIs.
const (
	alphaModels = `alpha: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key-for-alpha, models: [{id: a1, contextWindow: 100000}]}`
	betaModels  = `beta: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key-for-beta}`
)

// modelOffice is an office with Telegram, Ann and Ops, in which alpha/a1 answers; providers are further ones,
// keys stand in the block of Telegram, more behind it.
func modelOffice(t *testing.T, providers, keys, more string) (*office, *emullm.Server) {
	t.Helper()
	o := newOffice(t, "")
	models := emullm.New()
	t.Cleanup(models.Close)
	o.models = models.Transport()
	o.configure(o.telegramServer(`dmPolicy: allowlist, allowFrom: ["1001"]`+keys) + "commands: {ownerAllowFrom: [\"telegram:1001\"]}\n" + more)
	o.replaceModel("alpha/a1", alphaModels+", "+providers)
	o.person(aliceID, "Alice")
	o.person(bobID, "Bob")
	o.tg.AddChat(telegram.Chat{ID: opsGroup, Type: "supergroup", Title: "Ops"})
	o.open()
	return o, models
}

// TestModelsOfACredentialCanBeSelected has a key for a provider of which the configuration names no model.
func TestModelsOfACredentialCanBeSelected(t *testing.T) {
	first, _ := provider.NewCatalogue().DefaultModel("openai")
	synctest.Test(t, func(t *testing.T) {
		o, models := modelOffice(t, `openai: {baseUrl: "http://models.test/v1", apiKey: key-for-openai}`, "", "")
		list := strings.Split(o.asks(aliceID, aliceID, "/models"), "\n")
		if !strings.HasPrefix(list[0], "• alpha/a1 — selected, primary") || !strings.HasPrefix(list[1], "• openai/"+first) || !strings.HasPrefix(list[len(list)-1], "Page 1 of") {
			t.Errorf("%q", list)
		}
		if text := o.asks(aliceID, aliceID, "/models anthropic"); !strings.HasPrefix(text, "There is no model of") {
			t.Errorf("without a key: %q", text)
		}
		o.asks(aliceID, aliceID, "/model "+first)
		o.asks(aliceID, aliceID, "hello")
		if r := models.Requests(); r[len(r)-1].Model != first {
			t.Errorf("asked %s", r[len(r)-1].Model)
		}
		if list, _, _ := strings.Cut(o.asks(aliceID, aliceID, "/model"), "3. "); !strings.Contains(list, "2. openai/"+first+" — selected\n") {
			t.Errorf("%q", list)
		}
	})
}

// TestAModelOfAnUnlistedProviderIsChosenWithinATextToo: beta has a key and no model that is named.
func TestAModelOfAnUnlistedProviderIsChosenWithinATextToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, models := modelOffice(t, betaModels, "", "")
		for _, text := range []string{"/model beta/b1 hello", "hello /model beta/b2"} {
			o.tg.UserSays(aliceID, aliceID, text)
			o.settle()
			r := models.Requests()
			if got := r[len(r)-1]; !strings.HasPrefix(got.Model, "b") || !strings.HasSuffix(got.LastUser, "hello") || !strings.Contains(text, "beta/"+got.Model) {
				t.Errorf("%q: %s was told %q", text, got.Model, got.LastUser)
			}
		}
		for text, want := range map[string]string{
			"/model beta/b1@nobody hello": "I don't know the profile",
			"/model nowhere/b1 hello":     `I don't know "nowhere/b1 hello".`,
			"/model mistral/m1 hello":     `I don't know "mistral/m1 hello".`, // no key
			"/model ollama/o1 hello":      `I don't know "ollama/o1 hello".`,  // nobody said that it is there
		} {
			o.tg.UserSays(aliceID, aliceID, text)
			o.settle()
			if got := tgTexts(o, aliceID); !strings.HasPrefix(got[len(got)-1], want) && !strings.HasPrefix(got[len(got)-2], want) {
				t.Errorf("%q: %q", text, got[len(got)-2:])
			}
		}
	})
}

func TestStatusSaysThatAModelWithoutToolsCannotBeSteered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := modelOffice(t, strings.TrimSuffix(betaModels, "}")+`, models: [{id: b1, tools: false}]}`, "", "")
		const cannot = "steer acts as collect"
		for _, x := range []struct {
			choose string
			want   bool
		}{{"/model default", false}, {"/model beta/b1", true}, {"/model beta/b2", false}} {
			o.asks(aliceID, aliceID, x.choose)
			for _, text := range []string{"/status", "/queue"} {
				if got := o.asks(aliceID, aliceID, text); strings.Contains(got, cannot) != x.want {
					t.Errorf("%s, %s: %q", x.choose, text, got)
				}
			}
		}
	})
}
