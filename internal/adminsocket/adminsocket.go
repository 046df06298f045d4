// Package adminsocket connects the operator's commands with the server that has their
// data directory open: only one process can use the embedded database at a time.
// The server listens on a socket in the directory and runs the command lines that
// it receives from its own user and from root.
package adminsocket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/descriptor"
	"github.com/stepmill/stepmill/internal/failpoint"
)

// fileName is the name of the socket in the data directory.
const fileName = "control.sock"

// ErrNoServer means that no server listens in a data directory.
var ErrNoServer = errors.New("no server is using the data directory")

// request is what a client sends first.
type request struct {
	Args []string `json:"args"`
	// Confirms is true if the client confirms the output that it is asked to. Clients of
	// earlier releases do not.
	Confirms bool `json:"confirms,omitempty"`
}

// frame is a part of the output of a command. The last frame has its exit status.
type frame struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	// Confirm asks the client to confirm that it has written all output so far.
	Confirm bool `json:"confirm,omitempty"`
	Exit    *int `json:"exit,omitempty"`
}

// confirmation is what a client sends for a frame that asks for it.
type confirmation struct{}

// Confirmer is implemented by the standard output of a command that a server runs.
type Confirmer interface {
	// Confirm returns nil when the client has written all output so far.
	Confirm() error
}

// maxRequest limits the size of a command line.
const maxRequest = 1 << 20

// Listen opens the socket of a data directory that this process has locked. It
// replaces the socket of a process that was killed.
//
// A socket is bound with the permissions that the umask leaves, and whoever connects
// before they are restricted stays connected. It is therefore bound in a directory that
// nobody else can enter, and moved when it is ready.
func Listen(ctx context.Context, dir string) (net.Listener, error) {
	private, path := filepath.Join(dir, "control.new"), filepath.Join(dir, fileName)
	if err := errors.Join(os.RemoveAll(private), os.Mkdir(private, 0o700)); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(private) }()
	opened, err := bind(ctx, private)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(filepath.Join(private, fileName), path); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return listener{opened, path}, nil
}

// bind opens a socket in a directory for the user of this process.
func bind(ctx context.Context, dir string) (net.Listener, error) {
	path, release, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	opened, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	opened.(*net.UnixListener).SetUnlinkOnClose(false) // it will be moved
	if err := os.Chmod(filepath.Join(dir, fileName), 0o600); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// listener removes its socket when it is closed.
type listener struct {
	net.Listener
	path string
}

// Close implements net.Listener.
func (l listener) Close() error {
	if err := l.Listener.Close(); err != nil {
		return err
	}
	return os.Remove(l.path)
}

// reservedConns is how many commands can run if there are no file descriptors left.
const reservedConns = 2

// acceptPause is how long Serve waits after it could not accept a connection.
const acceptPause = 100 * time.Millisecond

// Handler runs a command line and returns its exit status.
type Handler func(ctx context.Context, args []string, stdout, stderr io.Writer) (status int)

// Serve runs the commands that arrive until the context ends, and then waits for
// those that are running, whose context ends too, and until the listener is closed. It
// goes on after an error.
func Serve(ctx context.Context, listener net.Listener, handle Handler) {
	// It must not remove the socket of the next server.
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = listener.Close()
	})
	defer func() { <-closed }()
	var running sync.WaitGroup
	defer running.Wait()
	reserve := descriptor.NewReserve(reservedConns, nil)
	defer reserve.Close()
	for {
		conn, giveBack, err := reserve.Accept(listener, nil)
		if err != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(acceptPause):
			}
			continue
		}
		running.Go(func() {
			if giveBack != nil {
				defer giveBack()
			}
			defer func() { _ = conn.Close() }()
			serveOne(ctx, conn, handle)
		})
	}
}

// requestTimeout is how long a client may take to send its command.
const requestTimeout = 30 * time.Second

// StallLimit returns how long a client may read nothing of the output of its command. One
// that stops reading would otherwise hold what the command holds, such as the copy of the
// database that a backup is made from.
func StallLimit() time.Duration {
	const limit = 30 * time.Second
	return time.Duration(failpoint.Limit("STALL_LIMIT", int64(limit)))
}

func serveOne(ctx context.Context, conn net.Conn, handle Handler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	out := newOutput(conn)
	if err := checkPeer(conn); err != nil {
		status := 1
		_ = out.send(frame{Stderr: fmt.Appendf(nil, "stepmill: %v\n", err), Exit: &status})
		return
	}
	_ = conn.SetReadDeadline(clock.Monotonic().Add(requestTimeout))
	var command request
	received := json.NewDecoder(io.LimitReader(conn, maxRequest))
	if received.Decode(&command) != nil {
		return // whoever it was has gone, or is not one of our commands
	}
	_ = conn.SetReadDeadline(time.Time{})
	stdout := confirmedStream{stream: func(data []byte) error { return out.send(frame{Stdout: data}) }}
	confirmed := make(chan struct{})
	if command.Confirms {
		stdout.confirm = func() error { return out.confirm(ctx, confirmed) }
	}
	go func() {
		defer cancel()
		for received.Decode(&confirmation{}) == nil { // fails when the client goes away
			select {
			case confirmed <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}()
	status := handle(ctx, command.Args, stdout, stream(func(data []byte) error { return out.send(frame{Stderr: data}) }))
	_ = out.send(frame{Exit: &status})
}

type output struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func newOutput(conn net.Conn) *output { return &output{encoder: json.NewEncoder(patientConn{conn})} }

func (o *output) send(f frame) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.encoder.Encode(f)
}

// patientConn writes to a client for as long as the client goes on reading.
type patientConn struct{ net.Conn }

// maxWrite is how much a client has to read within StallLimit.
const maxWrite = 4 << 10

func (c patientConn) Write(data []byte) (written int, err error) {
	for part := range slices.Chunk(data, maxWrite) {
		if err := c.SetWriteDeadline(clock.Monotonic().Add(StallLimit())); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(part)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// confirm asks the client to confirm what was sent, and waits until it has.
func (o *output) confirm(ctx context.Context, confirmed <-chan struct{}) error {
	if err := o.send(frame{Confirm: true}); err != nil {
		return err
	}
	select {
	case <-confirmed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(StallLimit()):
		return errors.New("the client did not confirm the output")
	}
}

// checkPeer rejects a client of another user. The permissions of the socket already do;
// this also holds if somebody changes them.
func checkPeer(conn net.Conn) error {
	uid, known, err := peerUser(conn)
	if err != nil {
		return fmt.Errorf("find out which user runs the command: %w", err)
	}
	if !known {
		return nil
	}
	return checkUser(uid, os.Geteuid())
}

func checkUser(peer, own int) error {
	if peer != own && peer != 0 {
		return fmt.Errorf("user %d must not give commands to the server of user %d: run the command as the user of the server", peer, own)
	}
	return nil
}

// stream is a writer that sends what is written to it.
type stream func([]byte) error

func (s stream) Write(data []byte) (int, error) {
	if err := s(data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// confirmedStream is a stream that implements Confirmer. If confirm is nil, what was sent
// counts as confirmed.
type confirmedStream struct {
	stream
	confirm func() error
}

// Confirm implements Confirmer.
func (s confirmedStream) Confirm() error {
	if s.confirm == nil {
		return nil
	}
	return s.confirm()
}
