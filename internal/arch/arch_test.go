package arch

import "testing"

// TestHouse holds the repository against every rule.
func TestHouse(t *testing.T) {
	all := checkout(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, v := range r.check(all) {
				t.Errorf("%s:%d: %s\n\trule %q: %s", v.path, v.line, v.what, r.name, r.why)
			}
		})
	}
}
