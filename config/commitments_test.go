package config

import (
	"strings"
	"testing"
)

func TestCommitmentsAreOffUnlessAnAgentOrTheDefaultsSayOtherwise(t *testing.T) {
	c := must(t, "agents: {list: [{id: main}, {id: ops, commitments: {enabled: true}}]}")
	if c.Agent("main").Commitments || !c.Agent("ops").Commitments {
		t.Error("an agent's own choice does not count for it alone")
	}
	c = must(t, "agents: {defaults: {commitments: {enabled: true}}, list: [{id: main}, {id: ops, commitments: {enabled: false}}, {id: lab, commitments: {}}]}")
	if !c.Agent("main").Commitments || c.Agent("ops").Commitments || !c.Agent("lab").Commitments {
		t.Error("the choice of the defaults does not count for those that made none")
	}
	for text, says := range map[string]string{
		"commitments: true":             "agents.defaults.commitments",
		"commitments: {enabled: often}": "agents.defaults.commitments.enabled",
		"commitments: {enable: true}":   `did you mean "enabled"?`,
	} {
		_, _, err := parse("bot.yaml", []byte("agents: {defaults: {"+text+"}}"), Options{Env: env()})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
