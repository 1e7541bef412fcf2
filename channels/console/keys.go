package console

import (
	"io"
)

// keys reads what is typed in a goroutine of its own, because it is wanted in two places: in the
// line editor while the person writes, and in the turn, where Ctrl-C must be noticed while the bot
// works. What else is typed during a turn is kept for the editor.
type keys struct {
	chunks chan []byte   // closed when the input ends
	stop   chan struct{} // closed when nobody reads any more
	ahead  []byte        // for the editor
}

const (
	interrupt = 0x03 // Ctrl-C in raw mode
	maxAhead  = MaxText
)

// readKeys starts reading. The goroutine ends when in does, or with the next key after stop.
func readKeys(in io.Reader) *keys {
	k := &keys{chunks: make(chan []byte), stop: make(chan struct{})}
	go func() {
		defer close(k.chunks)
		for {
			buf := make([]byte, 1024)
			n, err := in.Read(buf)
			if n > 0 {
				select {
				case k.chunks <- buf[:n]:
				case <-k.stop:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return k
}

// Read implements io.Reader for the line editor.
func (k *keys) Read(p []byte) (int, error) {
	if len(k.ahead) == 0 {
		select {
		case chunk, open := <-k.chunks:
			if !open {
				return 0, io.EOF
			}
			k.ahead = chunk
		case <-k.stop:
			return 0, io.EOF
		}
	}
	n := copy(p, k.ahead)
	k.ahead = k.ahead[n:]
	return n, nil
}

// during keeps what was typed while the bot worked and counts the interrupts in it.
func (k *keys) during(chunk []byte) (interrupts int) {
	for _, b := range chunk {
		switch {
		case b == interrupt:
			interrupts++
			k.ahead = nil // whoever interrupts starts afresh
		case len(k.ahead) < maxAhead:
			k.ahead = append(k.ahead, b)
		}
	}
	return interrupts
}
