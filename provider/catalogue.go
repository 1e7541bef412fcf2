package provider

import (
	"slices"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// Catalogue is the embedded list of models with their abilities and prices. It is read on first
// use and never changes; one may serve every Registry of a process.
type Catalogue struct {
	load func() map[string]shelf
}

// shelf holds the models of one provider.
type shelf struct {
	models  map[string]ModelInfo // by lower-case id
	ids     []string             // the provider's own defaults first
	largest string               // the provider's own default
}

// NewCatalogue returns the embedded catalogue.
func NewCatalogue() *Catalogue {
	return &Catalogue{load: sync.OnceValue(func() map[string]shelf { return index(embedded.GetAll()) })}
}

// ModelInfo is what is known about a model. Numbers that are not known are 0; abilities that are
// not known count as given, since only a model that is *known* to lack one is passed over
// (spec/failover.md §4).
type ModelInfo struct {
	Known         bool // the catalogue or the configuration names the model
	Name          string
	Images        bool
	Tools         bool
	Reasoning     bool     // known to think
	Efforts       []string // the thinking levels the model takes, if it says; must not be changed
	ContextWindow int      // tokens
	MaxOutput     int      // tokens
	Price         *Price   // nil = unknown
	Local         bool     // served from this machine or network
}

func unknownModel(local bool) ModelInfo {
	return ModelInfo{Images: true, Tools: true, Local: local}
}

// DefaultModel returns the model that the catalogue recommends for a built-in provider.
func (c *Catalogue) DefaultModel(provider string) (string, bool) {
	def, ok := Builtin(provider)
	if !ok || def.catalogue == "" {
		return "", false
	}
	s := c.load()[def.catalogue]
	_, ok = s.models[strings.ToLower(s.largest)]
	return s.largest, ok
}

// lookup finds a model by its exact id, else without the date at its end.
func (c *Catalogue) lookup(catalogueID, model string) (ModelInfo, bool) {
	switch catalogueID {
	case "":
		return ModelInfo{}, false
	case bedrockCatalogue:
		return c.bedrock(model)
	}
	models := c.load()[catalogueID].models
	id := strings.TrimPrefix(strings.ToLower(model), "models/")
	if info, ok := models[id]; ok {
		return info, true
	}
	info, ok := models[withoutDate(id)]
	return info, ok
}

func index(all []catwalk.Provider) map[string]shelf {
	shelves := make(map[string]shelf, len(all))
	for _, p := range all {
		s := shelf{models: make(map[string]ModelInfo, len(p.Models)), largest: p.DefaultLargeModelID}
		for _, m := range p.Models {
			s.models[strings.ToLower(m.ID)] = fromCatwalk(m)
			s.ids = append(s.ids, m.ID)
		}
		rank := func(id string) int {
			switch id {
			case p.DefaultLargeModelID:
				return 0
			case p.DefaultSmallModelID:
				return 1
			}
			return 2
		}
		slices.SortStableFunc(s.ids, func(a, b string) int { return rank(a) - rank(b) })
		shelves[string(p.ID)] = s
	}
	return shelves
}

func fromCatwalk(m catwalk.Model) ModelInfo {
	info := ModelInfo{
		Known: true, Name: m.Name, Images: m.SupportsImages, Tools: true, Reasoning: m.CanReason,
		Efforts: m.ReasoningLevels, ContextWindow: int(m.ContextWindow), MaxOutput: int(m.DefaultMaxTokens),
	}
	if m.CostPer1MIn > 0 || m.CostPer1MOut > 0 {
		info.Price = &Price{Input: m.CostPer1MIn, Output: m.CostPer1MOut, CacheRead: m.CostPer1MInCached, CacheWrite: m.CostPer1MOutCached}
	}
	return info
}

// withoutDate cuts "-20260101" or "-2026-01-01" off the end of a model id.
func withoutDate(id string) string {
	for _, shape := range []string{"-dddddddd", "-dddd-dd-dd"} {
		if len(id) > len(shape) && matches(id[len(id)-len(shape):], shape) {
			return id[:len(id)-len(shape)]
		}
	}
	return id
}

func matches(s, shape string) bool {
	for i := range len(shape) {
		digit := s[i] >= '0' && s[i] <= '9'
		if (shape[i] == 'd') != digit || (shape[i] == '-') != (s[i] == '-') {
			return false
		}
	}
	return true
}
