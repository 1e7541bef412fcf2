package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"understudy/llm"
	"understudy/session"
)

// The modes of the footer; a session without one has none.
const (
	usageOff    = "off"
	usageTokens = "tokens"
	usageFull   = "full"
)

// usage changes the footer of a conversation's answers, or tells what was used (spec/chat.md §3.3).
func (r *Registry) usage(ctx context.Context, c Call, args string) (Reply, error) {
	s, err := r.ensure(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	mode := strings.ToLower(args)
	switch mode {
	case "":
		mode = nextUsage(s.UsageMode)
	case usageOff, usageTokens, usageFull:
	case "reset":
		if err := r.deps.Sessions.ResetUsage(ctx, c.Key); err != nil {
			return Reply{}, err
		}
		return Reply{Text: "🧮 The counters of this conversation begin anew."}, nil
	case "cost":
		return r.cost(ctx, c, s)
	default:
		return Reply{}, unknown("mode", args, []string{usageOff, usageTokens, usageFull, "reset", "cost"})
	}
	_, err = r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error { s.UsageMode = mode; return nil })
	switch mode {
	case usageTokens:
		return Reply{Text: "🧮 Usage footer: tokens."}, err
	case usageFull:
		return Reply{Text: "🧮 Usage footer: tokens, cost and model."}, err
	}
	return Reply{Text: "🧮 Usage footer: off."}, err
}

func nextUsage(mode string) string {
	switch mode {
	case usageTokens:
		return usageFull
	case usageFull:
		return usageOff
	}
	return usageTokens
}

// maxModels bounds the models that /usage cost lists.
const maxModels = 8

// cost sums up what an agent used.
func (r *Registry) cost(ctx context.Context, c Call, s session.Session) (Reply, error) {
	now := r.deps.Clock.Now()
	month := r.day(c.Agent, now.AddDate(0, 0, -29))
	rows, err := r.deps.Sessions.Totals(ctx, c.Agent, month)
	if err != nil {
		return Reply{}, err
	}
	lines := []string{fmt.Sprintf("🧮 This conversation: %d in / %d out", s.TokensIn, s.TokensOut)}
	if !s.UsageSince.IsZero() {
		lines[0] += ", since " + moment(s.UsageSince, now, r.deps.Zone(c.Agent))
	}
	for _, x := range []struct {
		name string
		days int
	}{{"Today", 1}, {"7 days", 7}, {"30 days", 30}} {
		since := r.day(c.Agent, now.AddDate(0, 0, 1-x.days))
		var t spent
		for _, row := range rows {
			if row.Day >= since {
				t.add(row)
			}
		}
		lines = append(lines, x.name+": "+t.String())
	}
	return Reply{Text: strings.Join(append(lines, perModel(rows)...), "\n")}, nil
}

// perModel lists what each model took, the most expensive first.
func perModel(rows []session.Total) []string {
	by := map[llm.ModelRef]*spent{}
	var refs []llm.ModelRef
	for _, row := range rows {
		if by[row.Model] == nil {
			by[row.Model] = &spent{}
			refs = append(refs, row.Model)
		}
		by[row.Model].add(row)
	}
	slices.SortFunc(refs, func(a, b llm.ModelRef) int {
		return cmp.Or(cmp.Compare(by[b].micros, by[a].micros), cmp.Compare(by[b].in+by[b].out, by[a].in+by[a].out), cmp.Compare(a.String(), b.String()))
	})
	var lines []string
	for i, ref := range refs {
		if i == maxModels {
			lines = append(lines, fmt.Sprintf("… and %d more models", len(refs)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("• %s: %s", code(ref.String()), by[ref]))
	}
	return lines
}

// spent is a sum over rows.
type spent struct {
	in, out, turns, unpriced, micros int64
}

func (t *spent) add(row session.Total) {
	u := row.Usage
	t.in += int64(u.Input) + int64(u.CacheRead) + int64(u.CacheWrite)
	t.out += int64(u.Output)
	t.turns += row.Turns
	t.unpriced += row.Unpriced
	t.micros += row.CostMicros
}

// String never makes an unknown price look like none.
func (t *spent) String() string {
	text := fmt.Sprintf("%d in / %d out", t.in, t.out)
	switch {
	case t.turns == 0:
		return "nothing"
	case t.unpriced >= t.turns && t.micros == 0:
		return text + " · cost unknown"
	case t.unpriced > 0:
		return text + fmt.Sprintf(" · %s and the unknown cost of %d of %d turns", dollars(t.micros), t.unpriced, t.turns)
	}
	return text + " · " + dollars(t.micros)
}

// dollars writes millionths of a dollar; what is not nothing never looks like it.
func dollars(micros int64) string {
	if micros > 0 && micros < 100 {
		return "<$0.0001"
	}
	return fmt.Sprintf("$%.4f", float64(micros)/1e6)
}
