package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"understudy/gateway"
	"understudy/mcp"
)

// toolSubject begins the subjects of problems with tool servers.
const toolSubject = "tools/"

// toolProblems lists what is wrong with the tool servers, in words for the owner.
func (a *App) toolProblems() []gateway.Problem {
	var list []gateway.Problem
	for _, s := range a.mcp.Status() {
		if s.State == mcp.Away {
			list = append(list, gateway.Problem{Subject: toolSubject + s.Name, Detail: fmt.Sprintf("The tool server %s is away: %s", s.Name, s.Problem)})
		}
		if s.LeftOut {
			list = append(list, gateway.Problem{
				Subject: toolSubject + s.Name,
				Detail:  fmt.Sprintf("Models are not offered all tools of the server %s: all servers together have more than a request may hold. Choose with tools.allow.", s.Name),
			})
		}
	}
	return list
}

// askTime bounds how long the doctor waits for the running bot.
const askTime = 5 * time.Second

// toolServers tells what the running bot, if there is one, says of its tool servers.
func (d *doctor) toolServers(ctx context.Context) {
	c, err := remote(d.opts)
	if err != nil {
		return // said already
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	s, err := c.Status(ctx)
	if err != nil {
		return // no bot runs, or another check says what is wrong with it
	}
	for _, p := range s.Problems {
		if name, ok := strings.CutPrefix(p.Subject, toolSubject); ok {
			d.warn("tools", "see mcp.servers."+name+" and the log", "%s", p.Detail)
		}
	}
}
