package reply

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif" // pictures that people send
	"image/jpeg"
	"image/png"
	"net/http"
)

// Bounds of pictures (spec/chat.md §2.11, §8 S10).
const (
	defaultImageSide = 1200
	maxImageBytes    = 20 << 20
	maxPixels        = 40_000_000
	maxSide          = 1 << 15
	maxScans         = 64        // of a JPEG: each may cost a pass over all pixels
	maxSentBytes     = 3_500_000 // what model APIs take, encoded
)

// picture is an image that a model can be shown.
type picture struct {
	mediaType     string
	data          []byte
	width, height int // as it was sent
}

// Why a picture cannot be shown.
var (
	errNoPicture = errors.New("not a picture that can be read")
	errTooLarge  = errors.New("too large to look at")
)

// darkroom makes pictures fit, one at a time: a single one may need hundreds of megabytes.
type darkroom chan struct{}

func newDarkroom() darkroom { return make(darkroom, 1) }

// fit returns a picture whose longest side is at most side. What it is is read from its bytes, not
// from what its sender says. On an error the size is set where it is known.
func (d darkroom) fit(ctx context.Context, data []byte, side int) (p picture, err error) {
	p.mediaType = http.DetectContentType(data)
	if p.width, p.height, err = measure(p.mediaType, data); err != nil {
		return p, err
	}
	if max(p.width, p.height) > maxSide || p.width*p.height > maxPixels {
		return p, errTooLarge
	}
	turned := orientation(data)
	isSmall := max(p.width, p.height) <= side && len(data) <= maxSentBytes
	switch {
	case isSmall && turned == 1:
		p.data = data
		return p, nil
	case p.mediaType == "image/webp": // nothing here can read it; APIs scale by themselves
		if p.data = data; len(data) > maxSentBytes {
			return p, errTooLarge
		}
		return p, nil
	case p.mediaType == "image/jpeg" && bytes.Count(data, []byte{0xFF, 0xDA}) > maxScans:
		return p, errNoPicture
	}
	select {
	case d <- struct{}{}:
		defer func() { <-d }()
	case <-ctx.Done():
		return p, context.Cause(ctx)
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return p, errNoPicture
	}
	small := upright(shrink(img, side), turned)
	if turned >= 5 {
		p.width, p.height = p.height, p.width
	}
	p.data, p.mediaType, err = encode(small)
	return p, err
}

// measure reads a picture's size from its header.
func measure(mediaType string, data []byte) (w, h int, err error) {
	switch mediaType {
	case "image/webp":
		w, h = webpSize(data)
	case "image/png", "image/jpeg", "image/gif":
		c, _, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			return 0, 0, errNoPicture
		}
		w, h = c.Width, c.Height
	}
	if w <= 0 || h <= 0 {
		return 0, 0, errNoPicture
	}
	return w, h, nil
}

// webpSize reads the size from the first chunk of a WebP file; 0 = it cannot be told.
func webpSize(data []byte) (w, h int) {
	if len(data) < 30 {
		return 0, 0
	}
	le := binary.LittleEndian
	switch chunk, body := string(data[12:16]), data[20:]; chunk {
	case "VP8X":
		return int(le.Uint32(body[4:])&0xFFFFFF) + 1, int(le.Uint32(body[6:])>>8&0xFFFFFF) + 1
	case "VP8L":
		bits := le.Uint32(body[1:])
		return int(bits&0x3FFF) + 1, int(bits>>14&0x3FFF) + 1
	case "VP8 ":
		return int(le.Uint16(body[6:]) & 0x3FFF), int(le.Uint16(body[8:]) & 0x3FFF)
	}
	return 0, 0
}

// shrink scales an image down so that its longest side is at most side. Every new pixel is the mean
// of those it stands for.
func shrink(src image.Image, side int) *image.RGBA {
	from := src.Bounds()
	w, h := from.Dx(), from.Dy()
	if longest := max(w, h); longest > side {
		w, h = max(1, w*side/longest), max(1, h*side/longest)
	}
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	rows := from.Dy()/h + 2
	strip := image.NewRGBA(image.Rect(0, 0, from.Dx(), rows))
	for y := range h {
		y0, y1 := source(y, h, from.Dy())
		part := image.Rect(0, 0, from.Dx(), y1-y0)
		draw.Draw(strip, part, src, image.Pt(from.Min.X, from.Min.Y+y0), draw.Src)
		for x := range w {
			x0, x1 := source(x, w, from.Dx())
			dst.SetRGBA(x, y, mean(strip, x0, x1, y1-y0))
		}
	}
	return dst
}

// source returns which of n old places the i-th of m new ones stands for: at least one.
func source(i, m, n int) (from, to int) {
	from, to = i*n/m, (i+1)*n/m
	return from, max(to, from+1)
}

// mean is the mean colour of the pixels [x0, x1) of the first rows.
func mean(img *image.RGBA, x0, x1, rows int) color.RGBA {
	var r, g, b, a, n uint64
	for y := range rows {
		line := img.Pix[y*img.Stride+4*x0 : y*img.Stride+4*x1]
		for i := 0; i < len(line); i += 4 {
			r, g, b, a = r+uint64(line[i]), g+uint64(line[i+1]), b+uint64(line[i+2]), a+uint64(line[i+3])
			n++
		}
	}
	return color.RGBA{R: uint8(r / n), G: uint8(g / n), B: uint8(b / n), A: uint8(a / n)}
}

// upright turns an image as its camera says (Exif orientation 1 to 8).
func upright(src *image.RGBA, turned int) *image.RGBA {
	if turned <= 1 || turned > 8 {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	size := image.Rect(0, 0, w, h)
	if turned >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	dst := image.NewRGBA(size)
	for y := range size.Dy() {
		for x := range size.Dx() {
			dst.SetRGBA(x, y, src.RGBAAt(origin(turned, x, y, w, h)))
		}
	}
	return dst
}

// origin is where the pixel at (x, y) of the upright image stands in the one of w by h.
func origin(turned, x, y, w, h int) (int, int) {
	switch turned {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return y, h - 1 - x
	case 7:
		return w - 1 - y, h - 1 - x
	case 8:
		return w - 1 - y, x
	}
	return x, y
}

// encode writes an image as the APIs take it: without loss where that is small, else as a photograph.
func encode(img *image.RGBA) (data []byte, mediaType string, err error) {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil, "", fmt.Errorf("encode picture: %w", err)
	}
	const small = 400_000
	if b.Len() <= small || !img.Opaque() && b.Len() <= maxSentBytes {
		return b.Bytes(), "image/png", nil
	}
	flat := image.NewRGBA(img.Rect)
	draw.Draw(flat, flat.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Rect, img, image.Point{}, draw.Over)
	b.Reset()
	if err := jpeg.Encode(&b, flat, &jpeg.Options{Quality: 85}); err != nil {
		return nil, "", fmt.Errorf("encode picture: %w", err)
	}
	return b.Bytes(), "image/jpeg", nil
}
