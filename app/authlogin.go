package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"understudy/authstore"
	"understudy/authstore/signin"
	"understudy/llm"
)

// LoginOptions say who signs in where and how.
type LoginOptions struct {
	Agent string
	// Who is a provider, or the profile id to store the sign-in under.
	Who string
	// Paste lets a person paste the address their browser was sent to; Device shows a code to type at
	// a page. Neither = a browser on this machine.
	Paste, Device bool
}

// AuthLogin is `bot auth login`.
func AuthLogin(ctx context.Context, o Options, std Std, lo LoginOptions) int {
	id, provider := llm.ProfileID(""), llm.NormalizeProvider(lo.Who)
	if strings.Contains(lo.Who, ":") {
		id = llm.ProfileID(lo.Who)
		provider = id.Provider()
		if provider == "" || id.Name() == "" {
			return fail(std, fmt.Errorf("%q is neither a provider nor a profile id such as openai:work", lo.Who))
		}
	}
	if lo.Paste && lo.Device {
		fmt.Fprintln(std.Err, "bot: choose one of --paste and --device")
		return ExitUsage
	}
	return withKeys(ctx, o, std, func(k *keyring) error {
		if lo.Agent == "" {
			lo.Agent = k.cfg.DefaultAgent()
		}
		p, err := signin.Lookup(provider, k.cfg.Auth.Providers)
		if err != nil {
			return err
		}
		store, err := k.open(ctx, lo.Agent) // first: who signed in in vain would sign in twice
		if err != nil {
			return err
		}
		signIns, err := newSignIns(k.cfg, o)
		if err != nil {
			return err
		}
		account, err := login(ctx, std, signin.New(p, signIns, o.Clock), lo)
		if err != nil {
			return err
		}
		profile := account.Profile(provider, id)
		if err := store.Put(ctx, profile); err != nil {
			return err
		}
		fmt.Fprintf(std.Out, "Signed in and stored as %s. %s\n", profile.ID, k.announce(ctx, o))
		if profile.Refresh.IsZero() {
			fmt.Fprintf(std.Out, "The provider gave nothing to renew it with: it ends %s.\n", profile.Expires.Local().Format("2006-01-02 15:04"))
		}
		if order := k.cfg.Pool(provider).Configured; order != nil && !slices.Contains(order, profile.ID) {
			fmt.Fprintf(std.Out, "auth.order.%s does not name %s: it is not used until you add it there.\n", provider, profile.ID)
		}
		return nil
	})
}

func login(ctx context.Context, std Std, c *signin.Client, lo LoginOptions) (signin.Account, error) {
	open := func(address string) { fmt.Fprintf(std.Out, "Open this page and sign in:\n\n  %s\n\n", address) }
	switch {
	case lo.Device:
		return c.Device(ctx, func(code signin.Code) {
			fmt.Fprintf(std.Out, "Open %s\nand type the code %s\n", code.Page, code.User)
			if code.Direct != "" {
				fmt.Fprintf(std.Out, "or open %s\n", code.Direct)
			}
		})
	case lo.Paste:
		return c.Paste(ctx, func(address string) {
			open(address)
			fmt.Fprint(std.Out, "Your browser then shows a page that cannot be loaded. Paste its whole address here:\n> ")
		}, func() (string, error) { return readLine(ctx, std.In) })
	}
	return c.Browser(ctx, func(address string) {
		open(address)
		fmt.Fprintln(std.Out, "I wait here for ten minutes. Is your browser on another machine? Stop this and add --paste.")
	})
}

// ExportOptions say what `bot auth export` prints.
type ExportOptions struct {
	Agent string
	// Secrets and Really together print secrets too: asked twice, because a terminal is remembered.
	Secrets, Really bool
}

// AuthExport is `bot auth export`: what is stored, in the versioned form of spec/imports.md, so that
// it can be read back.
func AuthExport(ctx context.Context, o Options, std Std, eo ExportOptions) int {
	if eo.Secrets != eo.Really {
		fmt.Fprintln(std.Err, "bot: secrets are printed only with both --with-secrets and --really; keep the output as you would keep a password")
		return ExitUsage
	}
	return withStore(ctx, o, std, eo.Agent, func(s *authstore.Store) error {
		doc, err := exportDocument(ctx, s, eo.Secrets, o.Clock.Now())
		if err != nil {
			return err
		}
		return printJSON(std.Out, doc)
	})
}
