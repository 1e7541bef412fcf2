package reply

import (
	"encoding/json"
	"errors"
	"strings"

	"understudy/llm"
)

// Bounds of an offer, in characters.
const (
	maxOfferText = 200
	maxOfferWhen = 64
)

// offerReminder is the built-in tool with which a model offers a reminder. It sets none: a person has
// to press a button, which whoever runs the turn makes of Outcome.Offer.
func offerReminder() llm.Tool {
	return llm.Tool{
		Name:        "offer_reminder",
		Description: "Offers the user to be reminded of something they or you promised to do. Use it only when a reminder would clearly help. The user sees a button and decides; do not claim that the reminder is set.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"text":{"type":"string","description":"what to remind of, one short sentence"},` +
			`"when":{"type":"string","description":"when: the user's local time such as tomorrow 9:00 or 2026-03-02 15:00, or a span such as in 2h"}},` +
			`"required":["text","when"]}`),
	}
}

// offerTool takes an offer. Nothing happens by it, so it is no work that failover must not repeat.
func (t *turn) offerTool(c llm.ToolCall) (string, error) {
	var in struct{ Text, When string }
	if err := json.Unmarshal(object(c.Input), &in); err != nil {
		return "", errors.New("text and when are needed")
	}
	if t.req.internal() {
		return "", errors.New("nobody is there to take the offer")
	}
	text, when := short(harmless(in.Text), maxOfferText), short(harmless(in.When), maxOfferWhen)
	switch {
	case text == "" || when == "":
		return "", errors.New("text and when are needed")
	case t.offer != nil:
		return "", errors.New("one reminder was offered in this turn already")
	}
	when, err := t.r.deps.OfferTime(t.req.Agent, when)
	if err != nil {
		return "", err
	}
	t.offer = &Offer{Text: text, When: when}
	return "Offered. The user decides.", nil
}

// short puts a text into one line of at most so many characters.
func short(s string, most int) string {
	r := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " "))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}
