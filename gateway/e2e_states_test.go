//go:build e2e

package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/channels/web"
	"understudy/chat"
)

// signIn opens the page as its owner.
func (s *stage) signIn(b *browser, hash string) {
	b.open(s.server.SignInURL())
	b.wait(`!document.querySelector("#app").hidden && document.querySelector("#log").children.length > 0`)
	if hash != "" {
		b.eval(`location.hash = "` + hash + `"`)
		b.wait(`document.querySelector('[data-id="` + hash + `"]')?.getAttribute("aria-current") === "true"`)
	}
}

// say types a message, sends it and returns what arrived.
func (s *stage) say(b *browser, text string) chat.Inbound {
	s.t.Helper()
	b.eval(`document.querySelector("#input").focus()`)
	b.keys(text)
	b.press("Enter", 13)
	return s.next()
}

const idle = `!document.querySelector(".working") && document.querySelector("#stop").hidden && !document.querySelector("#sessions .busy")`

// TestPageAfterAQuickReply sees no sign of work behind a command that is dealt with before its sender hears that it is
// stored.
func TestPageAfterAQuickReply(t *testing.T) {
	b, s := openBrowser(t), openStage(t)
	s.quick = true
	s.signIn(b, "")
	m := s.say(b, "/model")
	s.send(m.Address, chat.Command, "the models")
	b.wait(`document.querySelector(".command") && document.querySelector(".own:not(.sending)")`)
	if got := b.eval(idle); got != "true" {
		t.Error("the page looks as if somebody worked")
	}
}

// TestPageOverARestart stops the bot below an open page, writes, and starts the bot again.
func TestPageOverARestart(t *testing.T) {
	b, s := openBrowser(t), openStage(t)
	b.screen(1280, 800, "light")
	s.signIn(b, "")
	m := s.say(b, "before")
	at := time.Now()
	s.send(m.Address, chat.Assistant, "An answer.")
	s.adapter.Finished(m.Address, m.ID, 1)
	b.wait(idle)
	s.stop()
	b.wait(`document.querySelector("#banner").textContent.includes("cannot be reached")`)
	b.wait(`document.querySelector("#pill").dataset.state === "bad"`)
	b.keys("while it is away")
	b.press("Enter", 13)
	b.wait(`document.querySelector(".own .unsent")`)
	b.eval(`window.real = Date.now; Date.now = () => real() - 6 * 60 * 1000; 0`)
	b.keys("written long ago")
	b.press("Enter", 13)
	b.wait(`document.querySelectorAll(".own .remedies, .own .unsent").length === 2`)
	b.eval(`Date.now = real; 0`)
	b.shot("offline")
	// What the new process remembers: one message waits since before.
	s.past[m.Address.Conversation] = []web.Entry{
		{Own: true, Text: "before", At: at}, {Text: "An answer.", At: at}, {ID: "p1", Own: true, Text: "and this?", At: at},
	}
	s.start()
	late := s.next()
	if late.Text != "while it is away" {
		t.Errorf("arrived: %q", late.Text)
	}
	b.wait(`!document.querySelector(".unsent") && document.querySelector("#banner").textContent === ""`)
	b.wait(`document.querySelector(".failed .remedies")?.textContent.includes("away for a while")`)
	b.eval(`document.querySelectorAll(".remedies button")[1].click()`)
	b.wait(`document.querySelector("#input").value === "written long ago"`)
	b.wait(`document.querySelectorAll(".own").length === 3 && document.querySelector(".working")`)
	s.send(m.Address, chat.Assistant, "That too.")
	s.adapter.Finished(m.Address, "p1", 1)
	s.send(m.Address, chat.Assistant, "And the last one.")
	s.adapter.Finished(m.Address, late.ID, 1)
	b.wait(`document.querySelectorAll(".answer").length === 3 && ` + idle)
	select {
	case twice := <-s.arrived:
		t.Errorf("arrived twice: %q", twice.Text)
	default:
	}
}

// TestPageAfterARefusal gives a message that the bot refuses back to the person who wrote it.
func TestPageAfterARefusal(t *testing.T) {
	b, s := openBrowser(t), openStage(t)
	b.screen(390, 844, "light")
	s.signIn(b, "")
	b.eval(`document.querySelector("#input").focus()`)
	b.keys(strings.Repeat("much ", web.MaxText/5+1))
	b.press("Enter", 13)
	b.wait(`document.querySelector(".failed .remedies")?.textContent.includes("too long")`)
	b.eval(`document.querySelectorAll(".remedies button")[1].click()`)
	b.wait(`document.querySelector("#input").value.startsWith("much much") && !document.querySelector(".own")`)
}

// TestPageKeepsWhatStands lets an answer grow while somebody reads its beginning.
func TestPageKeepsWhatStands(t *testing.T) {
	b, s := openBrowser(t), openStage(t)
	b.screen(390, 844, "light")
	s.signIn(b, "")
	m := s.say(b, "a table, please")
	s.typing(m.Address)
	b.wait(`document.querySelector(".working")`)
	b.eval(`window.top0 = document.querySelector(".working").getBoundingClientRect().top; 0`)
	text := "First.\n\n```go\n" + strings.Repeat("a long line ", 20) + "\n```\n\n"
	id := s.send(m.Address, chat.Assistant, text)
	b.wait(`document.querySelector(".growing pre")`)
	b.eval(`window.before = document.querySelector(".growing pre"); before.scrollLeft = 50; document.querySelector(".copy").focus(); getSelection().selectAllChildren(document.querySelector(".growing p")); 0`)
	for i := range 5 {
		s.edit(m.Address, id, text+strings.Repeat("More of it. ", i+1))
		b.wait(fmt.Sprintf(`document.querySelector(".growing .body").textContent.split("More").length === %d`, i+2))
	}
	s.adapter.Finished(m.Address, m.ID, 1)
	b.wait(idle)
	got := b.eval(`[document.querySelector(".answer pre") === before, before.scrollLeft, document.activeElement.className, String(getSelection())].join(" ")`)
	if got != `"true 50 copy First."` {
		t.Errorf("what stood there is gone: %s", got)
	}
}

// TestPageByKeyboard goes through the page without a pointer.
func TestPageByKeyboard(t *testing.T) {
	b, s := openBrowser(t), openStage(t)
	b.screen(390, 844, "light")
	s.signIn(b, "")
	first := b.eval(`location.hash`)
	b.eval(`document.querySelector("#skip").focus()`)
	b.eval(`document.querySelector("#skip").click()`)
	b.wait(`document.activeElement.id === "input"`)
	if got := b.eval(`location.hash`); got != first {
		t.Errorf("the way to the field leads to another chat: %s", got)
	}
	b.eval(`document.querySelector("#open-drawer").click()`)
	b.wait(`document.querySelector("#main").inert && document.activeElement.id === "close-drawer"`)
	b.press("Escape", 27)
	b.wait(`!document.querySelector("#main").inert && document.activeElement.id === "open-drawer"`)
	m := s.say(b, "/model")
	s.send(m.Address, chat.Command, "Choose.", chat.Button{Label: "gpt-5.5", Command: "/model openai/gpt-5.5"})
	b.wait(`document.querySelector(".choices button")`)
	b.eval(`document.querySelector(".choices button").click()`)
	if m = s.next(); m.Text != "/model openai/gpt-5.5" {
		t.Errorf("a pressed button said %q", m.Text)
	}
	b.wait(`document.querySelector(".pressed")?.textContent === "gpt-5.5"`)
	b.call("Page.reload", nil)
	b.wait(`document.querySelector(".pressed")?.textContent === "gpt-5.5"`)
}
