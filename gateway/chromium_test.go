//go:build e2e

package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// browser drives one page of a headless Chromium over its debugging protocol.
type browser struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn

	mu       sync.Mutex
	nextID   int
	answers  map[int]chan reply
	problems []string // what the page logged as an error
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// findChromium returns the program, or skips the test loudly.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("NO CHROMIUM: the chat page was NOT tested. Install chromium, or name one in $CHROMIUM.")
	return ""
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	program := findChromium(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	// The port is written to the profile; it is read from standard error, which needs no polling.
	cmd := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--remote-debugging-port=0", "--user-data-dir="+filepath.Join(dir, "profile"), "about:blank")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	silent := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-silent // its helpers, which hold standard error too, may still write into the profile
		_ = cmd.Wait()
	})
	b := &browser{t: t, ctx: ctx, answers: map[int]chan reply{}}
	b.attach(debugPort(t, stderr, silent))
	return b
}

// debugPort reads "DevTools listening on ws://127.0.0.1:PORT/…". It closes silent when the last process of the browser
// has ended.
func debugPort(t *testing.T, stderr interface{ Read([]byte) (int, error) }, silent chan<- struct{}) string {
	t.Helper()
	var text strings.Builder
	buf := make([]byte, 1024)
	for {
		n, err := stderr.Read(buf)
		text.Write(buf[:n])
		if _, rest, found := strings.Cut(text.String(), "ws://"); found && strings.Contains(rest, "\n") {
			host, _, _ := strings.Cut(rest, "/")
			go func() { // ends with the browser; it must not block on a full pipe
				defer close(silent)
				for err == nil {
					_, err = stderr.Read(buf)
				}
			}()
			return host
		}
		if err != nil {
			close(silent)
			t.Fatalf("chromium did not start: %s", text.String())
		}
	}
}

func (b *browser) attach(host string) {
	res, err := http.Get("http://" + host + "/json/list")
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	var targets []struct {
		Type string
		URL  string `json:"webSocketDebuggerUrl"`
	}
	if err := json.NewDecoder(res.Body).Decode(&targets); err != nil {
		b.t.Fatal(err)
	}
	for _, target := range targets {
		if target.Type != "page" {
			continue
		}
		b.conn, _, err = websocket.Dial(b.ctx, target.URL, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		b.conn.SetReadLimit(64 << 20)
		b.t.Cleanup(func() { _ = b.conn.CloseNow() })
		go b.read()
		for _, domain := range []string{"Page", "Runtime", "Log"} {
			b.call(domain+".enable", nil)
		}
		return
	}
	b.t.Fatal("chromium has no page")
}

// read ends with the connection.
func (b *browser) read() {
	for {
		_, data, err := b.conn.Read(b.ctx)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			reply
		}
		if json.Unmarshal(data, &m) != nil {
			continue
		}
		b.mu.Lock()
		switch {
		case m.ID != 0:
			b.answers[m.ID] <- m.reply
			delete(b.answers, m.ID)
		case m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded" && strings.Contains(string(m.Params), `"level":"error"`):
			b.problems = append(b.problems, string(m.Params))
		}
		b.mu.Unlock()
	}
}

func (b *browser) call(method string, params any) json.RawMessage {
	b.t.Helper()
	b.mu.Lock()
	b.nextID++
	id, answer := b.nextID, make(chan reply, 1)
	b.answers[id] = answer
	b.mu.Unlock()
	data, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.conn.Write(b.ctx, websocket.MessageText, data); err != nil {
		b.t.Fatal(err)
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			b.t.Fatalf("%s: %s", method, r.Error.Message)
		}
		return r.Result
	case <-b.ctx.Done():
		b.t.Fatalf("%s: no answer", method)
	}
	return nil
}

// open loads an address and waits for it.
func (b *browser) open(address string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address})
	b.wait(`document.readyState === "complete" && location.href !== "about:blank"`)
}

// eval returns the value of an expression as JSON.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	raw := b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true})
	if err := json.Unmarshal(raw, &r); err != nil {
		b.t.Fatal(err)
	}
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return string(r.Result.Value)
}

// wait lets the page check a condition at every frame until it holds. A page that is replaced
// meanwhile is asked again.
func (b *browser) wait(condition string) {
	b.t.Helper()
	script := fmt.Sprintf(`new Promise((yes) => { const end = Date.now() + 2000;
		const look = () => { let ok = false; try { ok = !!(%s) } catch {} 
			if (ok) yes(true); else if (Date.now() > end) yes(false); else setTimeout(look, 16) }; look() })`, condition)
	for range 10 {
		raw := b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true})
		if strings.Contains(string(raw), `"value":true`) {
			return
		}
	}
	b.shot("failed")
	b.t.Fatalf("never true: %s\n%s", condition, b.eval("document.body.innerText"))
}

// keys types text into what has the focus.
func (b *browser) keys(text string) {
	b.t.Helper()
	b.call("Input.insertText", map[string]any{"text": text})
}

// press presses a key that writes nothing.
func (b *browser) press(key string, code int) {
	b.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code})
	}
}

// screen sets the size of the window and the colours it asks for.
func (b *browser) screen(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
	})
	b.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}},
	})
	b.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
}

// shot saves a picture of the page in the folder that $E2E_SHOTS names, if it does.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("E2E_SHOTS")
	if dir == "" {
		return
	}
	var r struct{ Data string }
	if err := json.Unmarshal(b.call("Page.captureScreenshot", map[string]any{"format": "png"}), &r); err != nil {
		b.t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// errors returns what the page has logged as an error so far.
func (b *browser) errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.problems...)
}
