package app

import (
	"context"
	"errors"
	"fmt"

	"understudy/gateway"
)

// pageRoute is where a running bot tells the address of its page.
const pageRoute = "/v1/page"

// pageAnswer is what it tells. The address holds the token: the socket is for the bot's own user alone.
type pageAnswer struct {
	URL string `json:"url"` // "" = there is no page
}

func (a *App) pageRoutes(c *gateway.Control) {
	c.Handle("GET "+pageRoute, answer(func(context.Context, struct{}) (any, error) {
		if a.gateway == nil {
			return pageAnswer{}, nil
		}
		return pageAnswer{a.gateway.SignInURL()}, nil
	}))
}

// RemotePage is `bot page`: it prints the address that opens the page of the running bot and signs the
// browser in.
func RemotePage(ctx context.Context, o Options, std Std) int {
	c, err := remote(o)
	if err != nil {
		return fail(std, err)
	}
	var page pageAnswer
	if err := c.Get(ctx, pageRoute, &page); err != nil {
		return fail(std, err)
	}
	if page.URL == "" {
		return fail(std, errors.New("the running bot has no page: it was started with --listen off"))
	}
	fmt.Fprintln(std.Out, page.URL)
	return ExitOK
}
