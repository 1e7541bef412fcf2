package reply

// Narrator is a Delivery that may show what a turn does while it does it (`streaming.mode: progress`).
type Narrator interface {
	// Doing takes one line of Markdown: a model that is asked, a tool that runs. People of the conversation
	// may see it, so no input of a tool stands in it.
	Doing(line string)
}

// doing tells what the turn does now. An internal turn has nobody who watches.
func (t *turn) doing(sign, name string) {
	if n, ok := t.out.(Narrator); ok && !t.req.internal() {
		n.Doing(sign + " " + t.shown(name, maxShownInput))
	}
}
