package tts

import "bytes"

// Format is a container of sound.
type Format string

// The formats that are known.
const (
	Opus Format = "opus" // in Ogg: what voice notes are made of
	MP3  Format = "mp3"
	WAV  Format = "wav"
	AAC  Format = "aac"
	M4A  Format = "m4a"
	FLAC Format = "flac"
)

// Formats returns the formats that are known.
func Formats() []Format { return []Format{Opus, MP3, WAV, AAC, M4A, FLAC} }

// FormatFor returns what a channel plays best (spec/chat.md §4.5).
func FormatFor(channel string) Format {
	if channel == "telegram" {
		return Opus
	}
	return MP3
}

// MediaType returns the media type of a format.
func (f Format) MediaType() string {
	switch f {
	case Opus:
		return "audio/ogg"
	case MP3:
		return "audio/mpeg"
	case WAV:
		return "audio/wav"
	case AAC:
		return "audio/aac"
	case M4A:
		return "audio/mp4"
	case FLAC:
		return "audio/flac"
	}
	return "application/octet-stream"
}

// extension returns the end of a file's name.
func (f Format) extension() string {
	if f == Opus {
		return ".ogg"
	}
	return "." + string(f)
}

// leastSound is the size of the shortest thing that could be sound, in bytes.
const leastSound = 64

// Detect looks at how sound begins and returns its format, "" for what is no sound. A provider's word
// is not taken for it: an error page is not to be played.
func Detect(data []byte) Format {
	if len(data) < leastSound {
		return ""
	}
	at := func(i int, s string) bool { return bytes.HasPrefix(data[i:], []byte(s)) }
	switch {
	case at(0, "OggS") && bytes.Contains(data[:leastSound], []byte("OpusHead")):
		return Opus
	case at(0, "RIFF") && at(8, "WAVE"):
		return WAV
	case at(0, "fLaC"):
		return FLAC
	case at(4, "ftyp"):
		return M4A
	case at(0, "ID3"):
		return MP3
	case data[0] == 0xff && data[1]&0xf6 == 0xf0: // ADTS: layer bits 00
		return AAC
	case data[0] == 0xff && data[1]&0xe0 == 0xe0 && data[1]&0x06 != 0: // a frame of MPEG audio
		return MP3
	}
	return ""
}
