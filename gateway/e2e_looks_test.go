//go:build e2e

package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/channels"
	"understudy/channels/web"
	"understudy/chat"
)

const rightToLeft = "مرحبا بالعالم، هذا نص عربي بسيط."

const everything = "## A heading\n\nSome *words*, `code` and a [link](https://example.com/).\n\n" +
	"```go\nfunc main() {\n\tfmt.Println(\"a very long line of code that does not fit into a narrow window, not at all, 0123456789\")\n}\n```\n\n" +
	"| name | value | what it means |\n| --- | ---: | --- |\n| attempts | 1,204 | how often it was tried in the last hour |\n| donaudampfschifffahrtsgesellschaft | 2 | the long one |\n\n" +
	"1. first\n2. second\n   - inner\n\n> a quote\n\nDonaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftDonaudampfschifffahrtselektrizitätenhauptbetriebswerk\n\n" +
	rightToLeft + "\n\n- " + rightToLeft + "\n\n![a picture](https://example.com/cat.png)\n\n- [x] done\n- [ ] to do"

// TestPageLooks shows everything that a conversation may hold, in three widths and both schemes. With $E2E_SHOTS the
// pictures are for people to look at; what a program can tell is checked.
func TestPageLooks(t *testing.T) {
	b, s := openBrowser(t), openStage(t)
	yesterday := time.Now().Add(-26 * time.Hour)
	s.past["gallery"] = []web.Entry{{Own: true, Text: rightToLeft, At: yesterday}, {Text: everything, At: yesterday}}
	for i := range 12 {
		id := fmt.Sprint("older-", i)
		s.past[id] = []web.Entry{{Own: true, Text: fmt.Sprintf("An older chat about a subject with a long title, number %d", i), At: yesterday.Add(-time.Duration(i) * time.Hour)}}
	}
	b.screen(1280, 800, "light")
	s.signIn(b, "gallery")
	b.wait(`document.querySelector(".answer table")`)
	s.fill()
	b.wait(`document.querySelectorAll(".choices").length === 3 && document.querySelector(".growing")`)
	for _, width := range []int{390, 768, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			name := fmt.Sprintf("looks-%d-%s", width, scheme)
			b.screen(width, 844, scheme)
			b.eval(`document.querySelector("#input").blur()`)
			end := b.eval(`document.querySelector("#scroller").scrollHeight`)
			var pages int
			if _, err := fmt.Sscan(end, &pages); err != nil {
				t.Fatal(err)
			}
			for i := range pages/700 + 1 {
				b.eval(fmt.Sprintf(`document.querySelector("#scroller").scrollTop = %d`, i*700))
				b.screen(width, 844, scheme)
				b.shot(fmt.Sprintf("%s-%d", name, i))
			}
			b.check(name)
			b.eval(`document.querySelector("#pill").click()`)
			b.wait(`document.querySelectorAll(".fact").length > 5`)
			b.screen(width, 844, scheme)
			b.shot(name + "-status")
			b.check(name + ", status")
			b.eval(`document.querySelector("#close-status").click()`)
			if width < 760 {
				b.eval(`document.querySelector("#open-drawer").click()`)
				b.screen(width, 844, scheme)
				b.shot(name + "-drawer")
				b.check(name + ", drawer")
				b.eval(`document.querySelector("#close-drawer").click()`)
			}
		}
	}
	b.screen(390, 844, "light")
	for what, right := range map[string]string{
		"a right-to-left title begins on the right":   `getComputedStyle(document.querySelector("#title")).direction === "rtl"`,
		"so does the name in the list":                `getComputedStyle(document.querySelector('[data-id="gallery"] .name')).direction === "rtl"`,
		"so does the bubble":                          `sides(document.querySelector(".own > span"))`,
		"so does a paragraph":                         `sides([...document.querySelectorAll(".answer p")].find((p) => /مرحبا/.test(p.textContent)))`,
		"so does a list":                              `getComputedStyle([...document.querySelectorAll(".answer ul")].find((p) => /مرحبا/.test(p.textContent))).direction === "rtl"`,
		"code does not":                               `getComputedStyle(document.querySelector("pre")).direction === "ltr"`,
		"an error has one sign":                       `[...document.querySelectorAll(".failure")].every((f) => !!f.querySelector("svg") !== f.textContent.startsWith("⚠️"))`,
		"the empty field is one line high":            `document.querySelector("#input").clientHeight < 45`,
		"a bot that answers with nothing looks amber": `document.querySelector("#pill").dataset.state === "warn"`,
	} {
		if b.eval(`(() => { const sides = (e) => { const r = document.createRange(); r.selectNodeContents(e); const t = r.getClientRects(), box = e.getBoundingClientRect();
			return getComputedStyle(e).unicodeBidi === "plaintext" && Math.abs(Math.max(...[...t].map((x) => x.right)) - box.right) < 2 }; return `+right+` })()`) != "true" {
			t.Errorf("%s: no", what)
		}
	}
}

// fill says everything else in the conversation.
func (s *stage) fill() {
	to := chat.Address{Channel: web.Channel, Conversation: "gallery", Kind: chat.Direct}
	s.mu.Lock()
	s.resting = true
	s.mu.Unlock()
	s.send(to, chat.Notice, "↪️ Model Fallback: openai/gpt-5.5 (selected anthropic/claude-opus-5; rate limited)")
	s.send(to, chat.Notice, "A notice without a sign of its own.")
	s.send(to, chat.Heartbeat, "The disk of **staging** is 91 % full.")
	var list []chat.Button
	for i, name := range []string{"claude-opus-5", "claude-sonnet-5", "claude-haiku-4-5-20251001", "gpt-5.5", "gpt-5.5-mini", "qwen3"} {
		group := []string{"anthropic", "anthropic", "anthropic", "openai", "openai", "ollama"}[i]
		list = append(list, chat.Button{Label: name, Command: "/model " + group + "/" + name, Group: group, Chosen: i == 0})
	}
	s.send(to, chat.Command, "🧠 Model: anthropic/claude-opus-5 (default)\n\n1. **anthropic/claude-opus-5** — selected, primary\n2. **openai/gpt-5.5**", list...)
	s.send(to, chat.Command, "💸 openai/gpt-5.5 would answer now. It costs $1.25 per million tokens of input.\n`/approve 12` or `/deny 12`",
		chat.Button{Label: "Use it", Command: "/approve 12"}, chat.Button{Label: "Don't", Command: "/deny 12"})
	s.send(to, chat.Assistant, "The report is due on Thursday. I can remind you in time.")
	s.send(to, chat.Command, "⏰ Shall I remind you: send the quarterly report\nWhen: Thu 3 Dec, 09:00",
		chat.Button{Label: "Remind me", Command: "/accept ABCDEFGHIJ"}, chat.Button{Label: "No, thanks", Command: "/decline ABCDEFGHIJ"})
	s.send(to, chat.Error, "⚠️ None of the models could answer: anthropic/claude-opus-5 (sign-in problem). The operator can look with `bot auth status`.")
	s.send(to, chat.Error, "Something went wrong, and this text has no sign.")
	s.typing(to)
	id := s.send(to, chat.Assistant, "And this one")
	for range 3 { // signs of work, for as long as the pictures take
		s.typing(to)
	}
	if err := s.adapter.Edit(s.t.Context(), to, id, channels.Piece{Class: chat.Assistant, Text: "And this one grows"}); err != nil {
		s.t.Fatal(err)
	}
}

// check lets the page look for what no layout may have: a page that is wider than its window, text that is hard to read
// before its ground (WCAG 2.2, 1.4.3), and controls without a name.
func (b *browser) check(where string) {
	b.t.Helper()
	found := b.eval(`(() => {
		const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
		const over = (colours) => { canvas.clearRect(0, 0, 1, 1); for (const c of colours) { canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1) } return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3) };
		const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b };
		const bad = [];
		if (document.documentElement.scrollWidth > innerWidth) bad.push("wider than the window: " + document.documentElement.scrollWidth);
		const open = document.querySelector("dialog[open]") || document.body;
		const walk = document.createTreeWalker(open, NodeFilter.SHOW_TEXT);
		for (let n; (n = walk.nextNode()); ) {
			const e = n.parentElement;
			if (!n.textContent.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest(".unseen, noscript, #skip, [inert]") || (open === document.body && e.closest("dialog"))) continue;
			const grounds = [];
			for (let a = e; a; a = a.parentElement) { grounds.unshift(getComputedStyle(a).backgroundColor); if (a.tagName === "DIALOG") break }
			const ground = over(grounds), ink = over([...grounds, getComputedStyle(e).color]);
			const [x, y] = [light(ground), light(ink)].sort((p, q) => q - p);
			const ratio = (x + .05) / (y + .05);
			if (ratio < 4.5) bad.push(ratio.toFixed(2) + " " + (e.className || e.tagName) + ": " + n.textContent.trim().slice(0, 30));
		}
		for (const e of document.querySelectorAll("button, input, textarea, a, [tabindex='0']")) {
			if (e.checkVisibility() && !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length || e.closest("li")?.textContent.trim())) bad.push("without a name: " + e.outerHTML.slice(0, 80));
		}
		return [...new Set(bad)].join("\n");
	})()`)
	if text := strings.Trim(found, `"`); text != "" {
		b.t.Errorf("%s:\n%s", where, strings.ReplaceAll(text, `\n`, "\n"))
	}
}
