package adminsocket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stepmill/stepmill/internal/adminsocket"
)

// serve runs commands in a data directory until the returned function is called.
func serve(t *testing.T, dir string, handle adminsocket.Handler) (stop func()) {
	t.Helper()
	listener, err := adminsocket.Listen(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, handle)
}

func serveOn(t *testing.T, listener net.Listener, handle adminsocket.Handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		adminsocket.Serve(ctx, listener, handle)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

func connect(t *testing.T, dir string) *adminsocket.Client {
	t.Helper()
	client, err := adminsocket.Connect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A command gets its arguments, its output arrives in full, and so does its status,
// even in a directory whose path is longer than that of a socket may be.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("\x00binary\xff"), 1<<17)
	serve(t, dir, func(_ context.Context, args []string, stdout, stderr io.Writer) int {
		_, outErr := stdout.Write(large)
		_, errErr := fmt.Fprintf(stderr, "args: %q", args)
		if errors.Join(outErr, errErr) != nil {
			return 1
		}
		return 7
	})
	for range 3 {
		var stdout, stderr bytes.Buffer
		status, err := connect(t, dir).Run(t.Context(), []string{"keys", "list", ""}, &stdout, &stderr)
		if err != nil || status != 7 || !bytes.Equal(stdout.Bytes(), large) || stderr.String() != `args: ["keys" "list" ""]` {
			t.Errorf("status %d, %v; %d bytes; %s", status, err, stdout.Len(), &stderr)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "control.sock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
}

// Without a server, or after it was killed, there is none to connect with. The next
// server takes the place of its socket.
func TestConnectWithoutServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := adminsocket.Connect(t.Context(), dir); !errors.Is(err, adminsocket.ErrNoServer) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		stop := serve(t, dir, func(context.Context, []string, io.Writer, io.Writer) int { return 0 })
		if status, err := connect(t, dir).Run(t.Context(), nil, io.Discard, io.Discard); err != nil || status != 0 {
			t.Errorf("status %d, %v", status, err)
		}
		stop()
		if _, err := adminsocket.Connect(t.Context(), dir); !errors.Is(err, adminsocket.ErrNoServer) {
			t.Errorf("got %v", err)
		}
	}
}

// flakyListener fails to accept a connection before it accepts one.
type flakyListener struct {
	net.Listener
	failed atomic.Bool
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if l.failed.CompareAndSwap(false, true) {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

// A connection that cannot be accepted does not end the service.
func TestServeGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listener, err := adminsocket.Listen(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, &flakyListener{Listener: listener}, func(context.Context, []string, io.Writer, io.Writer) int { return 7 })
	if status, err := connect(t, dir).Run(t.Context(), nil, io.Discard, io.Discard); err != nil || status != 7 {
		t.Errorf("status %d, %v", status, err)
	}
}

// A command ends when its client goes away, and when the server stops.
func TestCanceledCommand(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"client", "server"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			dir, started, ended := t.TempDir(), make(chan struct{}), make(chan struct{})
			stop := serve(t, dir, func(ctx context.Context, _ []string, _, _ io.Writer) int {
				close(started)
				<-ctx.Done()
				close(ended)
				return 1
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			client := connect(t, dir)
			go func() {
				status, err := client.Run(ctx, nil, io.Discard, io.Discard)
				if err == nil && status == 0 {
					err = errors.New("the command succeeded")
				} else {
					err = nil
				}
				result <- err
			}()
			<-started
			if by == "client" {
				cancel()
			} else {
				stop()
			}
			<-ended
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}

// A command can wait until its client has written the output. A client that has gone
// confirms nothing.
func TestConfirmedOutput(t *testing.T) {
	t.Parallel()
	dir, results := t.TempDir(), make(chan error, 1)
	serve(t, dir, func(_ context.Context, _ []string, stdout, _ io.Writer) int {
		_, err := io.WriteString(stdout, "secret")
		if err == nil {
			err = stdout.(adminsocket.Confirmer).Confirm()
		}
		results <- err
		return 3
	})
	var written bytes.Buffer
	status, err := connect(t, dir).Run(t.Context(), nil, &written, io.Discard)
	if confirmed := <-results; err != nil || status != 3 || confirmed != nil || written.String() != "secret" {
		t.Errorf("status %d, %v, %v, output %q", status, err, confirmed, &written)
	}
	if _, err := connect(t, dir).Run(t.Context(), nil, brokenPipe{}, io.Discard); err == nil {
		t.Error("a client that could not write the output has no error")
	}
	if err := <-results; err == nil {
		t.Error("output that was not written is confirmed")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
