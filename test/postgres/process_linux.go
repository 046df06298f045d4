package postgres

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// attributes returns the attributes of a server process. PostgreSQL does not run as
// root, so root switches to another user.
func attributes(orphaned syscall.Signal) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: orphaned}
	uid, gid, err := serverUser()
	if err != nil {
		return nil, err
	}
	if uid != 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return attr, nil
}

// chown gives a file to the user of the servers.
func chown(name string) error {
	uid, gid, err := serverUser()
	if err != nil || uid == 0 {
		return err
	}
	return os.Chown(name, uid, gid)
}

// serverUser returns the user to switch to, or 0 if there is no need to.
func serverUser() (uid, gid int, err error) {
	if os.Geteuid() != 0 {
		return 0, 0, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		if uid, err = strconv.Atoi(account.Uid); err != nil {
			return 0, 0, err
		}
		if gid, err = strconv.Atoi(account.Gid); err != nil {
			return 0, 0, err
		}
		return uid, gid, nil
	}
	return 0, 0, errors.New("PostgreSQL does not run as root, and neither the user postgres nor nobody exists")
}

// detached returns attributes that keep signals for the tests away from a process.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
