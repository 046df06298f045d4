//go:build unix && !linux

package sandbox

import "syscall"

// attributes put a child into a group of its own, where no signal of a terminal
// reaches it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func workDir() string { return "/" }
