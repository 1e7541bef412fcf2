//go:build !unix

package mcp

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup ends the program; its children are its own business here.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
