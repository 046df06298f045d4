package sandbox

import "syscall"

// sysProcAttr puts a child into its own process group, so that it gets no signals
// of the terminal, and makes the kernel kill it when the server dies. The kernel
// ties the latter to the thread that started the child: that of the launcher.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func workDir() string { return "/" }
