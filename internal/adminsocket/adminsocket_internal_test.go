package adminsocket

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// The user of the server and root may give commands, and nobody else.
func TestCheckUser(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		peer, own int
		allowed   bool
	}{
		{1000, 1000, true},
		{0, 1000, true},
		{0, 0, true},
		{1001, 1000, false},
		{1000, 0, false},
		{65534, 1000, false}, // a user that this namespace does not know
	} {
		if err := checkUser(test.peer, test.own); (err == nil) != test.allowed {
			t.Errorf("user %d at a server of user %d: %v", test.peer, test.own, err)
		}
	}
}

// The output of a command fails when its client stops reading, so that the command can
// end.
func TestClientThatStopsReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer func() { _ = errors.Join(server.Close(), client.Close()) }()
		out, begun := newOutput(server), time.Now()
		go func() { _, _ = client.Read(make([]byte, 10)) }()
		if err := out.send(frame{Stdout: []byte("much output")}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(begun); waited != StallLimit() {
			t.Errorf("it waited %v", waited)
		}
	})
}
