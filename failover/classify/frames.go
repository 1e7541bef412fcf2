package classify

import "bytes"

// body reads a response body in whatever framing it came: one JSON value, several in a row, an
// array, server-sent events, a page, or bare text.
func (r *report) body(b []byte) {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\ufeff")))
	switch {
	case len(b) == 0:
	case b[0] == '{':
		for len(b) > 0 && b[0] == '{' {
			var v value
			v, b = readValue(b)
			r.object(v.raw, 0, false)
			b = trimLeft(b)
		}
	case b[0] == '[':
		for e := range elements(b) {
			if e.kind == kindObject {
				r.object(e.raw, 0, false)
			}
		}
		r.failed = r.failed || r.n > 0
	case isPage(b):
		r.html = true
		r.page(b)
	case isEventStream(b):
		r.events(b)
	case b[0] == '"':
		v, _ := readValue(b)
		r.plain(v.text())
	default:
		r.plain(b)
	}
}

// plain takes a bare text as the only layer.
func (r *report) plain(b []byte) {
	i := r.open(false)
	r.causes[i].plain = true
	r.text(i, b[:min(len(b), maxText)], 0)
	r.shut(i)
}

// events reads server-sent events. Comments say nothing, except DashScope's status line.
func (r *report) events(b []byte) {
	isError := false
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		if status, ok := bytes.CutPrefix(line, []byte(":HTTP_STATUS/")); ok && len(status) == 3 && isError {
			if r.http < 400 {
				r.http = int(status[0]-'0')*100 + int(status[1]-'0')*10 + int(status[2]-'0')
			}
			continue
		}
		field, data, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		data = bytes.TrimSpace(data)
		switch string(field) {
		case "event":
			isError = string(data) == "error" || bytes.HasSuffix(data, []byte("xception"))
		case "data":
			switch {
			case len(data) == 0, string(data) == "[DONE]":
			case data[0] == '{':
				r.failed = r.failed || isError
				r.object(data, 0, isError)
			case data[0] == '[':
				for e := range elements(data) {
					r.object(e.raw, 0, isError)
				}
			case isError:
				r.failed = true
				r.plain(data)
			}
		}
	}
}

func isEventStream(b []byte) bool {
	if b[0] == ':' {
		return true
	}
	for _, field := range [...]string{"data:", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(b, []byte(field)) {
			return true
		}
	}
	return false
}

// isPage tells whether b is HTML or XML.
func isPage(b []byte) bool {
	if b[0] != '<' {
		return false
	}
	head := bytes.ToLower(b[:min(len(b), 256)])
	for _, tag := range [...]string{"<!doctype", "<html", "<head", "<body", "<?xml", "<title", "<center", "<h1"} {
		if bytes.Contains(head, []byte(tag)) {
			return true
		}
	}
	return false
}

// page keeps a page's title as its message: enough for the log, and never matched against rules.
func (r *report) page(b []byte) {
	b = b[:min(len(b), maxText)]
	at := bytes.Index(b, []byte("<title>"))
	if at < 0 {
		return
	}
	title := b[at+len("<title>"):]
	if end := bytes.IndexByte(title, '<'); end >= 0 {
		title = title[:end]
	}
	r.causes[r.open(false)].msg = bytes.TrimSpace(title)
}
