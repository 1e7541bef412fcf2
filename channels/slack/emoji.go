package slack

import "strings"

// emojiNames are Slack's names of emoji that bots put on messages.
var emojiNames = map[string]string{
	"👀": "eyes", "✅": "white_check_mark", "✔": "heavy_check_mark", "❌": "x", "⚠": "warning", "⛔": "no_entry",
	"⏳": "hourglass_flowing_sand", "⌛": "hourglass", "🤔": "thinking_face", "🧠": "brain", "💭": "thought_balloon",
	"🔧": "wrench", "🛠": "hammer_and_wrench", "⚙": "gear", "🔍": "mag", "🌐": "globe_with_meridians", "💻": "computer",
	"👍": "+1", "👎": "-1", "🙏": "pray", "👌": "ok_hand", "👋": "wave", "🙌": "raised_hands", "👏": "clap",
	"🎉": "tada", "🔥": "fire", "🚀": "rocket", "💯": "100", "❤": "heart", "😀": "grinning", "😄": "smile", "😢": "cry",
	"🥱": "yawning_face", "😨": "fearful", "😱": "scream", "😴": "sleeping", "🤖": "robot_face", "✍": "writing_hand",
	"📎": "paperclip", "📝": "memo", "🔁": "repeat", "🔄": "arrows_counterclockwise", "↪": "leftwards_arrow_with_hook",
	"🛑": "octagonal_sign", "⏸": "double_vertical_bar", "💤": "zzz", "🤷": "shrug", "👨\u200d💻": "male-technologist", "⚡": "zap",
	"🦄": "unicorn_face", "🙂": "slightly_smiling_face", "😊": "blush", "😂": "joy", "😍": "heart_eyes", "😎": "sunglasses",
	"😅": "sweat_smile", "😭": "sob", "😡": "rage", "🤯": "exploding_head", "🥳": "partying_face", "👻": "ghost", "💀": "skull",
	"✨": "sparkles", "💡": "bulb", "📌": "pushpin", "📨": "incoming_envelope", "💬": "speech_balloon", "🔔": "bell", "⏰": "alarm_clock",
	"⏱": "stopwatch", "🏁": "checkered_flag", "🟢": "large_green_circle", "🟡": "large_yellow_circle", "🔴": "red_circle",
	"🔵": "large_blue_circle", "✋": "hand", "🫡": "saluting_face", "👁": "eye", "🐛": "bug", "🧪": "test_tube", "📊": "bar_chart",
	"📈": "chart_with_upwards_trend", "🔒": "lock", "🔑": "key", "➡": "arrow_right", "☕": "coffee", "🌟": "star2", "💥": "boom",
	"🤝": "handshake", "✏": "pencil2", "🧵": "thread", "🎤": "microphone", "🔊": "loud_sound", "📷": "camera", "🖼": "frame_with_picture",
	"🕊": "dove_of_peace", "🗜": "compression", "🗣": "speaking_head_in_silhouette", "⭐": "star", "🆗": "ok", "❓": "question", "❗": "exclamation",
}

// reactionName returns Slack's name of an emoji, which may also be given as that name, with or
// without colons. It reports false for an emoji whose name is not known here.
func reactionName(emoji string) (string, bool) {
	bare := strings.ReplaceAll(emoji, "\ufe0f", "")
	if name, ok := emojiNames[bare]; ok {
		return name, true
	}
	bare = strings.Trim(bare, ":")
	if base, tone, ok := strings.Cut(bare, "::"); ok && strings.HasPrefix(tone, "skin-tone-") {
		return bare, emojiName.MatchString(base)
	}
	return bare, emojiName.MatchString(bare)
}
