// Package control connects the operator's commands with the server that has their
// data directory open: only one process can use the embedded database at a time.
// The server listens on a socket in the directory and runs the command lines that
// it receives. Who may use the directory may use the socket.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// fileName is the name of the socket in the data directory.
const fileName = "control.sock"

// ErrNoServer means that no server listens in a data directory.
var ErrNoServer = errors.New("no server is using the data directory")

// request is what a client sends.
type request struct {
	Args []string `json:"args"`
}

// frame is a part of the output of a command. The last frame has its exit status.
type frame struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	Exit   *int   `json:"exit,omitempty"`
}

// maxRequest limits the size of a command line.
const maxRequest = 1 << 20

// Listen opens the socket of a data directory that this process has locked. It
// replaces the socket of a process that was killed.
func Listen(ctx context.Context, dir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dir, fileName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	path, release, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	opened, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// The path that it was opened with is only valid until release.
	opened.(*net.UnixListener).SetUnlinkOnClose(false)
	socket := listener{opened, filepath.Join(dir, fileName)}
	if err := os.Chmod(socket.path, 0o600); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return socket, nil
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
	for {
		conn, err := listener.Accept()
		if err != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(acceptPause): // such as too many open files
			}
			continue
		}
		running.Go(func() {
			defer func() { _ = conn.Close() }()
			serveOne(ctx, conn, handle)
		})
	}
}

func serveOne(ctx context.Context, conn net.Conn, handle Handler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var command request
	if json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&command) != nil {
		return // whoever it was has gone, or is not one of our commands
	}
	go func() {
		_, _ = io.Copy(io.Discard, conn) // returns when the client goes away
		cancel()
	}()
	out := &output{encoder: json.NewEncoder(conn)}
	status := handle(ctx, command.Args, stream(func(data []byte) error { return out.send(frame{Stdout: data}) }),
		stream(func(data []byte) error { return out.send(frame{Stderr: data}) }))
	_ = out.send(frame{Exit: &status})
}

// output sends frames.
type output struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func (o *output) send(f frame) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.encoder.Encode(f)
}

// stream is a writer that sends what is written to it.
type stream func([]byte) error

func (s stream) Write(data []byte) (int, error) {
	if err := s(data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Client sends a command to the server of a data directory.
type Client struct{ conn net.Conn }

// Connect connects with the server that uses a data directory. It returns
// ErrNoServer if there is none.
func Connect(ctx context.Context, dir string) (*Client, error) {
	if _, err := os.Stat(filepath.Join(dir, fileName)); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoServer
	}
	path, release, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("connect with the server: %w: run the command as the user of the server", err)
	}
	if err != nil {
		return nil, ErrNoServer // the socket of a process that was killed
	}
	return &Client{conn}, nil
}

// Run runs a command line in the server, copies its output, and returns its exit
// status. A client runs one command.
func (c *Client) Run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int, err error) {
	defer func() { _ = c.conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.conn.Close() })()
	if err := json.NewEncoder(c.conn).Encode(request{args}); err != nil {
		return 0, fmt.Errorf("send the command to the server: %w", err)
	}
	frames := json.NewDecoder(c.conn)
	for {
		var f frame
		if err := frames.Decode(&f); err != nil {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, errors.New("the server stopped before it had run the command; it is not known whether it took effect")
		}
		_, outErr := stdout.Write(f.Stdout)
		_, errErr := stderr.Write(f.Stderr)
		if err := errors.Join(outErr, errErr); err != nil {
			return 0, err
		}
		if f.Exit != nil {
			return *f.Exit, nil
		}
	}
}
