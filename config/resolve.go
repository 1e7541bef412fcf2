package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/provider"
)

// resolve checks what the sections say together and computes what the rest of the product asks
// for. It runs only on sections that decoded without a problem.
func resolve(d *decoder, c *Config, opts Options) {
	c.anyProvider = opts.AnyProvider
	c.resolveProviders(d)
	c.resolveAliases(d)
	c.resolveAuth(d)
	c.resolveAgents(d)
	c.resolvePolicy(d)
	c.resolveSections(d)
}

// resolveProviders files provider entries under their normal spelling and completes them.
func (c *Config) resolveProviders(d *decoder) {
	out := make(map[string]provider.Config, len(c.Models.Providers))
	for _, written := range slices.Sorted(maps.Keys(c.Models.Providers)) {
		at := join("models.providers", written)
		id := llm.NormalizeProvider(written)
		if _, twice := out[id]; twice {
			d.fail(at, fmt.Sprintf("this is provider %s, which stands here already", quote(id)), "")
			continue
		}
		if id == "" || strings.ContainsAny(id, "/:@ \t\n") {
			d.fail(at, fmt.Sprintf("%s is not a provider id", quote(written)), "no spaces and none of / : @")
			continue
		}
		p := c.Models.Providers[written]
		if _, known := provider.Builtin(id); !known && c.anyProvider && p.BaseURL == "" {
			p.API = provider.Simulated
		}
		p = p.WithDefaults(id)
		d.component(at, p.Validate())
		out[id] = p
	}
	c.Models.Providers = out
}

// known reports whether the provider can be called at all.
func (c *Config) known(id string) bool {
	if _, ok := c.Models.Providers[id]; ok || c.anyProvider {
		return true
	}
	_, ok := provider.Builtin(id)
	return ok
}

// KnownProvider reports whether models of a provider can be asked, or people can sign in there; if not, hint
// says what may have been meant or what is missing.
func (c *Config) KnownProvider(id string) (known bool, hint string) {
	if _, signsIn := c.Auth.Providers[id]; signsIn || c.known(id) {
		return true, ""
	}
	return false, c.providerHint(id)
}

func (c *Config) knownProviders() []string {
	ids := append(provider.BuiltinIDs(), slices.Collect(maps.Keys(c.Models.Providers))...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (c *Config) checkProvider(d *decoder, id, at string) {
	if !c.known(id) {
		d.warn(at, fmt.Sprintf("there is no provider %s", quote(id)), c.providerHint(id))
	}
}

func (c *Config) providerHint(id string) string {
	if n := nearest(id, c.knownProviders()); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	return "add it to models.providers with a baseUrl"
}

// resolveAliases reads the short names of `agents.defaults.models`.
func (c *Config) resolveAliases(d *decoder) {
	c.aliases = map[string]llm.ModelRef{}
	owners := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(c.Agents.Defaults.Models)) {
		at := join("agents.defaults.models", key)
		ref, err := llm.ParseRef(key)
		if err != nil {
			d.fail(at, fmt.Sprintf("%s is not a model reference", quote(key)), "write provider/model")
			continue
		}
		c.checkProvider(d, ref.Provider, at)
		c.listed = append(c.listed, ref)
		alias := strings.TrimSpace(c.Agents.Defaults.Models[key].Alias)
		if alias == "" {
			continue
		}
		folded := strings.ToLower(alias)
		if other, twice := owners[folded]; twice {
			d.fail(at+".alias", fmt.Sprintf("the alias %s already belongs to %s", quote(alias), other), "")
			continue
		}
		owners[folded], c.aliases[folded] = key, ref
	}
}

// ref resolves an alias or reference as configuration means it.
func (c *Config) ref(text string) (llm.ModelRef, error) {
	if ref, ok := c.aliases[strings.ToLower(strings.TrimSpace(text))]; ok {
		return ref, nil
	}
	return llm.ParseRef(text)
}

// refHint proposes what an unresolvable model may have meant.
func (c *Config) refHint(text string) string {
	if n := nearest(text, slices.Sorted(maps.Keys(c.aliases))); n != "" {
		return fmt.Sprintf("did you mean the alias %q?", n)
	}
	return "write provider/model, or an alias of agents.defaults.models"
}

// primary resolves a model that cannot be left out.
func (c *Config) primary(d *decoder, text, at string) llm.ModelRef {
	if text == "" {
		return llm.ModelRef{}
	}
	ref, err := c.ref(text)
	if err != nil {
		d.fail(at, fmt.Sprintf("%s is neither a model reference nor an alias", quote(text)), c.refHint(text))
		return llm.ModelRef{}
	}
	if !c.known(ref.Provider) {
		d.fail(at, fmt.Sprintf("%s: there is no provider %s", ref, quote(ref.Provider)), c.providerHint(ref.Provider))
	}
	return ref
}

// chain resolves a list of fallbacks. Entries that lead nowhere or repeat are left out with a
// warning (spec/failover.md §4); the allowlist does not apply. nil stays nil.
func (c *Config) chain(d *decoder, primary llm.ModelRef, list []string, at string) []llm.ModelRef {
	if list == nil {
		return nil
	}
	out := make([]llm.ModelRef, 0, len(list))
	for i, text := range list {
		entry := fmt.Sprintf("%s[%d]", at, i)
		ref, err := c.ref(text)
		switch {
		case err != nil:
			d.warn(entry, fmt.Sprintf("%s is neither a model reference nor an alias; it is skipped", quote(text)), c.refHint(text))
		case !c.known(ref.Provider):
			d.warn(entry, fmt.Sprintf("%s is skipped: there is no provider %s", ref, quote(ref.Provider)), c.providerHint(ref.Provider))
		case ref == primary || slices.Contains(out, ref):
			d.warn(entry, fmt.Sprintf("%s stands in this chain already", ref), "the first one counts")
		default:
			out = append(out, ref)
		}
	}
	return out
}

func (c *Config) models(d *decoder, m ModelChoice, at string, own bool) policy.Models {
	_, long := d.at[at+".primary"]
	primaryAt := at
	if long {
		primaryAt = at + ".primary"
	}
	primary := c.primary(d, m.Primary, primaryAt)
	out := policy.Models{Primary: primary, Fallbacks: c.chain(d, primary, m.Fallbacks, at+".fallbacks"), Own: own}
	if primary.IsZero() && len(m.Fallbacks) > 0 {
		d.fail(at, "there are fallbacks but no primary model", "")
	}
	return out
}

func (c *Config) resolveAgents(d *decoder) {
	const at = "agents.defaults"
	def := c.Agents.Defaults
	base := Agent{
		ID:           defaultAgentID,
		Models:       c.models(d, def.Model, at+".model", false),
		ImageModels:  c.models(d, def.ImageModel, at+".imageModel", false),
		SystemPrompt: def.SystemPrompt,
		Timeout:      defaultTurnTimeout,
		Timezone:     time.Local,
	}
	if s := def.TimeoutSeconds; s != nil {
		if *s < 0 || time.Duration(*s) > longestSpan/time.Second {
			d.fail(at+".timeoutSeconds", fmt.Sprintf("%d is not a sensible number of seconds", *s), "0 means no limit")
		}
		base.Timeout = time.Duration(*s) * time.Second
	}
	if def.UserTimezone != "" {
		base.Timezone = d.zone(def.UserTimezone, at+".userTimezone")
	}
	if on := def.Commitments.Enabled; on != nil {
		base.Commitments = *on
	}
	base.SystemFiles = c.systemFiles(d, def.SystemFiles, at+".systemFiles")
	base.Heartbeat = c.heartbeat(d, def.Heartbeat, nil, base.Timezone, at+".heartbeat")
	if n := def.MaxConcurrent; n < 1 || n > 100_000 {
		d.fail(at+".maxConcurrent", fmt.Sprintf("%d is not between 1 and 100000", n), "")
	}
	c.agents = map[string]Agent{}
	for i, e := range c.Agents.List {
		c.addAgent(d, base, e, fmt.Sprintf("agents.list[%d]", i))
	}
	if len(c.Agents.List) == 0 {
		c.agents[base.ID], c.agentIDs = base, []string{base.ID}
	}
	if c.defaultAgent == "" && len(c.agentIDs) > 0 {
		c.defaultAgent = c.agentIDs[0]
	}
	if a, ok := c.agents[c.defaultAgent]; ok {
		a.Default = true
		c.agents[c.defaultAgent] = a
	}
}

func (c *Config) addAgent(d *decoder, a Agent, e AgentEntry, at string) {
	a.ID = e.ID
	switch _, twice := c.agents[e.ID]; {
	case !validAgentID(e.ID):
		d.fail(at+".id", fmt.Sprintf("%s cannot be an agent id", quote(e.ID)), "lower-case letters, digits, - and _, at most 64")
		return
	case twice:
		d.fail(at+".id", fmt.Sprintf("there is an agent %s already", quote(e.ID)), "")
		return
	case e.Default && c.defaultAgent != "":
		d.fail(at+".default", fmt.Sprintf("agent %s is the default already", quote(c.defaultAgent)), "")
	case e.Default:
		c.defaultAgent = e.ID
	}
	if e.Model != nil {
		if e.Model.Primary == "" {
			d.fail(at+".model", "a model of its own needs a primary", "")
		}
		a.Models = c.models(d, *e.Model, at+".model", true)
		if e.Model.Fallbacks == nil {
			d.warn(at+".model", fmt.Sprintf("agent %s answers with %s only: a model of its own has no fallbacks unless it lists them", quote(e.ID), a.Models.Primary), "fallbacks: [] says that it is meant so")
		}
	}
	if e.ImageModel != nil {
		a.ImageModels = c.models(d, *e.ImageModel, at+".imageModel", true)
	}
	if e.Heartbeat != nil {
		a.Heartbeat = c.heartbeat(d, *e.Heartbeat, &a.Heartbeat, a.Timezone, at+".heartbeat")
	}
	if e.Commitments != nil && e.Commitments.Enabled != nil {
		a.Commitments = *e.Commitments.Enabled
	}
	if e.SystemPrompt != nil {
		a.SystemPrompt = *e.SystemPrompt
	}
	if e.SystemFiles != nil {
		a.SystemFiles = c.systemFiles(d, e.SystemFiles, at+".systemFiles")
	}
	c.agents[a.ID] = a
	c.agentIDs = append(c.agentIDs, a.ID)
}

func validAgentID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i, r := range id {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '-' && r != '_') {
			return false
		}
	}
	return true
}

// zone loads a time zone; on failure the problem is noted and UTC returned.
func (d *decoder) zone(name, at string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") {
		d.fail(at, fmt.Sprintf("%s is not a time zone", quote(name)), "write an IANA name such as Europe/Berlin")
		return time.UTC
	}
	return loc
}

// component notes what a component's own Validate found. Its texts begin with the keys they are
// about ("baseUrl: is missing"), relative to at.
func (d *decoder) component(at string, err error) {
	found := flatten(err)
	slices.SortStableFunc(found, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for _, e := range found {
		path, text := at, e.Error()
		for {
			key, rest, ok := strings.Cut(text, ": ")
			if !ok || !keyLike.MatchString(key) {
				break
			}
			path, text = strings.TrimPrefix(path+"."+key, "."), rest
		}
		_, written := d.at[path]
		if written || !slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Text == text }) {
			d.fail(path, text, "") // a value that was inherited is reported where it is written
		}
	}
}

var keyLike = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*([.\[][A-Za-z0-9_\]-]+)*$`)

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}
