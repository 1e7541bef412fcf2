package providertest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	emulator "understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
)

func (s Suite) requests(t *testing.T) {
	s.bubble(t, "credentials belong to the attempt", func(w world) {
		for _, key := range []string{keyOne, keyTwo} {
			w.good(Collect(w.client.Stream(w.Context(), s.credential(key), w.request("hi"))))
		}
		log := w.srv.Requests()
		if len(log) != 2 || log[0].Key != keyOne || log[1].Key != keyTwo {
			w.Fatalf("keys = %+v", log)
		}
		for _, r := range log {
			for name, values := range r.Header {
				if r.Key == keyTwo && strings.Contains(strings.Join(values, " "), keyOne) {
					w.Errorf("header %s carries the other key", name)
				}
			}
			if bytes.Contains(r.Body, []byte(r.Key)) || strings.Contains(r.Path, r.Key) {
				w.Error("the key is in the body or the path")
			}
		}
	})
	s.bubble(t, "no credential", func(w world) {
		w.good(Collect(w.client.Stream(w.Context(), llm.Credential{Kind: llm.KindNone}, w.request("hi"))))
		if r := w.srv.Requests()[0]; r.Key != "" || http.Header(r.Header).Get("Authorization") != "" {
			w.Errorf("headers = %v", r.Header)
		}
	})
	configured := s
	configured.Spec.Headers = map[string]secret.String{"X-Team": secret.New("blue")}
	configured.bubble(t, "configured headers", func(w world) {
		w.good(w.ask(w.request("hi")))
		if got := http.Header(w.srv.Requests()[0].Header).Get("X-Team"); got != "blue" {
			w.Errorf("X-Team = %q", got)
		}
	})
	s.bubble(t, "model and text", func(w world) {
		w.srv.Reply(emulator.Reply{Echo: true})
		a := w.ask(w.request("say it back"))
		w.good(a)
		r := w.srv.Requests()[0]
		if a.Text != "say it back" || r.Model != w.suite.Model || !r.Stream || !json.Valid(r.Body) {
			w.Errorf("echo %q, request %+v", a.Text, r)
		}
		if !bytes.Contains(r.Body, []byte("You are brief.")) {
			w.Error("the system prompt is missing")
		}
	})
}

func (s Suite) pictures(t *testing.T) {
	s.bubble(t, "for a model that takes them", func(w world) {
		req := w.request("what is this?")
		req.Messages[0].Parts = append(req.Messages[0].Parts, llm.Part{Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG not really"), Name: "cat.png"}})
		w.srv.Strict = true
		w.good(w.ask(req))
		want := base64.StdEncoding.EncodeToString(req.Messages[0].Parts[1].Image.Data)
		if body := w.srv.Requests()[0].Body; !bytes.Contains(body, []byte(want)) {
			w.Errorf("the picture is missing: %s", body)
		}
	})
	s.bubble(t, "for a model that takes none", func(w world) {
		blind := w.suite.Spec
		blind.Transport = w.srv.Transport()
		blind.Model = func(string) provider.ModelInfo { return provider.ModelInfo{Known: true, Tools: true} }
		client, err := w.suite.New(blind.WithDefaults())
		if err != nil {
			w.Fatal(err)
		}
		w.srv.NoImages = true
		req := w.request("what is this?")
		req.Messages[0].Parts = append(req.Messages[0].Parts, llm.Part{Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG"), Name: "cat.png"}})
		w.good(Collect(client.Stream(w.Context(), w.suite.credential(keyOne), req)))
		if body := w.srv.Requests()[0].Body; !bytes.Contains(body, []byte("[image: cat.png]")) {
			w.Errorf("nothing stands for the picture: %s", body)
		}
	})
}
