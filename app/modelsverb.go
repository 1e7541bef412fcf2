package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"understudy/authstore"
	"understudy/config"
	"understudy/failover/policy"
	"understudy/gateway"
)

// modelsFound is the result of models.list.
type modelsFound struct {
	Agent  string      `json:"agent"`
	Models []ModelInfo `json:"models"`
}

// models asks the running bot, or without one looks for itself.
func models(ctx context.Context, o Options, std Std, provider string) (modelsFound, error) {
	var found modelsFound
	c, err := remote(o)
	if err != nil {
		return found, err
	}
	err = c.CallRPC(ctx, "models.list", modelsListParams{Provider: provider}, &found, nil)
	if !errors.Is(err, gateway.ErrNoServer) {
		return found, err
	}
	err = keysOf(o, func(k *keyring) error {
		world, err := k.world(ctx, o)
		if err != nil {
			return err
		}
		found.Agent = k.cfg.DefaultAgent()
		var health policy.Snapshot
		blind := false
		if _, err := os.Stat(authstore.Path(k.cfg.Env.StateDir, found.Agent)); err == nil {
			store, err := k.open(ctx, found.Agent)
			if err == nil {
				health, err = store.Snapshot(ctx)
			}
			if blind = err != nil; blind {
				fmt.Fprintln(std.Err, "bot: the stored credentials cannot be read:", err)
			}
		}
		found.Models = ofProvider(world.describe(found.Agent, health, blind, o.Clock.Now()), provider)
		return nil
	})
	return found, err
}

// keysOf opens the credentials for a look.
func keysOf(o Options, f func(*keyring) error) error {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return err
	}
	k, err := newKeyring(o, cfg)
	if err != nil {
		return err
	}
	return errors.Join(f(k), k.close())
}

// ModelsList is `bot models list`.
func ModelsList(ctx context.Context, o Options, std Std, provider string, asJSON bool) int {
	found, err := models(ctx, o, std, provider)
	switch {
	case err != nil:
	case asJSON:
		err = printJSON(std.Out, found)
	default:
		err = printModels(std.Out, found.Models)
	}
	if err != nil {
		return fail(std, err)
	}
	return ExitOK
}

// ModelsStatus is `bot models status`: the chain of the default agent. It exits 1 when nothing in it
// could answer now.
func ModelsStatus(ctx context.Context, o Options, std Std, asJSON bool) int {
	found, err := models(ctx, o, std, "")
	if err != nil {
		return fail(std, err)
	}
	chain, usable := []ModelInfo{}, false
	for _, m := range found.Models {
		if m.Role != "" {
			chain = append(chain, m)
			usable = usable || m.Credential == "ok" || m.Credential == "unknown"
		}
	}
	found.Models = chain
	if asJSON {
		err = printJSON(std.Out, found)
	} else {
		err = printModels(std.Out, chain)
	}
	switch {
	case err != nil:
		return fail(std, err)
	case !usable:
		return fail(std, errors.New("no configured model could answer now"))
	}
	return ExitOK
}

func printModels(w io.Writer, list []ModelInfo) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No model is configured. Choose one: bot models set <provider/model>")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tROLE\tCONTEXT\tCREDENTIAL")
	for _, m := range list {
		name, role, size := m.Ref, m.Role, ""
		if m.Alias != "" {
			name += " (" + m.Alias + ")"
		}
		if m.Position > 0 {
			role = fmt.Sprintf("fallback %d", m.Position)
		}
		if !m.Allowed {
			role = strings.TrimSpace(role + " not selectable")
		}
		if m.ContextWindow > 0 {
			size = fmt.Sprint(m.ContextWindow)
		}
		credential := m.Credential
		if m.Credential == "resting" {
			credential = fmt.Sprintf("resting (%s) until %s", m.Reason, m.Until.Local().Format("15:04:05"))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, role, size, credential)
	}
	return t.Flush()
}

// FallbacksList is `bot models fallbacks list`.
func FallbacksList(o Options, std Std) int {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return fail(std, err)
	}
	list := cfg.Agent("").Models.Fallbacks
	if len(list) == 0 {
		fmt.Fprintln(std.Err, "No fallbacks are configured.")
	}
	for _, ref := range list {
		fmt.Fprintln(std.Out, ref)
	}
	return ExitOK
}
