package authstore

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/llm"
)

func TestOAuthClientOverTheWire(t *testing.T) {
	const token = "refresh-secret-1234567890"
	cases := []struct {
		name    string
		status  int
		body    string
		code    string // of the RefreshError; "-" = success
		refresh string
		lasts   time.Duration
	}{
		{"standard", 200, `{"access_token":"A2","refresh_token":"R2","expires_in":3600}`, "-", "R2", time.Hour},
		{"no new refresh token", 200, `{"access_token":"A2","expires_in":"1800"}`, "-", "", 30 * time.Minute},
		{"no lifetime", 200, `{"access_token":"A2"}`, "-", "", time.Hour},
		{"absurd lifetime", 200, `{"access_token":"A2","expires_in":1e300}`, "-", "", longestLifetime},
		{"negative lifetime", 200, `{"access_token":"A2","expires_in":-5}`, "-", "", time.Hour},
		{"dead grant", 400, `{"error":"invalid_grant","error_description":"` + token + `"}`, "invalid_grant", "", 0},
		{"object", 401, `{"error":{"code":"refresh_token_reused","message":"x"}}`, "refresh_token_reused", "", 0},
		{"code beside a text", 401, `{"error":"Your token was reused","code":"refresh_token_reused"}`, "refresh_token_reused", "", 0},
		{"echo", 400, `{"error":"` + token + `"}`, "", "", 0},
		{"HTML", 503, `<html>busy</html>`, "", "", 0},
		{"HTML 200", 200, `<html>sign in</html>`, "no_access_token", "", 0},
		{"error in a 200", 200, `{"error":"invalid_grant"}`, "invalid_grant", "", 0},
		{"redirect", 307, ``, "", "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			asked := make(chan url.Values, 2)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := r.ParseForm(); err != nil {
					t.Error(err)
				}
				asked <- r.PostForm
				if c.status == 307 {
					w.Header().Set("Location", "/elsewhere")
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer server.Close()
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			client, err := NewOAuthClient(map[string]TokenEndpoint{
				"OpenAI": {URL: server.URL + "/token", ClientID: "app", ClientSecret: secret.New("cs")},
			}, tr, clock.Clock{})
			if err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			got, err := client.Refresh(t.Context(), Profile{ID: "openai:a", Refresh: secret.New(token), Extra: Extra{"clientId": []byte(`"mine"`)}})
			form := <-asked
			want := url.Values{
				"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {"mine"},
			}
			if form.Encode() != want.Encode() {
				t.Errorf("asked with %v", form)
			}
			if len(asked) > 0 {
				t.Error("followed a redirect with the token in hand")
			}
			if c.code == "-" {
				if err != nil || got.Access.Reveal() != "A2" || got.Refresh.Reveal() != c.refresh {
					t.Fatalf("%+v, %v", got, err)
				}
				if got.Expires.Before(before.Add(c.lasts).Truncate(time.Millisecond)) || got.Expires.After(time.Now().Add(c.lasts)) {
					t.Errorf("lasts until %v", got.Expires)
				}
				return
			}
			var refused *RefreshError
			if !errors.As(err, &refused) || refused.Code != c.code || refused.Status != c.status {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), token) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestOAuthClientNeedsASafeAddress(t *testing.T) {
	for _, bad := range []string{"", "http://example.com/token", "ftp://localhost/x", "https://", "https://user:pw@example.com/"} {
		if _, err := NewOAuthClient(map[string]TokenEndpoint{"x": {URL: bad}}, nil, clock.Clock{}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	c, err := NewOAuthClient(map[string]TokenEndpoint{"x": {URL: "http://127.0.0.1:1/"}, "y": {URL: "https://example.com/t"}}, nil, clock.Clock{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Refresh(t.Context(), Profile{ID: "z:a"}); err == nil {
		t.Error("a provider without an endpoint was refreshed")
	}
	if err := signInError("x:a", err); reason(err) != llm.ReasonAuth {
		t.Errorf("got %v", err)
	}
}

func FuzzParseGrant(f *testing.F) {
	f.Add(200, []byte(`{"access_token":"a","expires_in":3600}`))
	f.Add(400, []byte(`{"error":{"code":"x"}}`))
	f.Add(200, []byte(`{"expires_in":"NaN","error":null}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		got, err := parseGrant(status, body, moment)
		if err == nil && got.Access.IsZero() {
			t.Error("success without a token")
		}
		if err == nil && (!got.Expires.After(moment) && !got.Expires.Equal(moment) || got.Expires.After(moment.Add(longestLifetime))) {
			t.Errorf("expires %v", got.Expires)
		}
	})
}
