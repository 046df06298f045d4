package adminsocket_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stepmill/stepmill/internal/adminsocket"
)

// At no time can others connect with the socket, whatever the umask is.
func TestSocketIsNeverOpenToOthers(t *testing.T) { //nolint:paralleltest // the umask belongs to the process
	was := unix.Umask(0)
	defer unix.Umask(was)
	dir := t.TempDir()
	path := filepath.Join(dir, "control.sock")
	var ended atomic.Bool
	var looking sync.WaitGroup
	looking.Go(func() {
		for !ended.Load() {
			if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("the socket is %v", info.Mode())
				return
			}
		}
	})
	for range 300 {
		listener, err := adminsocket.Listen(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ended.Store(true)
	looking.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Another user cannot give commands, even if the permissions of the socket allow it to
// connect. Only root can become another user; TestCheckUser tests the rule for everyone.
func TestCommandOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var ran atomic.Int32
	serve(t, dir, func(context.Context, []string, io.Writer, io.Writer) int {
		ran.Add(1)
		return 0
	})
	if status, err := connect(t, dir).Run(t.Context(), nil, io.Discard, io.Discard); err != nil || status != 0 {
		t.Errorf("as the user of the server: status %d, %v", status, err)
	}
	if os.Geteuid() != 0 {
		return
	}
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o755, filepath.Join(dir, "control.sock"): 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); errno != 0 {
			t.Error(errno)
			return
		}
		client, err := adminsocket.Connect(t.Context(), dir)
		if err != nil {
			t.Error(err)
			return
		}
		var stderr bytes.Buffer
		if status, err := client.Run(t.Context(), nil, io.Discard, &stderr); err != nil || status != 1 || !strings.Contains(stderr.String(), "run the command as the user of the server") {
			t.Errorf("status %d, %v: %s", status, err, &stderr)
		}
	}()
	<-done
	if n := ran.Load(); n != 1 {
		t.Errorf("%d commands ran", n)
	}
}
