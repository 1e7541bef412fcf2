package app

import (
	"context"
	"os"

	"understudy/app/simulate"
)

// Simulate is `bot simulate`: a fire drill on a virtual clock (spec/tools.md).
func Simulate(ctx context.Context, o Options, std Std, file string, asJSON bool) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return fail(std, err)
	}
	if err := simulate.Run(ctx, simulate.Options{Name: file, Scenario: data, Env: o.env(), JSON: asJSON, Out: std.Out, Notes: std.Err}); err != nil {
		return fail(std, err)
	}
	return ExitOK
}
