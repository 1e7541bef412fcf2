package markup

import "strings"

const ellipsis = " …"

// CutPreview makes unfinished Markdown fit to be shown: cut to limit units with " …" behind it, an
// open code fence closed (spec/chat.md §2.4). A limit of 0 only closes the fence.
func CutPreview(md string, limit int) string {
	md = normalise(md)
	f := openFence(md)
	if limit <= 0 || Units(closed(md, f)) <= limit {
		return closed(md, f)
	}
	limit = max(limit, leastLimit)
	for room := limit - Units(ellipsis); room > 0; room -= Units(f.closer) + 1 {
		cut := prefix(md, room)
		cut = strings.TrimRight(cut[:characterEnd(md, len(cut))], " \t\n")
		if onlyOpener(cut) {
			cut = strings.TrimRight(cut[:strings.LastIndexByte(cut, '\n')+1], " \t\n")
		}
		if cut == "" {
			break
		}
		if looksLikeFence(cut[strings.LastIndexByte(cut, '\n')+1:]) {
			cut += "\n…"
		} else {
			cut += ellipsis
		}
		f = openFence(cut)
		if shown := closed(cut, f); Units(shown) <= limit {
			return shown
		}
	}
	return "…"
}

// onlyOpener reports whether the last line opens a fence: nothing of its content would be seen,
// and what follows would become its info string.
func onlyOpener(md string) bool {
	i := strings.LastIndexByte(md, '\n') + 1
	_, ok := opens(md[i:])
	return ok && !openFence(strings.TrimSuffix(md[:i], "\n")).open()
}

func closed(md string, f fence) string {
	if !f.open() {
		return md
	}
	return md + "\n" + f.closer
}
