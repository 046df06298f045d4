//go:build !linux

package postgres

import (
	"errors"
	"os"
	"syscall"
)

// attributes are those of a process of a server. Without the signals of Linux
// the keeper alone ends an orphaned server.
func attributes(syscall.Signal) (*syscall.SysProcAttr, error) { return nil, own("") }

// own gives a file to the user of the servers, who is that of the tests.
func own(string) error {
	if os.Geteuid() == 0 {
		return errors.New("PostgreSQL does not run as root: run the tests as another user")
	}
	return nil
}

func detached() *syscall.SysProcAttr { return nil }
