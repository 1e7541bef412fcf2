package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy/llm"
	"understudy/session"
)

func (r *Registry) model(ctx context.Context, c Call, args string) (Reply, error) {
	// -s asks for what is the case anyway: every choice is the session's.
	args = strings.Join(slices.DeleteFunc(strings.Fields(args), func(w string) bool { return w == "-s" }), " ")
	switch strings.ToLower(args) {
	case "", "list":
		return r.pick(ctx, c)
	case "status":
		return r.credentials(ctx, c)
	}
	text, err := r.choose(ctx, c, args)
	return Reply{Text: text}, err
}

// choose selects a model for the session and returns what to say, or a refusal that has changed
// nothing (spec/failover.md §3).
func (r *Registry) choose(ctx context.Context, c Call, text string) (string, error) {
	t, err := r.target(ctx, c, text)
	if err != nil {
		return "", err
	}
	running, err := r.apply(ctx, c, t)
	if err != nil {
		return "", err
	}
	said := t.said()
	if len(r.deps.Models.Profiles(ctx, c.Agent, t.Ref)) == 0 {
		said += fmt.Sprintf("\n⚠️ There is no usable credential for %s yet.", t.Ref.Provider)
	}
	if running {
		said += fmt.Sprintf("\n🔀 %s will be used from the next step.", t.Ref)
	}
	return said, nil
}

// OneOff reads a model that is to answer one turn alone, by the rules of /model, and selects nothing. Its
// error is a *Refusal, or a fault on our side. A turn cannot lock a profile: whoever calls it has to refuse
// a Choice that names one.
func (r *Registry) OneOff(ctx context.Context, c Call, text string) (Choice, error) {
	t, err := r.target(ctx, c, text)
	return t.Choice, err
}

// target is what a selection comes down to once every check has passed.
type target struct {
	Choice
	isDefault bool // the configured primary: no override is stored
}

// said is the confirmation (spec/chat.md §3.4).
func (t target) said() string {
	text := fmt.Sprintf("🧠 Using the configured default: %s", t.Ref)
	switch {
	case !t.isDefault && t.Profile != "":
		text = fmt.Sprintf("🧠 Model for this session: %s (strict - no fallbacks) using profile %s", t.Ref, t.Profile)
	case !t.isDefault:
		text = fmt.Sprintf("🧠 Model for this session: %s (strict - no fallbacks)", t.Ref)
	case t.Profile != "":
		text += " using profile " + string(t.Profile)
	}
	if t.Guessed {
		return text + fmt.Sprintf(". (I assumed the provider %s.)", t.Ref.Provider)
	}
	return text + "."
}

// target reads a selection and checks everything that could forbid it. It changes nothing.
func (r *Registry) target(ctx context.Context, c Call, text string) (target, error) {
	def := r.deps.Models.Agent(c.Agent).Primary
	choice, err := r.resolve(ctx, c, text, def)
	if err != nil {
		return target{}, err
	}
	if choice.Profile != "" {
		if err := r.checkProfile(ctx, c, choice); err != nil {
			return target{}, err
		}
	}
	if choice.Ref == def {
		return target{choice, true}, nil
	}
	if !r.deps.Models.Allowed(choice.Ref) {
		return target{}, &Refusal{fmt.Sprintf("Model override \"%s\" is not allowed by agents.defaults.modelPolicy.allow.\n/models lists what is.", choice.Ref)}
	}
	return target{choice, false}, nil
}

// resolve reads "default", a number of the list, or whatever else names a model, each perhaps
// followed by @profile.
func (r *Registry) resolve(ctx context.Context, c Call, text string, def llm.ModelRef) (Choice, error) {
	word, profile, locked := strings.Cut(text, "@")
	var ref llm.ModelRef
	if n, err := strconv.Atoi(word); err == nil {
		list := r.choices(ctx, c)
		if n < 1 || n > len(list) {
			return Choice{}, &Refusal{fmt.Sprintf("There is no number %d in the list. /model shows it.", n)}
		}
		ref = list[n-1]
	} else if strings.EqualFold(word, "default") {
		if def.IsZero() {
			return Choice{}, &Refusal{"No default model is configured. /models lists what there is."}
		}
		ref = def
	}
	switch {
	case ref.IsZero():
	case !locked:
		return Choice{Ref: ref}, nil
	default:
		text = ref.String() + "@" + profile
	}
	choice, err := r.deps.Models.Resolve(ctx, c.Agent, text)
	switch {
	case err != nil:
		return Choice{}, &Refusal{err.Error()}
	case !ref.IsZero() && choice.Profile == "":
		return Choice{}, &Refusal{fmt.Sprintf("I don't know the profile %s.", quote(profile))}
	}
	return choice, nil
}

func (r *Registry) checkProfile(ctx context.Context, c Call, choice Choice) error {
	switch id := choice.Profile; {
	case id.Provider() != choice.Ref.Provider:
		return &Refusal{fmt.Sprintf("The profile %s belongs to %s, not to %s.", code(clip(string(id), maxQuote)), clip(id.Provider(), maxQuote), choice.Ref.Provider)}
	case !r.deps.Models.ProfileExists(ctx, c.Agent, id):
		return &Refusal{fmt.Sprintf("I don't know the profile %s.", code(clip(string(id), maxQuote)))}
	}
	return nil
}

// apply stores a selection; running tells that a turn is under way, which will take it over
// (spec/failover.md §8.7). Whether one is, is asked while the row is locked, so that a turn either
// reads the new selection or finds the mark.
func (r *Registry) apply(ctx context.Context, c Call, t target) (running bool, err error) {
	if _, err := r.ensure(ctx, c); err != nil {
		return false, err
	}
	s, err := r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error {
		running = !c.lane && r.deps.Lanes.State(c.Key).Active
		if t.isDefault {
			s.SelectDefault(t.Profile, running)
		} else {
			s.Select(t.Ref, t.Profile, running)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if running {
		r.switched(c.Key)
	}
	r.tellThreads(ctx, s.Key)
	return running, nil
}

func (r *Registry) switched(key string) {
	if r.deps.Switched != nil {
		r.deps.Switched(key)
	}
}

// tellThreads lets the turns that run in threads of a conversation take its new selection over, where the
// thread has no choice of its own. Any other turn reads it when it begins.
func (r *Registry) tellThreads(ctx context.Context, key string) {
	threads, err := r.deps.Sessions.Children(ctx, key)
	for _, thread := range threads {
		if !r.deps.Lanes.State(thread).Active {
			continue
		}
		inherits := false
		_, failed := r.deps.Sessions.Update(ctx, thread, func(s *session.Session) error {
			inherits = s.Override == session.Override{}
			s.SwitchPending = s.SwitchPending || inherits
			return nil
		})
		err = errors.Join(err, failed)
		if inherits && failed == nil {
			r.switched(thread)
		}
	}
	if err != nil {
		r.deps.Log.WarnContext(ctx, "threads_not_told", "session", key, "error", err.Error())
	}
}
