package reply

import "encoding/binary"

// orientation reads from a JPEG's Exif header how the camera was held, 1 to 8; 1 where that is not
// said. The bytes are a stranger's: nothing is read outside of them.
func orientation(data []byte) int {
	const sos, app1 = 0xDA, 0xE1
	if len(data) < 4 || data[0] != 0xFF || data[1] != 0xD8 {
		return 1
	}
	for i := 2; i+4 <= len(data) && data[i] == 0xFF && data[i+1] != sos; {
		size := int(binary.BigEndian.Uint16(data[i+2:]))
		if size < 2 || i+2+size > len(data) {
			return 1
		}
		if data[i+1] == app1 {
			if o := exifOrientation(data[i+4 : i+2+size]); o != 0 {
				return o
			}
		}
		i += 2 + size
	}
	return 1
}

// exifOrientation reads the tag from a segment; 0 = it is not there.
func exifOrientation(b []byte) int {
	const magic, tag = "Exif\x00\x00", 0x0112
	if len(b) < len(magic)+8 || string(b[:len(magic)]) != magic {
		return 0
	}
	b = b[len(magic):]
	var order binary.ByteOrder = binary.LittleEndian
	switch string(b[:2]) {
	case "II":
	case "MM":
		order = binary.BigEndian
	default:
		return 0
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return 0
	}
	for i := range int64(order.Uint16(b[at:])) {
		entry := at + 2 + 12*i
		if entry+12 > int64(len(b)) {
			return 0
		}
		if order.Uint16(b[entry:]) == tag {
			if o := int(order.Uint16(b[entry+8:])); o >= 1 && o <= 8 {
				return o
			}
			return 0
		}
	}
	return 0
}
