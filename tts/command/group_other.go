//go:build !unix

package command

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup ends the program; its children are their own business here.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
