package descriptor_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/descriptor"
)

// listener fails as long as the test wants it to.
type listener struct {
	net.Listener
	failures int
	err      error
}

func (l *listener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", l.err)}
	}
	ours, _ := net.Pipe()
	return ours, nil
}

func TestAccept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		r := descriptor.NewReserve(1, func() { reports++ })
		defer r.Close()
		accept := func(failures int, shed func(bool) bool) (reserved bool, giveBack func()) {
			conn, giveBack, err := r.Accept(&listener{failures: failures, err: syscall.EMFILE}, shed)
			if conn == nil || err != nil {
				t.Fatal(err)
			}
			return giveBack != nil, giveBack
		}
		if reserved, _ := accept(0, nil); reserved || r.IsShort() || reports != 0 {
			t.Error("a shortage without a reason")
		}
		if reserved, _ := accept(1, func(bool) bool { return true }); reserved || !r.IsShort() {
			t.Error("the reserve was used although a connection was closed")
		}
		reserved, giveBack := accept(1, nil)
		if !reserved {
			t.Error("the reserve was not used")
		}
		told := false
		if reserved, _ := accept(3, func(exhausted bool) bool { told = told || exhausted; return false }); reserved || !told {
			t.Error("the reserve was used twice")
		}
		giveBack()
		giveBack()
		if reserved, giveBack := accept(1, nil); !reserved {
			t.Error("the reserve was not filled again")
		} else {
			giveBack()
		}
		time.Sleep(time.Minute)
		if r.IsShort() || reports != 1 {
			t.Errorf("short: %v after %d reports", r.IsShort(), reports)
		}
		if _, _, err := r.Accept(&listener{failures: 1, err: syscall.ECONNABORTED}, nil); !errors.Is(err, syscall.ECONNABORTED) {
			t.Error(err)
		}
	})
}
