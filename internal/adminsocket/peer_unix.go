//go:build linux || darwin || freebsd

package adminsocket

import (
	"errors"
	"net"
	"syscall"
)

// onSocket calls do with the descriptor of a connection.
func onSocket(conn net.Conn, do func(fd int) error) error {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = do(int(fd)) })
	return errors.Join(err, inner)
}
