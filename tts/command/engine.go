package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"understudy/tts"
)

// Engine speaks with a program. It writes the sound to {{OutputPath}}, or to its standard output.
type Engine struct{ Log *slog.Logger }

var errSilent = errors.New("the program made no sound")

// Speak implements tts.Engine.
func (e Engine) Speak(ctx context.Context, j tts.Job) ([]byte, error) {
	dir, remove, err := TempDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	out := filepath.Join(dir, "speech."+j.Provider.OutputFormat)
	text := j.Text
	if strings.HasPrefix(text, "-") { // not to be taken for an option
		text = " " + text
	}
	args, used := Expand(j.Provider.Args, map[string]string{"Text": text, "OutputPath": out, "OutputDir": dir, "Voice": j.Voice})
	p := Program{Command: j.Provider.Command, Args: args, Env: j.Provider.Env, Cwd: j.Provider.Cwd, Dir: dir, Limit: tts.LargestSound, Log: e.Log}
	if !used["Text"] {
		p.Stdin = j.Text
	}
	written, err := p.Run(ctx)
	if err != nil {
		return nil, err
	}
	data, err := ReadFile(out, tts.LargestSound)
	if err != nil {
		return nil, err
	}
	if data == nil {
		data = written
	}
	if len(data) == 0 {
		return nil, errSilent
	}
	return data, nil
}

// Installed reports whether the program of a complete provider can be found, with ErrNotFound where it
// cannot. A provider that is a service needs none.
func Installed(p tts.Provider) error {
	if p.Kind() != tts.Command {
		return nil
	}
	if _, err := exec.LookPath(p.Command); err != nil {
		return fmt.Errorf("%w: %s", ErrNotFound, filepath.Base(p.Command))
	}
	return nil
}

// FFmpeg changes formats with the program of that name.
type FFmpeg struct {
	Path string
	Log  *slog.Logger
}

// FindFFmpeg returns the FFmpeg of this machine, nil when there is none.
func FindFFmpeg(log *slog.Logger) *FFmpeg {
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		return nil
	}
	return &FFmpeg{Path: path, Log: log}
}

var errFormat = errors.New("ffmpeg is not asked for this format")

// Convert makes Opus or MP3 of other sound (spec/chat.md §4.3).
func (f *FFmpeg) Convert(ctx context.Context, data []byte, from, to tts.Format) ([]byte, error) {
	var codec []string
	switch to {
	case tts.Opus:
		codec = []string{"-c:a", "libopus", "-b:a", "64k", "-ar", "48000", "-f", "ogg"}
	case tts.MP3:
		codec = []string{"-c:a", "libmp3lame", "-b:a", "96k", "-f", "mp3"}
	default:
		return nil, errFormat
	}
	dir, remove, err := TempDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	in, out := filepath.Join(dir, "in."+string(from)), filepath.Join(dir, "out")
	if err := os.WriteFile(in, data, 0o600); err != nil {
		return nil, errors.New("the sound could not be stored")
	}
	args := append([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-i", in, "-map", "0:a:0", "-map_metadata", "-1"}, codec...)
	p := Program{Command: f.Path, Args: append(args, out), Dir: dir, Limit: 2 * tts.LargestSound, Log: f.Log}
	if _, err := p.Run(ctx); err != nil {
		return nil, err
	}
	converted, err := ReadFile(out, tts.LargestSound)
	if err == nil && len(converted) == 0 {
		err = errSilent
	}
	return converted, err
}
