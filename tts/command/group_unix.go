//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the program the head of a process group, so that its children end with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the program and its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
