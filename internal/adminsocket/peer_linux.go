package adminsocket

import (
	"net"

	"golang.org/x/sys/unix"
)

func peerUser(conn net.Conn) (uid int, known bool, err error) {
	var peer *unix.Ucred
	err = onSocket(conn, func(fd int) (err error) {
		peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return int(peer.Uid), true, nil
}
