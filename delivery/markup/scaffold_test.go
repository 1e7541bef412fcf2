package markup

import "testing"

func TestStripScaffolding(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing", "a < b and c > d ", "a < b and c > d "},
		{"thoughts", "<think>hm\n\nhm</think>\n\nanswer", "answer"},
		{"any case and name", "<Thinking>x</THINKING>answer<reasoning>y</reasoning>", "answer"},
		{"start is missing", "so I think\n</think>\nanswer", "answer"},
		{"still thinking", "<think>not done", ""},
		{"tool call in the middle", "Let me look.<tool_call>{\"a\":1}</tool_call> Done.", "Let me look. Done."},
		{"attributes", "<tool_call name=\"x\">1</tool_call>ok", "ok"},
		{"reminder", "ok\n<system-reminder>be nice</system-reminder>", "ok"},
		{"template", "ok<|im_end|>\n<|im_start|>", "ok"},
		{"unclosed in a sentence", "The <think> tag opens it.", "The <think> tag opens it."},
		{"in code", "Use `<think>` and `</think>`:\n```\n<think>x</think>\n<|im_end|>\n```", "Use `<think>` and `</think>`:\n```\n<think>x</think>\n<|im_end|>\n```"},
		{"open fence inside thoughts", "<think>```\n</think>\nanswer <|im_end|>", "answer"},
		{"other tags", "<b>x</b> <thinker>y</thinker>", "<b>x</b> <thinker>y</thinker>"},
		{"wide letters", "İİ<think>x</think>ok", "İİok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := StripScaffolding(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzStripScaffolding(f *testing.F) {
	f.Add("<think>`a`</think> ```\n<|x_y|>")
	f.Fuzz(func(t *testing.T, s string) {
		if got := StripScaffolding(s); len(got) > len(s) {
			t.Errorf("%q grew to %q", s, got)
		}
	})
}

func TestIsSilent(t *testing.T) {
	for in, want := range map[string]bool{"NO_REPLY": true, " no_reply\n": true, "NO_REPLY.": false, "": false, "I say NO_REPLY": false} {
		if IsSilent(in) != want {
			t.Errorf("%q: want %v", in, want)
		}
	}
}
