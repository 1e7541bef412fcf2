package tts

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hidden are directives, whatever they ask for.
var hidden = []string{
	"[[tts]]", "[[ TTS:Voice=nova ]]", "[[tts:voice=nova speed=1.5]]", "[[/tts]]", "[[audio_as_voice]]", "[[tts:text]]aloud[[/tts:text]]",
	"[[ tts:text ]]two\nlines [x] [[ here[[ /TTS:TEXT ]]", "[[tts\n:voice=nova]]", "[[audio_as_voice please]]",
}

// TestDirectivesAreNeverShown: in whatever pieces a text arrives, nothing of a directive is shown at any
// moment, and what is no directive is.
func TestDirectivesAreNeverShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom(hidden),
			rapid.SampledFrom([]string{"plain words ", "[", "[[", "]]", "]", "[x](y)", "[[wiki]]", "[[ttsx]]", "[[tt]]", "重", "\n", "[[tts [x]]", "[ [tts]]"}),
		)).Draw(t, "text")
		var whole, want strings.Builder
		for _, p := range pieces {
			whole.WriteString(p)
			want.WriteString(p)
		}
		all, found := strip(whole.String())
		var s Stripper
		rest, shown := whole.String(), ""
		for rest != "" {
			n := rapid.IntRange(1, min(len(rest), 9)).Draw(t, "bytes")
			shown += s.Write(rest[:n])
			rest = rest[n:]
			if !strings.HasPrefix(all, shown) {
				t.Fatalf("shown %q on the way to %q", shown, all)
			}
		}
		if shown += s.Close(); shown != all {
			t.Fatalf("in pieces %q, at once %q", shown, all)
		}
		if s.found.tagged != found.tagged || s.found.spoken.String() != found.spoken.String() {
			t.Fatal("in pieces something else is asked for")
		}
	})
}

func TestDirectives(t *testing.T) {
	for _, d := range hidden {
		visible, found := strip("before " + d + "  after")
		if got := strings.Join(strings.Fields(visible), " "); got != "before after" {
			t.Errorf("%q shows %q", d, got)
		}
		if !found.tagged && !found.voice && !strings.HasPrefix(d, "[[/") {
			t.Errorf("%q asks for nothing", d)
		}
	}
	for _, text := range []string{
		"[[ttsx]]", "[[x tts]]", "[tts]", "[[audio]]", "[[/audio_as_voice]]", "a[[0]]", "[[", "[[t", "[[tts:voice=x", "[[" + strings.Repeat(" ", 600) + "tts]]",
		"[[tts" + strings.Repeat(" ", 600) + "]]",
	} {
		if visible, found := strip(text); visible != text || found.tagged {
			t.Errorf("%q shows %q", text, visible)
		}
	}
	if visible, found := strip("x[[tts:text]]never closed"); visible != "x" || found.spoken.String() != "never closed" {
		t.Errorf("an open end shows %q", visible)
	}
	if _, found := strip("[[tts:text]]" + strings.Repeat("x ", longestSpoken)); found.spoken.Len() > longestSpoken {
		t.Errorf("%d bytes are kept", found.spoken.Len())
	}
}

func FuzzDirectives(f *testing.F) {
	for _, d := range hidden {
		f.Add("a "+d+" b", 3)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		all, found := strip(text)
		if n = min(max(n, 0), len(text)); len(text) > 0 {
			var s Stripper
			if got := s.Write(text[:n]) + s.Write(text[n:]) + s.Close(); got != all {
				t.Fatalf("cut at %d: %q, whole: %q", n, got, all)
			}
		}
		for key, value := range found.options {
			if again, ok := checkedOption(key, value); !ok || again != value {
				t.Fatalf("option %s=%q", key, value)
			}
		}
	})
}
