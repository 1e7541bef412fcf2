package simulate

import (
	"bytes"
	"image"
	"image/png"
)

// dot is the smallest picture there is: what a person of a scenario sends.
func dot() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err) // writing to memory does not fail
	}
	return b.Bytes()
}
