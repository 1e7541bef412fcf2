package provider

import (
	"crypto/sha256"
	"math/big"
	"strconv"
)

// ids gives out tool-call ids that obey a rule and are unique within one transcript. The same
// transcript always gets the same ids, so that provider-side caches stay warm.
type ids struct {
	rule    IDRule
	rewrite bool // also those that obey the rule
	used    map[string]bool
}

func newIDs(rule IDRule, rewrite bool) *ids {
	return &ids{rule: rule, rewrite: rewrite, used: map[string]bool{}}
}

// next returns old itself if it may be used, else an id derived from it.
func (x *ids) next(old string) string {
	id := old
	if x.rewrite || !x.rule.Accepts(old) || x.used[old] {
		for n := 0; ; n++ {
			id = x.derive(old, n)
			if !x.used[id] {
				break
			}
		}
	}
	x.used[id] = true
	return id
}

// derivedLength is what a derived id has where the rule leaves it open.
const derivedLength = 24

func (x *ids) derive(old string, n int) string {
	seed := old
	if n > 0 {
		seed += "#" + strconv.Itoa(n)
	}
	sum := sha256.Sum256([]byte(seed))
	text := new(big.Int).SetBytes(sum[:]).Text(62)
	length := x.rule.Length
	if length <= 0 {
		length = derivedLength
	}
	for len(text) < length {
		text += text
	}
	return text[:length]
}
