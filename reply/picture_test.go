package reply

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"pgregory.net/rapid"
)

// drawing is an image whose left upper quarter is red, the rest blue.
func drawing(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{B: 255, A: 255}
			if x < w/2 && y < h/2 {
				c = color.RGBA{R: 255, A: 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

// drawn is a drawing as a PNG file.
func drawn(w, h int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, drawing(w, h)); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func photo(w, h int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, drawing(w, h), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// held puts an Exif header into a photo.
func held(jpg []byte, order binary.AppendByteOrder, turned uint16) []byte {
	mark := "II"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		mark = "MM"
	}
	exif := append([]byte("Exif\x00\x00"), mark...)
	exif = order.AppendUint16(exif, 42)
	exif = order.AppendUint32(exif, 8)
	exif = order.AppendUint16(exif, 1)
	exif = order.AppendUint16(exif, 0x0112)
	exif = order.AppendUint16(exif, 3)
	exif = order.AppendUint32(exif, 1)
	exif = order.AppendUint16(exif, turned)
	exif = append(exif, 0, 0)
	out := append([]byte{}, jpg[:2]...)
	out = append(out, 0xFF, 0xE1)
	out = binary.BigEndian.AppendUint16(out, uint16(len(exif)+2))
	return append(append(out, exif...), jpg[2:]...)
}

// webp is the beginning of a file of the extended format.
func webp(w, h int) []byte {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0A\x00\x00\x00"), 0, 0, 0, 0)
	b = append(b, byte(w-1), byte((w-1)>>8), byte((w-1)>>16), byte(h-1), byte((h-1)>>8), byte((h-1)>>16))
	return append(b, make([]byte, 8)...)
}

func TestPicturesAreMadeToFit(t *testing.T) {
	var moving bytes.Buffer
	frame := image.NewPaletted(image.Rect(0, 0, 2000, 1000), color.Palette{color.Black, color.White})
	if err := gif.EncodeAll(&moving, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{1, 1}}); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		data  []byte
		w, h  int // afterwards
		kind  string
		isOld bool // nothing was changed
	}{
		"small":          {drawn(1200, 10), 1200, 10, "image/png", true},
		"wide":           {drawn(2400, 600), 1200, 300, "image/png", false},
		"high":           {photo(300, 2400), 150, 1200, "image/png", false},
		"one line":       {drawn(5000, 1), 1200, 1, "image/png", false},
		"moving":         {moving.Bytes(), 1200, 600, "image/png", false},
		"held upright":   {held(photo(40, 20), binary.LittleEndian, 1), 40, 20, "image/jpeg", true},
		"held sideways":  {held(photo(40, 20), binary.BigEndian, 6), 20, 40, "image/png", false},
		"nobody reads":   {webp(2000, 3000), 2000, 3000, "image/webp", true},
		"wrongly called": {photo(8, 8), 8, 8, "image/jpeg", true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newDarkroom().fit(t.Context(), x.data, 1200)
			if err != nil {
				t.Fatal(err)
			}
			w, h, err := measure(p.mediaType, p.data)
			if err != nil || w != x.w || h != x.h || p.mediaType != x.kind || bytes.Equal(p.data, x.data) != x.isOld {
				t.Errorf("%s of %dx%d, %v; want %s of %dx%d", p.mediaType, w, h, err, x.kind, x.w, x.h)
			}
		})
	}
}

func TestPicturesThatCannotBeShown(t *testing.T) {
	bomb := drawn(1, 1)
	binary.BigEndian.PutUint32(bomb[16:], 8000) // the header promises 64 megapixels
	binary.BigEndian.PutUint32(bomb[20:], 8000)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	for name, x := range map[string]struct {
		data []byte
		want error
	}{
		"text":            {[]byte("<svg/>"), errNoPicture},
		"nothing":         {nil, errNoPicture},
		"half a header":   {drawn(9, 9)[:20], errNoPicture},
		"half a picture":  {drawn(2000, 2000)[:2000], errNoPicture},
		"many pixels":     {bomb, errTooLarge},
		"very long":       {webp(40_000, 1), errTooLarge},
		"a webp's stub":   {webp(4, 4)[:25], errNoPicture},
		"endless passes":  {append(photo(2000, 20), bytes.Repeat([]byte{0xFF, 0xDA}, 100)...), errNoPicture},
		"webp too heavy":  {append(webp(9, 9), make([]byte, maxSentBytes)...), errTooLarge},
		"huge webp sizes": {webp(1<<24, 1<<24), errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newDarkroom().fit(t.Context(), x.data, 1200); !errors.Is(err, x.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The red quarter tells where each orientation puts the left upper corner.
func TestPicturesStandUpright(t *testing.T) {
	corner := map[int][2]int{1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1}}
	for turned, at := range corner {
		got := upright(drawing(40, 20), turned)
		w, h := got.Rect.Dx(), got.Rect.Dy()
		if turned >= 5 != (w < h) {
			t.Errorf("%d: %dx%d", turned, w, h)
		}
		for y := range 2 {
			for x := range 2 {
				c := got.RGBAAt(w/4+x*w/2, h/4+y*h/2)
				if isRed := c.R > c.B; isRed != (at == [2]int{x, y}) {
					t.Errorf("%d: quarter %d,%d is red: %v", turned, x, y, isRed)
				}
			}
		}
	}
}

func TestShrinkingKeepsColours(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, h := rapid.IntRange(1, 90).Draw(rt, "w"), rapid.IntRange(1, 90).Draw(rt, "h")
		side := rapid.IntRange(1, 60).Draw(rt, "side")
		c := color.RGBA{R: rapid.Byte().Draw(rt, "r"), G: 7, B: 200, A: 255}
		src := image.NewRGBA(image.Rect(5, 3, 5+w, 3+h))
		for i := range w * h {
			src.SetRGBA(5+i%w, 3+i/w, c)
		}
		got := shrink(src, side)
		if longest := max(got.Rect.Dx(), got.Rect.Dy()); longest > side || longest != min(side, max(w, h)) {
			rt.Fatalf("%dx%d became %s with side %d", w, h, got.Rect, side)
		}
		for y := range got.Rect.Dy() {
			for x := range got.Rect.Dx() {
				if got.RGBAAt(x, y) != c {
					rt.Fatalf("%v at %d,%d of %s", got.RGBAAt(x, y), x, y, got.Rect)
				}
			}
		}
	})
}

func FuzzPictures(f *testing.F) {
	f.Add(held(photo(9, 9), binary.LittleEndian, 6))
	f.Add(drawn(20, 20))
	f.Add(webp(9, 9))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := newDarkroom().fit(t.Context(), data, 16)
		if err != nil || p.mediaType == "image/webp" {
			return
		}
		if w, h, err := measure(p.mediaType, p.data); err != nil || max(w, h) > 16 {
			t.Errorf("%dx%d: %v", w, h, err)
		}
	})
}

func BenchmarkPhoto(b *testing.B) {
	data := photo(4000, 3000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newDarkroom().fit(b.Context(), data, 1200); err != nil {
			b.Fatal(err)
		}
	}
}
