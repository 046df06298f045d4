package postgres

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// attributes are those of a process of a server. PostgreSQL refuses to run as
// root, so for root it is another user.
func attributes(orphaned syscall.Signal) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: orphaned}
	uid, gid, err := owner()
	if err != nil {
		return nil, err
	}
	if uid != 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return attr, nil
}

// own gives a file to the user of the servers.
func own(name string) error {
	uid, gid, err := owner()
	if err != nil || uid == 0 {
		return err
	}
	return os.Chown(name, uid, gid)
}

// owner is the user to change to, 0 if there is no need to.
func owner() (uid, gid int, err error) {
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
	return 0, 0, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// detached keeps signals that are meant for the tests away from a process.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
