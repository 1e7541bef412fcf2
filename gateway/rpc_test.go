package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/internal/secret"
)

type greeting struct {
	Name  string   `json:"name" rpc:"required"`
	Times *int     `json:"times"`
	Loud  bool     `json:"loud"`
	Where spot     `json:"where"`
	Also  []string `json:"also"`
}

type spot struct {
	Room string `json:"room"`
}

// testRPC has a method for every way a call can go.
func testRPC() *RPC {
	x := NewRPC(nil)
	x.Handle("greet", func(_ context.Context, raw json.RawMessage, _ func(any) error) (any, error) {
		in, err := RPCParams[greeting](raw)
		if err != nil {
			return nil, err
		}
		return "hello " + in.Name, nil
	})
	x.Handle("nothing", func(context.Context, json.RawMessage, func(any) error) (any, error) { return nil, nil })
	x.Handle("broken", func(context.Context, json.RawMessage, func(any) error) (any, error) {
		return nil, errors.New("a detail that is nobody's business")
	})
	x.Handle("panics", func(context.Context, json.RawMessage, func(any) error) (any, error) {
		panic("a detail that is nobody's business")
	})
	x.Handle("refused", func(context.Context, json.RawMessage, func(any) error) (any, error) {
		return nil, &RPCError{Code: RPCRefused, Message: "not today"}
	})
	x.HandleSlow("count", func(_ context.Context, _ json.RawMessage, emit func(any) error) (any, error) {
		for i := range 2 {
			if err := errors.Join(emit(map[string]int{"n": i}), emit(nil)); err != nil {
				return nil, err
			}
		}
		return "done", nil
	})
	return x
}

func TestRPCAnswersByTheStandard(t *testing.T) {
	x := testRPC()
	for name, c := range map[string]struct{ body, want string }{
		"a call":            {`{"jsonrpc":"2.0","id":1,"method":"greet","params":{"name":"Ann"}}`, `{"jsonrpc":"2.0","id":1,"result":"hello Ann"}`},
		"an id of text":     {`{"jsonrpc":"2.0","id":"a","method":"nothing"}`, `{"jsonrpc":"2.0","id":"a","result":null}`},
		"an id of null":     {`{"jsonrpc":"2.0","id":null,"method":"nothing"}`, `{"jsonrpc":"2.0","id":null,"result":null}`},
		"a notification":    {`{"jsonrpc":"2.0","method":"greet","params":{"name":"Ann"}}`, ``},
		"one that fails":    {`{"jsonrpc":"2.0","method":"broken"}`, ``},
		"no JSON":           {`{"jsonrpc":`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is not JSON"}}`},
		"nothing at all":    {``, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is not JSON"}}`},
		"no object":         {`7`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request is an object"}}`},
		"null":              {`null`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request is an object"}}`},
		"another version":   {`{"jsonrpc":"1.0","id":1,"method":"nothing"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"jsonrpc: must be \"2.0\""}}`},
		"an id of objects":  {`{"jsonrpc":"2.0","id":{},"method":"nothing"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"id: must be a short string, a number or null"}}`},
		"an endless id":     {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"nothing"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"id: must be a short string, a number or null"}}`},
		"a method of 1":     {`{"jsonrpc":"2.0","id":1,"method":1}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"method: must be a string"}}`},
		"METHOD":            {`{"jsonrpc":"2.0","id":1,"METHOD":"nothing"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"method: must be a string"}}`},
		"params of 1":       {`{"jsonrpc":"2.0","id":1,"method":"nothing","params":1}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"params: must be an object"}}`},
		"an unknown method": {`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"there is no such method"}}`},
		"our fault":         {`{"jsonrpc":"2.0","id":1,"method":"broken"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"this did not work because of a fault on the bot's side; its log says which"}}`},
		"a panic":           {`{"jsonrpc":"2.0","id":1,"method":"panics"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"this did not work because of a fault on the bot's side; its log says which"}}`},
		"a refusal":         {`{"jsonrpc":"2.0","id":1,"method":"refused"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"not today"}}`},
		"a slow one":        {`{"jsonrpc":"2.0","id":1,"method":"count"}`, `{"jsonrpc":"2.0","id":1,"result":"done"}`},
		"an empty batch":    {`[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch holds 1 to 50 requests"}}`},
		"a long batch":      {`[` + strings.Repeat(`1,`, 50) + `1]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch holds 1 to 50 requests"}}`},
		"a batch": {
			`[{"jsonrpc":"2.0","id":1,"method":"nothing"},1,{"jsonrpc":"2.0","method":"nothing"},{"jsonrpc":"2.0","id":2,"method":"count"},{"jsonrpc":"2.0","method":"count"}]`,
			`[{"jsonrpc":"2.0","id":1,"result":null},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request is an object"}},` +
				`{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"count takes long: send it alone"}}]`,
		},
		"a batch of notifications": {`[{"jsonrpc":"2.0","method":"nothing"},{"jsonrpc":"2.0","method":"broken"}]`, ``},
	} {
		res := httptest.NewRecorder()
		req := httptest.NewRequest("POST", "/rpc", strings.NewReader(c.body))
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		x.ServeHTTP(res, req)
		if got := strings.TrimSpace(res.Body.String()); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		want := http.StatusOK
		if c.want == "" {
			want = http.StatusNoContent
		}
		if res.Code != want {
			t.Errorf("%s: status %d", name, res.Code)
		}
	}
}

func TestRPCNamesTheWrongParameter(t *testing.T) {
	for raw, want := range map[string]string{
		`{"nam":"Ann"}`:                         "params.nam: there is no such parameter; there is: also, loud, name, times, where",
		`{"Name":"Ann"}`:                        "params.Name: there is no such parameter; there is: also, loud, name, times, where",
		`{"name":"Ann","name":"Bob"}`:           "params.name: stands there twice",
		`{}`:                                    "params.name: is missing",
		``:                                      "params.name: is missing",
		`[]`:                                    "params: must be an object",
		`{"name":1}`:                            "params.name: must be a text",
		`{"name":null}`:                         "params.name: must not be null",
		`{"name":"Ann","times":"2"}`:            "params.times: must be a whole number",
		`{"name":"Ann","times":1.5}`:            "params.times: must be a whole number",
		`{"name":"Ann","loud":1}`:               "params.loud: must be true or false",
		`{"name":"Ann","where":{"rom":"x"}}`:    "params.where.rom: there is no such parameter; there is: room",
		`{"name":"Ann","also":["Bob",3]}`:       "params.also[1]: must be a text",
		`{"name":"Ann","also":{}}`:              "params.also: must be a list",
		`{"name":"Ann","times":2,"loud":true}`:  "",
		`{"name":"A","where":{},"also":["Bo"]}`: "",
	} {
		in, err := RPCParams[greeting](json.RawMessage(raw))
		if want == "" {
			if err != nil || in.Name == "" {
				t.Errorf("%s: %+v, %v", raw, in, err)
			}
			continue
		}
		var bad *RPCError
		if !errors.As(err, &bad) || bad.Code != RPCInvalidParams || bad.Message != want {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		path, _, _ := strings.Cut(want, ":")
		if diff := cmp.Diff(map[string]string{"path": path}, bad.Data); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}

// call sends a body to the RPC of a running listener.
func (r *rig) call(body string, headers ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "POST", "http://"+r.Addr()+"/rpc", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestRPCIsTheOwners(t *testing.T) {
	r := start(t, Config{Token: secret.New(token)}, &bot{state: Ready})
	r.Handle("POST /rpc", Owner, testRPC())
	const body = `{"jsonrpc":"2.0","id":1,"method":"nothing"}`
	const bearer = "Authorization: Bearer " + token
	own := "Origin: http://" + r.Addr()
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"with the token":                  {[]string{bearer}, 200},
		"without":                         {nil, 401},
		"with another":                    {[]string{"Authorization: Bearer " + token + "x"}, 401},
		"with the token in another form":  {[]string{"Authorization: Basic " + token}, 401},
		"from another page":               {[]string{bearer, "Origin: https://evil.example"}, 403},
		"from another port":               {[]string{bearer, "Origin: http://127.0.0.1:1"}, 403},
		"from another site":               {[]string{bearer, "Sec-Fetch-Site: cross-site"}, 403},
		"by a name that was rebound":      {[]string{bearer, "Host: evil.example"}, 421},
		"as a form":                       {[]string{bearer, "Content-Type: text/plain"}, 415},
		"without saying what":             {[]string{bearer, "Content-Type: "}, 415},
		"from our page without signing":   {[]string{own}, 401},
		"with the token and our own page": {[]string{bearer, own}, 200},
	} {
		if got, text := r.call(body, c.headers...); got != c.want {
			t.Errorf("%s: status %d, %s", name, got, text)
		}
	}
	if got, _ := r.call(strings.Repeat(" ", maxBody) + body); got != 401 {
		t.Errorf("a large body without the token: status %d", got)
	}
	if got, text := r.call(strings.Repeat(" ", maxBody)+body, bearer); got != 413 || !strings.Contains(text, "larger than 1 MiB") {
		t.Errorf("a large body: status %d, %s", got, text)
	}
	if got := r.send("GET", "/rpc", bearer).StatusCode; got != 405 {
		t.Errorf("GET: status %d", got)
	}

	r.signIn()
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"the cookie from our page":     {[]string{own}, 200},
		"the cookie from another page": {[]string{"Origin: https://evil.example"}, 403},
		"the cookie from nowhere":      {nil, 403},
	} {
		if got, text := r.call(body, c.headers...); got != c.want {
			t.Errorf("%s: status %d, %s", name, got, text)
		}
	}
}

func TestRPCTellsEventsByTheLine(t *testing.T) {
	r := start(t, Config{Token: secret.New(token)}, &bot{state: Ready})
	r.Handle("POST /rpc", Owner, testRPC())
	const bearer = "Authorization: Bearer " + token
	_, got := r.call(`{"jsonrpc":"2.0","id":7,"method":"count"}`, bearer, "Accept: text/html, application/x-ndjson;q=0.9")
	const want = `{"jsonrpc":"2.0","method":"event","params":{"n":0}}

{"jsonrpc":"2.0","method":"event","params":{"n":1}}

{"jsonrpc":"2.0","id":7,"result":"done"}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, got = r.call(`{"jsonrpc":"2.0","id":7,"method":"nothing"}`, bearer, "Accept: application/x-ndjson")
	if want := `{"jsonrpc":"2.0","id":7,"result":null}` + "\n"; got != want {
		t.Errorf("a method without events: %s", got)
	}
}

func TestRPCEndsWithItsCaller(t *testing.T) {
	r := start(t, Config{Token: secret.New(token)}, &bot{state: Ready})
	x, ended := NewRPC(nil), make(chan error, 1)
	x.HandleSlow("wait", func(ctx context.Context, _ json.RawMessage, emit func(any) error) (any, error) {
		err := emit("here I am")
		<-ctx.Done()
		ended <- err
		return nil, ctx.Err()
	})
	r.Handle("POST /rpc", Owner, x)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+r.Addr()+"/rpc", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"wait"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", contentStream)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.Contains(line, "here I am") {
		t.Errorf("%q, %v", line, err)
	}
	leave()
	if err := <-ended; err != nil {
		t.Errorf("the event was not sent: %v", err)
	}
}

func TestRPCOverTheControlSocket(t *testing.T) {
	c, client := startControl(t, filepath.Join(socketDir(t), ControlSocket), ControlDeps{Status: &bot{state: Ready}})
	c.Handle("POST "+RPCRoute, testRPC())
	ctx := t.Context()
	var said string
	if err := client.CallRPC(ctx, "greet", map[string]string{"name": "Ann"}, &said, nil); err != nil || said != "hello Ann" {
		t.Errorf("%q, %v", said, err)
	}
	var bad *RPCError
	if err := client.CallRPC(ctx, "greet", nil, &said, nil); !errors.As(err, &bad) || bad.Code != RPCInvalidParams {
		t.Errorf("without parameters: %v", err)
	}
	var events bytes.Buffer
	if err := client.CallRPC(ctx, "count", struct{}{}, &said, func(e json.RawMessage) { events.Write(e) }); err != nil || said != "done" {
		t.Errorf("%q, %v", said, err)
	}
	if events.String() != `{"n":0}{"n":1}` {
		t.Errorf("events: %s", events.String())
	}
	if err := client.CallRPC(ctx, "refused", struct{}{}, nil, nil); !errors.As(err, &bad) || bad.Message != "not today" {
		t.Errorf("a refusal: %v", err)
	}
	nobody := NewControlClient(filepath.Join(t.TempDir(), ControlSocket))
	if err := nobody.CallRPC(ctx, "greet", nil, nil, nil); !errors.Is(err, ErrNoServer) {
		t.Errorf("without a bot: %v", err)
	}
}

// FuzzRPC sends anything at all: every answer is a response, or a list of them, by the standard.
func FuzzRPC(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"greet","params":{"name":"Ann","where":{"room":"x"},"also":["a"]}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"nothing"},{"jsonrpc":"2.0","method":"count"}]`,
		`{"jsonrpc":"2.0","id":-1.5e3,"method":"count","params":{}}`, `[[]]`, `{"id":""}`, "\xff", ` null`,
	} {
		f.Add(seed)
	}
	x := testRPC()
	f.Fuzz(func(t *testing.T, body string) {
		for _, accept := range []string{"", contentStream} {
			req := httptest.NewRequest("POST", "/rpc", strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", accept)
			res := httptest.NewRecorder()
			x.ServeHTTP(res, req)
			if res.Code == http.StatusNoContent {
				if res.Body.Len() > 0 {
					t.Errorf("%q: an answer to notifications: %s", body, res.Body)
				}
				continue
			}
			checkResponses(t, body, res.Body.Bytes())
		}
	})
}

func checkResponses(t *testing.T, body string, answer []byte) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(answer), []byte("\n"))
	last := lines[len(lines)-1]
	var list []json.RawMessage
	if json.Unmarshal(last, &list) != nil {
		list = []json.RawMessage{last}
	}
	if len(list) == 0 {
		t.Errorf("%q: an empty list", body)
	}
	for _, raw := range list {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("%q: %s", body, last)
		}
		_, result := m["result"]
		_, failed := m["error"]
		if _, id := m["id"]; !id || result == failed || string(m["jsonrpc"]) != `"2.0"` {
			t.Errorf("%q: %s", body, raw)
		}
	}
}
