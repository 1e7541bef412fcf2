package cron

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

func TestWhatARunAsksFor(t *testing.T) {
	ref := func(s string) llm.ModelRef { r, _ := llm.ParseRef(s); return r }
	refs := func(list ...string) (out []llm.ModelRef) {
		for _, s := range list {
			out = append(out, ref(s))
		}
		return out
	}
	models := policy.Models{Primary: ref("alpha/a1"), Fallbacks: refs("beta/b1")}
	own := policy.Models{Primary: ref("alpha/a1"), Own: true}
	pinned := session.Override{Model: ref("zeta/z1"), Source: session.SourceUser}
	none := []string{}
	list := []string{"delta/d1"}
	for _, x := range []struct {
		name   string
		p      Payload
		o      session.Override
		models policy.Models
		chain  []llm.ModelRef
		strict bool
	}{
		{"nothing of its own", Payload{}, session.Override{}, models, refs("alpha/a1", "beta/b1"), false},
		{"a model: the configured chain stands behind it", Payload{Model: "gamma/g1"}, session.Override{}, models, refs("gamma/g1", "beta/b1", "alpha/a1"), false},
		{"no fallbacks: strict", Payload{Model: "gamma/g1", Fallbacks: &none}, session.Override{}, models, refs("gamma/g1"), true},
		{"a list: exactly that", Payload{Model: "gamma/g1", Fallbacks: &list}, session.Override{}, models, refs("gamma/g1", "delta/d1"), false},
		{"a list behind the agent's model", Payload{Fallbacks: &list}, session.Override{}, models, refs("alpha/a1", "delta/d1"), false},
		{"what a person chose for the session", Payload{}, pinned, models, refs("zeta/z1"), true},
		{"the task's model before that", Payload{Model: "gamma/g1"}, pinned, models, refs("gamma/g1", "beta/b1", "alpha/a1"), false},
		{"an agent's own model is strict", Payload{}, session.Override{}, own, refs("alpha/a1"), true},
	} {
		t.Run(x.name, func(t *testing.T) {
			sel, err := x.p.Selection(x.o, x.models, func(s string) (llm.ModelRef, error) { return llm.ParseRef(s) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(x.chain, policy.Chain(sel, x.models)); diff != "" || policy.Strict(sel, x.models) != x.strict {
				t.Errorf("strict %t; (-want +got)\n%s", policy.Strict(sel, x.models), diff)
			}
		})
	}
	gone := errors.New("gone")
	for _, p := range []Payload{{Model: "gamma/g1"}, {Fallbacks: &list}} {
		if _, err := p.Selection(session.Override{}, models, func(string) (llm.ModelRef, error) { return llm.ModelRef{}, gone }); !errors.Is(err, gone) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestWebhooksOfTasks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ok := w.add("every 1h", func(d *Draft) { d.Webhook = "https://hooks.example.com/x?k=1" })
		if ok.Delivery.Mode != Webhook || ok.Delivery.To.Channel != WebhookChannel {
			t.Errorf("%+v", ok.Delivery)
		}
		for _, bad := range []string{"http://example.com", "https://", "ftp://example.com", "https://u:p@example.com", "example.com", "https://example.com/#x"} {
			_, err := w.s.Add(t.Context(), Draft{Schedule: "every 1h", Message: "x", Webhook: bad})
			var no *Invalid
			if !errors.As(err, &no) || no.Field != "webhook" {
				t.Errorf("%s: %v", bad, err)
			}
		}
		if _, err := w.s.Add(t.Context(), Draft{Schedule: "every 1h", Message: "x", Webhook: "https://example.com", Channel: "telegram", To: "1"}); err == nil {
			t.Error("a webhook and a channel are taken")
		}
		if _, err := w.s.RunNow(t.Context(), ok.ID, false); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if len(w.order) != 1 || w.order[0].To.Conversation != "https://hooks.example.com/x?k=1" || w.order[0].Job != ok.ID || w.order[0].Run == "" {
			t.Errorf("said %+v", w.order)
		}
	})
}
