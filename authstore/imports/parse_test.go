package imports

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/authstore"
	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/llm"
)

var now = time.UnixMilli(1_790_000_000_000)

func mustParse(t testing.TB, f Format, text string) Document {
	t.Helper()
	d, err := Parse(f, []byte(text), now, policy.DefaultRules())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shape is a profile as tests compare it.
type shape struct {
	ID                    llm.ProfileID
	Kind                  llm.CredentialKind
	Secret, Refresh       string
	Expires               int64
	Email, Account, Proj  string
	Enterprise, Reference string
	Extra                 string
}

func shapes(ps []authstore.Profile) []shape {
	var out []shape
	for _, p := range ps {
		s := shape{
			ID: p.ID, Kind: p.Kind, Secret: p.Secret.Reveal(), Refresh: p.Refresh.Reveal(),
			Email: p.Email, Account: p.AccountID, Proj: p.ProjectID, Enterprise: p.EnterpriseURL,
		}
		if !p.Expires.IsZero() {
			s.Expires = p.Expires.UnixMilli()
		}
		if !p.Reference.IsZero() {
			s.Reference = p.Reference.Source + " " + p.Reference.ID
		}
		if p.Extra != nil {
			b, _ := json.Marshal(map[string]json.RawMessage(p.Extra))
			s.Extra = string(b)
		}
		out = append(out, s)
	}
	return out
}

func TestCredentialsOfEveryForm(t *testing.T) {
	cases := []struct {
		name   string
		format Format
		text   string
		want   []shape
	}{
		{
			"versioned", FormatProfiles,
			`{"version":1,"profiles":{
				"openai:work":{"type":"api_key","provider":"openai","key":"sk-1"},
				"anthropic:setup":{"type":"token","provider":"anthropic","token":"st-1","expires":1790000000000},
				"openai:me@example.com":{"type":"oauth","provider":"openai","access":"A","refresh":"R","expires":1772445600,
					"email":"me@example.com","accountId":"acc","projectId":"prj","enterpriseUrl":"https://e.example","clientId":"app","xFuture":1}}}`,
			[]shape{
				{ID: "openai:work", Kind: llm.KindAPIKey, Secret: "sk-1"},
				{ID: "anthropic:setup", Kind: llm.KindToken, Secret: "st-1", Expires: 1790000000000},
				{
					ID: "openai:me@example.com", Kind: llm.KindOAuth, Secret: "A", Refresh: "R", Expires: 1772445600000,
					Email: "me@example.com", Account: "acc", Proj: "prj", Enterprise: "https://e.example", Extra: `{"clientId":"app","xFuture":1}`,
				},
			},
		},
		{
			"flat", FormatProfiles, `{"openrouter":{"apiKey":"k1"},"x":{"token":"t1"},"y":{"access":"A","refresh":"R","expires":1772445600000}}`,
			[]shape{
				{ID: "openrouter:default", Kind: llm.KindAPIKey, Secret: "k1"},
				{ID: "x:default", Kind: llm.KindToken, Secret: "t1"},
				{ID: "y:default", Kind: llm.KindOAuth, Secret: "A", Refresh: "R", Expires: 1772445600000},
			},
		},
		{
			"auth.json", FormatAuth, `{"anthropic":{"type":"oauth","access":"A","refresh":"R","expires":5e12},"openai":{"type":"api_key","key":"k"},"google":{"api_key":"g"}}`,
			[]shape{
				{ID: "anthropic:default", Kind: llm.KindOAuth, Secret: "A", Refresh: "R", Expires: 5e12},
				{ID: "openai:default", Kind: llm.KindAPIKey, Secret: "k"},
				{ID: "google:default", Kind: llm.KindAPIKey, Secret: "g"},
			},
		},
		{
			"oauth.json", FormatOAuth, `{"openai-codex":{"access":"A","refresh":"R","expires":1772445600000,"email":"me@example.com"},"anthropic":{"refresh":"R2"}}`,
			[]shape{
				{ID: "openai:me@example.com", Kind: llm.KindOAuth, Secret: "A", Refresh: "R", Expires: 1772445600000, Email: "me@example.com"},
				{ID: "anthropic:default", Kind: llm.KindOAuth, Refresh: "R2", Expires: 1},
			},
		},
		{
			"mode for type", FormatProfiles, `{"profiles":{"a:b":{"mode":"api_key","provider":"a","apiKey":"k"}}}`,
			[]shape{{ID: "a:b", Kind: llm.KindAPIKey, Secret: "k"}},
		},
		{
			"references", FormatProfiles,
			`{"profiles":{"a:1":{"type":"api_key","provider":"a","key":{"source":"env","id":"A_KEY"}},
			 "a:2":{"type":"api_key","provider":"a","keyRef":{"source":"env","provider":"default","id":"B_KEY"}},
			 "a:3":{"type":"token","provider":"a","token":"${C_TOKEN}"}}}`,
			[]shape{
				{ID: "a:1", Kind: llm.KindAPIKey, Reference: "env A_KEY"},
				{ID: "a:2", Kind: llm.KindAPIKey, Reference: "env B_KEY"},
				{ID: "a:3", Kind: llm.KindToken, Reference: "env C_TOKEN"},
			},
		},
		{
			"codex beside openai", FormatProfiles,
			`{"profiles":{"openai:default":{"type":"api_key","provider":"openai","key":"k"},"openai-codex:default":{"type":"oauth","provider":"openai-codex","access":"A","refresh":"R","expires":1772445600000}}}`,
			[]shape{
				{ID: "openai:default", Kind: llm.KindAPIKey, Secret: "k"},
				{ID: "openai:default-codex", Kind: llm.KindOAuth, Secret: "A", Refresh: "R", Expires: 1772445600000},
			},
		},
		{
			"an id of another provider", FormatProfiles, `{"profiles":{"mine":{"type":"api_key","provider":"OpenAI","key":"k"}}}`,
			[]shape{{ID: "openai:mine", Kind: llm.KindAPIKey, Secret: "k"}},
		},
		{"no profiles", FormatProfiles, `{"version":1,"profiles":{}}`, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := mustParse(t, c.format, c.text)
			if diff := cmp.Diff(c.want, shapes(d.Profiles)); diff != "" {
				t.Error(diff)
			}
			if len(d.Problems) > 0 {
				t.Errorf("problems %v", d.Problems)
			}
		})
	}
}

func TestUnusableEntriesAreNamedAndStopNobody(t *testing.T) {
	const canary = "canary-secret-123456"
	d := mustParse(t, FormatProfiles, `{"profiles":{
		"a:none":{"type":"api_key","key":"`+canary+`"},
		"a:empty":{"type":"api_key","provider":"a","key":"  "},
		"a:odd":{"type":"passkey","provider":"a","key":"`+canary+`"},
		"a:list":["`+canary+`"],
		"a:nul":{"type":"api_key","provider":"a","key":"`+canary+`\u0000"},
		"a:number":{"type":"api_key","provider":"a","key":12345},
		"__proto__":{"type":"api_key","provider":"__proto__","key":"`+canary+`"},
		"a:bad\u001b[31m":{"type":"api_key","provider":"a","key":"`+canary+`"},
		"a:ref":{"type":"api_key","provider":"a","key":{"source":"env"}},
		"a:good":{"type":"api_key","provider":"a","key":"k"},
		"bedrock:chain":{"mode":"aws-sdk","provider":"bedrock"}}}`)
	if got := shapes(d.Profiles); len(got) != 1 || got[0].ID != "a:good" {
		t.Errorf("profiles %v", got)
	}
	if len(d.Declared) != 1 || d.Declared[0] != "amazon-bedrock:chain" {
		t.Errorf("declared %v", d.Declared)
	}
	want := map[string]string{
		"a:none": "provider", "a:empty": "no secret", "a:odd": "type", "a:list": "not an object", "a:nul": "characters",
		"a:number": "no secret", "__proto__": "id", `"a:bad\x1b[31m"`: "id", "a:ref": "no secret",
	}
	for _, p := range d.Problems {
		if !strings.Contains(p.Reason, want[p.Entry]) || want[p.Entry] == "" {
			t.Errorf("%s: %s", p.Entry, p.Reason)
		}
		if strings.Contains(p.Reason, canary) {
			t.Errorf("%s shows its value", p.Entry)
		}
		delete(want, p.Entry)
	}
	if len(want) > 0 {
		t.Errorf("not named: %v", want)
	}
}

func TestDamageIsLocated(t *testing.T) {
	cases := map[string]string{
		`{"profiles":{"a:1":{"type":"api_key","provider":"a","key":"k"},"a:2":{"type":"api_`: "profiles > a:2",
		`{"profiles":{"a:1":{"key":nope}}}`:                                                  "profiles > a:1 > key",
		`{"profiles":[]}`:                                                                    "profiles is not an object",
		`[]`:                                                                                 "is not an object",
		``:                                                                                   "ends too early",
		`{} {}`:                                                                              "behind its end",
		strings.Repeat(`{"a":`, 200):                                                         "too deeply",
	}
	for text, want := range cases {
		if _, err := Parse(FormatProfiles, []byte(text), now, policy.DefaultRules()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestStateAndStatistics(t *testing.T) {
	ms := func(d time.Duration) string {
		b, _ := json.Marshal(now.Add(d).UnixMilli())
		return string(b)
	}
	d := mustParse(t, FormatState, `{"version":1,
		"order":{"openai-codex":["openai-codex:a","openai:b","other:x"],"none":[]},
		"lastGood":{"openai":"openai:b","x":7},
		"usageStats":{
			"openai:a":{"lastUsed":1772445600,"errorCount":2,"failureCounts":{"rate_limit":2,"nonsense":9},"lastFailureAt":`+ms(-time.Minute)+`,
				"cooldownUntil":`+ms(time.Hour)+`,"cooldownReason":"rate_limit","cooldownModel":"openai/gpt-5.5"},
			"openai:b":{"disabledUntil":`+ms(100*time.Hour)+`,"disabledReason":"billing","failureCounts":{"billing":3}},
			"openai:c":{"cooldownUntil":`+ms(-time.Second)+`,"lastProbeAt":`+ms(-time.Second)+`},
			"openai:d":{"blockedUntil":`+ms(50*time.Hour)+`,"blockedReason":"rate_limit"},
			"openai:e":"odd",
			"openai:f":{"lastUsed":"yesterday","errorCount":-5,"disabledUntil":1e300}}}`)
	rule := policy.DefaultRules()
	if diff := cmp.Diff(map[string][]llm.ProfileID{"openai": {"openai:a", "openai:b"}, "none": {}}, d.Orders); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]llm.ProfileID{"openai": "openai:b"}, d.LastGood); diff != "" {
		t.Error(diff)
	}
	want := []Usage{
		{Profile: "openai:a", Rows: map[string]policy.Row{
			"": {LastUsed: time.UnixMilli(1772445600000)},
			"gpt-5.5": {
				LastFailureAt: now.Add(-time.Minute), ErrorCount: 2, FailureCounts: map[llm.Reason]int{"rate_limit": 2},
				Cooldown: policy.Window{Since: now, Until: now.Add(longestCooldown), Reason: "rate_limit"},
			},
		}},
		{Profile: "openai:b", Rows: map[string]policy.Row{"": {
			FailureCounts: map[llm.Reason]int{"billing": 3}, BillingCount: 3,
			Disabled: policy.Window{Since: now, Until: now.Add(rule.BillingMax), Reason: "billing"},
		}}},
		{Profile: "openai:c", Rows: map[string]policy.Row{}, Probe: now.Add(-time.Second)},
		{Profile: "openai:d", Rows: map[string]policy.Row{"": {
			Cooldown: policy.Window{Since: now, Until: now.Add(50 * time.Hour), Reason: "rate_limit", Stated: true},
		}}},
	}
	if diff := cmp.Diff(want, d.Usage); diff != "" {
		t.Error(diff)
	}
	if len(d.Problems) != 2 {
		t.Errorf("problems %v", d.Problems)
	}
}

func TestSecretsAreTrimmedNotShown(t *testing.T) {
	d := mustParse(t, FormatAuth, `{"openai":{"key":" k \n"}}`)
	if d.Profiles[0].Secret != secret.New("k") {
		t.Errorf("%q", d.Profiles[0].Secret.Reveal())
	}
	text, err := json.Marshal(d.Profiles[0])
	if err != nil || strings.Contains(string(text), `"k"`) {
		t.Errorf("%s %v", text, err)
	}
}

func fuzz(f *testing.F, format Format, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"__proto__":{"key":"x"},"a":null,"profiles":{"":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(format, data, now, policy.DefaultRules())
		if err != nil {
			return
		}
		seen := map[llm.ProfileID]bool{}
		for _, p := range d.Profiles {
			if err := p.Validate(); err != nil {
				t.Errorf("an unusable profile: %v", err)
			}
			if seen[p.ID] {
				t.Errorf("%s stands twice", p.ID)
			}
			seen[p.ID] = true
		}
		for _, u := range d.Usage {
			for _, r := range u.Rows {
				if r.Cooldown.Until.After(now.Add(longestStated)) || r.Disabled.Until.After(now.Add(24*time.Hour)) {
					t.Errorf("a window without end: %+v", r)
				}
			}
		}
		for _, p := range d.Problems {
			if strings.ContainsFunc(p.Entry, func(r rune) bool { return r < ' ' }) {
				t.Errorf("%q cannot be shown", p.Entry)
			}
		}
	})
}

func FuzzProfiles(f *testing.F) {
	fuzz(f, FormatProfiles, `{"version":1,"profiles":{"a:b":{"type":"oauth","provider":"a","access":"x","refresh":"y","expires":1}},"order":{"a":["a:b"]}}`, `{"a":{"apiKey":"k"}}`)
}

func FuzzState(f *testing.F) {
	fuzz(f, FormatState, `{"usageStats":{"a:b":{"lastUsed":1,"cooldownUntil":9e12,"blockedUntil":9e12,"blockedModel":"m"}}}`)
}

func FuzzAuth(f *testing.F) { fuzz(f, FormatAuth, `{"anthropic":{"type":"oauth","access":"a"}}`) }

func FuzzSignIns(f *testing.F) {
	fuzz(f, FormatOAuth, `{"a":{"access":"a","refresh":"r","expires":1,"email":"x@y.z"}}`)
}
