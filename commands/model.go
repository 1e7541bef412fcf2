package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy/chat"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// refusal ends a selection that must not be made; its text is for chat.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// maxButtons is how many models /model offers to press.
const maxButtons = 8

func (r *Registry) model(ctx context.Context, c Call, args string) (Reply, error) {
	args = strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(args, " -s"), "-s"))
	switch strings.ToLower(args) {
	case "", "list":
		return r.pick(ctx, c)
	case "status":
		return r.credentials(ctx, c)
	}
	text, err := r.choose(ctx, c, args)
	var no *refusal
	if errors.As(err, &no) {
		return Reply{Text: no.text}, nil
	}
	return Reply{Text: text}, err
}

// choose selects a model for the session, or refuses without changing anything (spec/failover.md §3).
func (r *Registry) choose(ctx context.Context, c Call, args string) (string, error) {
	if _, _, err := r.session(ctx, c); err != nil {
		return "", err
	}
	running := r.deps.Lanes.State(c.Key).Active
	def := r.deps.Models.Agent(c.Agent).Primary
	if word, profile, _ := strings.Cut(args, "@"); strings.EqualFold(word, "default") {
		return r.chooseDefault(ctx, c, def, profile, running)
	}
	choice, err := r.resolve(ctx, c, args)
	if err != nil {
		return "", err
	}
	if choice.Profile != "" {
		if err := r.checkProfile(ctx, c, choice.Ref, choice.Profile); err != nil {
			return "", err
		}
	}
	if choice.Ref == def {
		return r.setDefault(ctx, c, def, choice.Profile, running)
	}
	if !r.deps.Models.Allowed(choice.Ref) {
		return "", &refusal{fmt.Sprintf("Model override \"%s\" is not allowed by agents.defaults.modelPolicy.allow. /models lists what is.", choice.Ref)}
	}
	_, err = r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error {
		s.Select(choice.Ref, choice.Profile, running)
		return nil
	})
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("🧠 Model for this session: %s (strict - no fallbacks)", choice.Ref)
	if choice.Profile != "" {
		text += " using profile " + string(choice.Profile)
	}
	text += "."
	if choice.Guessed {
		text += fmt.Sprintf(" (I assumed the provider %s.)", choice.Ref.Provider)
	}
	return text + switching(choice.Ref, running), nil
}

func (r *Registry) chooseDefault(ctx context.Context, c Call, def llm.ModelRef, profile string, running bool) (string, error) {
	var id llm.ProfileID
	if profile != "" {
		choice, err := r.resolve(ctx, c, def.String()+"@"+profile)
		if err != nil {
			return "", err
		}
		if id = choice.Profile; id == "" {
			return "", &refusal{fmt.Sprintf("I don't know the profile %q.", profile)}
		}
		if err := r.checkProfile(ctx, c, def, id); err != nil {
			return "", err
		}
	}
	return r.setDefault(ctx, c, def, id, running)
}

func (r *Registry) setDefault(ctx context.Context, c Call, def llm.ModelRef, profile llm.ProfileID, running bool) (string, error) {
	_, err := r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error {
		s.SelectDefault(profile, running)
		return nil
	})
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("🧠 Using the configured default: %s", def)
	if profile != "" {
		text += " with profile " + string(profile)
	}
	return text + "." + switching(def, running), nil
}

func switching(ref llm.ModelRef, running bool) string {
	if !running {
		return ""
	}
	return fmt.Sprintf("\n🔀 %s will be used from the next step.", ref)
}

// resolve reads a number of the list, or whatever else names a model.
func (r *Registry) resolve(ctx context.Context, c Call, text string) (Choice, error) {
	if n, err := strconv.Atoi(text); err == nil {
		list := r.choices(c)
		if n < 1 || n > len(list) {
			return Choice{}, &refusal{fmt.Sprintf("There is no number %d in the list. /model shows it.", n)}
		}
		return Choice{Ref: list[n-1]}, nil
	}
	choice, err := r.deps.Models.Resolve(ctx, c.Agent, text)
	if err != nil {
		return choice, &refusal{err.Error()}
	}
	return choice, nil
}

func (r *Registry) checkProfile(ctx context.Context, c Call, ref llm.ModelRef, id llm.ProfileID) error {
	switch {
	case id.Provider() != ref.Provider:
		return &refusal{fmt.Sprintf("The profile %s belongs to %s, not to %s.", id, id.Provider(), ref.Provider)}
	case !r.deps.Models.ProfileExists(ctx, c.Agent, id):
		return &refusal{fmt.Sprintf("I don't know the profile %s.", id)}
	}
	return nil
}

// choices is the numbered list: the configured chain, then everything else that may be selected.
func (r *Registry) choices(c Call) []llm.ModelRef {
	m := r.deps.Models.Agent(c.Agent)
	var list []llm.ModelRef
	for _, ref := range append(append([]llm.ModelRef{m.Primary}, m.Fallbacks...), r.deps.Models.Known()...) {
		if !ref.IsZero() && !slices.Contains(list, ref) && (ref == m.Primary || r.deps.Models.Allowed(ref)) {
			list = append(list, ref)
		}
	}
	return list
}

func (r *Registry) pick(ctx context.Context, c Call) (Reply, error) {
	s, _, err := r.session(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	var b strings.Builder
	b.WriteString(r.modelLine(s, c) + "\n\n")
	reply := Reply{}
	for i, ref := range r.choices(c) {
		if i == 30 {
			b.WriteString("… /models shows all.\n")
			break
		}
		fmt.Fprintf(&b, "%d. %s\n", i+1, r.described(ctx, s, c, ref))
		if i < maxButtons {
			reply.Buttons = append(reply.Buttons, chat.Button{Label: ref.String(), Command: "/model " + ref.String()})
		}
	}
	b.WriteString("\nChoose with /model <number>, or /model default.")
	reply.Text = b.String()
	return reply, nil
}

// described is a model with what marks it.
func (r *Registry) described(ctx context.Context, s session.Session, c Call, ref llm.ModelRef) string {
	m := r.deps.Models.Agent(c.Agent)
	var marks []string
	if r.selection(s, c.Agent).Ref == ref {
		marks = append(marks, "selected")
	}
	if ref == m.Primary {
		marks = append(marks, "primary")
	}
	if i := slices.Index(m.Fallbacks, ref); i >= 0 {
		marks = append(marks, fmt.Sprintf("fallback %d", i+1))
	}
	if until := r.blockedUntil(ctx, c.Agent, ref); until != "" {
		marks = append(marks, until)
	}
	text := "`" + ref.String() + "`"
	if alias := r.deps.Models.Alias(ref); alias != "" {
		text += " (" + alias + ")"
	}
	if len(marks) > 0 {
		text += " — " + strings.Join(marks, ", ")
	}
	return text
}

// blockedUntil says until when no profile can serve a model, "" when one can.
func (r *Registry) blockedUntil(ctx context.Context, agent string, ref llm.ModelRef) string {
	snap, err := r.deps.Health(ctx, agent)
	if err != nil {
		return ""
	}
	now := r.deps.Clock.Now()
	profiles := r.deps.Models.Profiles(ctx, agent, ref)
	if len(profiles) == 0 {
		return "no credential"
	}
	for _, p := range profiles {
		if _, blocked := snap.Health.Block(p, ref.Model, now); !blocked {
			return ""
		}
	}
	end := policy.SoonestExpiry([]policy.Candidate{{Ref: ref, Profiles: profiles}}, snap.Health, now)
	return "cooldown until " + r.when(agent, end)
}

func (r *Registry) models(ctx context.Context, c Call, args string) (Reply, error) {
	s, _, err := r.session(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	provider, page := "", 1
	for _, word := range strings.Fields(args) {
		if n, err := strconv.Atoi(word); err == nil {
			page = max(n, 1)
			continue
		}
		provider = llm.NormalizeProvider(word)
	}
	var list []llm.ModelRef
	for _, ref := range r.choices(c) {
		if provider == "" || ref.Provider == provider {
			list = append(list, ref)
		}
	}
	if len(list) == 0 {
		return Reply{Text: fmt.Sprintf("There is no model of %q here. /models shows all.", provider)}, nil
	}
	const size = 20
	pages := (len(list) + size - 1) / size
	page = min(page, pages)
	var b strings.Builder
	for _, ref := range list[(page-1)*size : min(page*size, len(list))] {
		b.WriteString("• " + r.described(ctx, s, c, ref) + "\n")
	}
	if pages > 1 {
		fmt.Fprintf(&b, "Page %d of %d: /models %s %d", page, pages, provider, page%pages+1)
	}
	return Reply{Text: strings.TrimSpace(b.String())}, nil
}

// credentials lists the profiles of the providers in the chain, without secrets.
func (r *Registry) credentials(ctx context.Context, c Call) (Reply, error) {
	if !c.details() {
		return Reply{Text: "Only the bot owner can see credentials here."}, nil
	}
	snap, err := r.deps.Health(ctx, c.Agent)
	if err != nil {
		return Reply{}, err
	}
	var b strings.Builder
	var seen []string
	for _, ref := range r.choices(c) {
		if slices.Contains(seen, ref.Provider) {
			continue
		}
		seen = append(seen, ref.Provider)
		fmt.Fprintf(&b, "**%s**\n", ref.Provider)
		profiles := r.deps.Models.Profiles(ctx, c.Agent, llm.ModelRef{Provider: ref.Provider})
		if len(profiles) == 0 {
			b.WriteString("no credential\n")
		}
		for _, p := range profiles {
			fmt.Fprintf(&b, "• %s — %s\n", p, r.profileState(c.Agent, snap, p))
		}
	}
	return Reply{Text: strings.TrimSpace(b.String())}, nil
}

// profileState says in words how a profile is.
func (r *Registry) profileState(agent string, snap policy.Snapshot, p llm.ProfileID) string {
	now := r.deps.Clock.Now()
	var parts []string
	for _, x := range unhealthy(snap, now) {
		if x.key.Profile == p {
			parts = append(parts, r.windowText(agent, x))
		}
	}
	if len(parts) == 0 {
		return "ok"
	}
	return strings.Join(parts, "; ")
}
