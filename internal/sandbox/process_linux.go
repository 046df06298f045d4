package sandbox

import "syscall"

// attributes put a child into a group of its own, where no signal of a terminal
// reaches it, and make it die with the server. Go ties the latter to the thread
// that started it, so it may come early; then the script is run again.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func workDir() string { return "/" }
