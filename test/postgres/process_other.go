//go:build !linux

package postgres

import (
	"errors"
	"os"
	"syscall"
)

// attributes returns the attributes of a server process. Without parent death signals
// only the watchdog stops an orphaned server.
func attributes(syscall.Signal) (*syscall.SysProcAttr, error) { return nil, chown("") }

// chown fails for root. Otherwise the servers run as the user of the tests.
func chown(string) error {
	if os.Geteuid() == 0 {
		return errors.New("PostgreSQL does not run as root: run the tests as another user")
	}
	return nil
}

func detached() *syscall.SysProcAttr { return nil }
