//go:build unix && !linux

package sandbox

import "syscall"

// sysProcAttr puts a child into its own process group, so that it gets no signals
// of the terminal.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func workDir() string { return "/" }
