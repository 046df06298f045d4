package sandbox

import (
	"os"
	"syscall"
)

// attributes put a child into a group of its own, where no Ctrl-C reaches it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func workDir() string { return os.TempDir() }
