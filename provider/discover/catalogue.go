package discover

import (
	"slices"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// embeddedModels returns a look-up in the embedded catalogue, which is read on first use: the large
// and the small default model of a provider, those of them that it lists.
func embeddedModels() func(provider string) []string {
	all := sync.OnceValue(embedded.GetAll)
	return func(provider string) []string {
		i := slices.IndexFunc(all(), func(p catwalk.Provider) bool { return string(p.ID) == provider })
		if i < 0 {
			return nil
		}
		p := all()[i]
		var models []string
		for _, id := range []string{p.DefaultLargeModelID, p.DefaultSmallModelID} {
			listed := slices.ContainsFunc(p.Models, func(m catwalk.Model) bool { return m.ID == id })
			if listed && !slices.Contains(models, id) {
				models = append(models, id)
			}
		}
		return models
	}
}
