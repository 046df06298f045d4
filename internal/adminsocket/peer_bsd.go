//go:build darwin || freebsd

package adminsocket

import (
	"net"

	"golang.org/x/sys/unix"
)

func peerUser(conn net.Conn) (uid int, known bool, err error) {
	var peer *unix.Xucred
	err = onSocket(conn, func(fd int) (err error) {
		peer, err = unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return int(peer.Uid), true, nil
}
