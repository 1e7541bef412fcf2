package telegram

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/chat"
)

type shownKey struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

func rowsOf(t interface{ Fatal(...any) }, markup string) [][]shownKey {
	var m struct {
		Rows [][]shownKey `json:"inline_keyboard"`
	}
	if err := json.Unmarshal([]byte(markup), &m); err != nil {
		t.Fatal(err)
	}
	return m.Rows
}

// drawn is a keyboard as people see it.
func drawn(t *testing.T, markup string) string {
	t.Helper()
	var out []string
	for _, row := range rowsOf(t, markup) {
		var cells []string
		for _, k := range row {
			cells = append(cells, "["+k.Text+"]")
		}
		out = append(out, strings.Join(cells, " "))
	}
	return strings.Join(out, "\n")
}

func TestLayout(t *testing.T) {
	models := func(n int, group string) (out []chat.Button) {
		for i := range n {
			out = append(out, chat.Button{Label: fmt.Sprintf("%s%d", strings.ToLower(group), i), Command: "/x", Group: group, Chosen: i == 1})
		}
		return out
	}
	tests := []struct {
		name string
		list []chat.Button
		page int
		want string
	}{
		{"few", models(3, ""), 0, "[0] [✓ 1]\n[2]"},
		{"a page exactly", models(8, ""), 0, "[0] [✓ 1]\n[2] [3]\n[4] [5]\n[6] [7]"},
		{"two pages", models(9, ""), 0, "[0] [✓ 1]\n[2] [3]\n[4] [5]\n[6] [7]\n[◀] [1/2] [▶]\n[✖ Close]"},
		{"the second", models(9, ""), 1, "[8]\n[◀] [2/2] [▶]\n[✖ Close]"},
		{"no such page", models(9, ""), 77, "[8]\n[◀] [2/2] [▶]\n[✖ Close]"},
		{"one group needs no name", models(2, "A"), 0, "[a0] [✓ a1]\n[✖ Close]"},
		{"groups", slices.Concat(models(3, "A"), models(1, ""), models(1, "B"), models(1, "A")), 0, "[— A —]\n[a0] [✓ a1]\n[a2] [a0]\n[0]\n[— B —]\n[b0]\n[✖ Close]"},
		{"a group goes on", slices.Concat(models(10, "A"), models(1, "B")), 1, "[— A —]\n[a8] [a9]\n[— B —]\n[b0]\n[◀] [2/2] [▶]\n[✖ Close]"},
		{"no label", []chat.Button{{Command: "/status"}}, 0, "[/status]"},
		{"long label", []chat.Button{{Label: strings.Repeat("é", 70), Command: "/x"}}, 0, "[" + strings.Repeat("é", 63) + "…]"},
		{"nothing", nil, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, drawn(t, layout(grouped(tt.list), "tok", tt.page))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever the choices: by turning pages every one is met once, each button says what it does, and
// what it says fits.
func TestEveryChoiceIsReachable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "choices")
		var list []chat.Button
		for i := range n {
			list = append(list, chat.Button{
				Label: rapid.StringN(0, 80, 200).Draw(t, "label"), Command: fmt.Sprintf("/pick %d", i),
				Group: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "group"),
			})
		}
		menu := grouped(list)
		token := strings.Repeat("T", 26)
		var met []string
		page, seen := 0, map[int]bool{}
		for !seen[page] {
			seen[page] = true
			next := page
			for _, row := range rowsOf(t, layout(menu, token, page)) {
				for _, k := range row {
					if len(k.Data) > 64 || k.Text == "" {
						t.Fatalf("button %q %q", k.Text, k.Data)
					}
					a, ok := parseAction(k.Data)
					if !ok || a.token != token {
						t.Fatalf("%q is read as %+v", k.Data, a)
					}
					if a.choice >= 0 {
						met = append(met, menu[a.choice].Command)
					}
					if k.Text == labelNext && a.page >= 0 {
						next = a.page
					}
				}
			}
			page = next
		}
		slices.Sort(met)
		var want []string
		for _, b := range list {
			want = append(want, b.Command)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, met); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzParseAction(f *testing.F) {
	for _, s := range []string{"m:tok:1", "m:tok:p2", "m:tok:x", "m::1", "m:tok:-1", "c:old", "m:tok:p", "m:tok:99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		a, ok := parseAction(data)
		if !ok {
			return
		}
		what := 0
		for _, set := range []bool{a.close, a.page >= 0, a.choice >= 0} {
			if set {
				what++
			}
		}
		if what != 1 || a.token == "" || a.page >= mostChoices || a.choice >= mostChoices {
			t.Errorf("%q is read as %+v", data, a)
		}
	})
}
