package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one event of a stream: a host that never ends a line must not fill the memory.
const maxEvent = 8 << 20

var errEventTooLong = errors.New("an event of the stream is longer than 8 MB")

// eventReader reads the data of server-sent events. Comments and event names are dropped: the
// payloads of both APIs name themselves. A last event without its empty line counts.
type eventReader struct {
	r    *bufio.Reader
	data []byte
	err  error
}

func newEventReader(r *bufio.Reader) *eventReader { return &eventReader{r: r} }

// next returns the data of the next event, valid until the next call, or the error that ended the
// stream: io.EOF for a clean end.
func (e *eventReader) next() ([]byte, error) {
	e.data = e.data[:0]
	has := false
	for e.err == nil {
		var line []byte
		line, e.err = e.line()
		if e.err != nil && len(line) == 0 {
			break
		}
		if len(line) == 0 {
			if has && len(bytes.TrimSpace(e.data)) > 0 {
				return e.data, nil
			}
			e.data, has = e.data[:0], false
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		if len(e.data)+len(value) > maxEvent {
			e.err = errEventTooLong
			return nil, e.err
		}
		if has {
			e.data = append(e.data, '\n')
		}
		e.data, has = append(e.data, bytes.TrimPrefix(value, []byte(" "))...), true
	}
	if has && errors.Is(e.err, io.EOF) && len(bytes.TrimSpace(e.data)) > 0 {
		return e.data, nil
	}
	return nil, e.err
}

// line reads one line without its end.
func (e *eventReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if line == nil && err == nil {
			return bytes.TrimRight(part, "\r\n"), nil
		}
		line = append(line, part...)
		switch {
		case len(line) > maxEvent:
			return nil, errEventTooLong
		case err == nil, errors.Is(err, io.EOF):
			return bytes.TrimRight(line, "\r\n"), err
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
