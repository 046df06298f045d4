package sandbox

import (
	"os"
	"syscall"
)

// sysProcAttr puts a child into its own process group, so that it gets no Ctrl-C.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func workDir() string { return os.TempDir() }
