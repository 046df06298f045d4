package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/adminsocket"
)

// CommandRunner runs a command line of the operator in the server that has the
// data open, and returns its exit status.
type CommandRunner func(ctx context.Context, admin *Admin, args []string, stdout, stderr io.Writer) (status int)

// WithCommands lets the operator's commands work while the server has its data
// directory open. With a shared database they need no server.
func WithCommands(run CommandRunner) Option { return func(s *Server) { s.commands.run = run } }

// commands is what the commands of the operator reach.
type commands struct {
	run      CommandRunner // nil: none can be run
	listener net.Listener  // nil if commands cannot reach the server
	dir      string
}

// listen opens the socket in the data directory.
func (c *commands) listen(ctx context.Context, dir string) (err error) {
	c.dir = dir
	c.listener, err = adminsocket.Listen(ctx, dir)
	return err
}

func (c *commands) close() error {
	if c.listener == nil {
		return nil
	}
	if err := c.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// listenForCommands opens the socket for the commands of the operator.
func (s *Server) listenForCommands(ctx context.Context, dir string) {
	if s.commands.run == nil || dir == "" {
		return
	}
	if err := s.commands.listen(ctx, dir); err != nil {
		s.log.Warn("commands such as `stepmill keys` and `stepmill backup` will not work while this server runs", "error", err)
	}
}

func (s *Server) serveCommands(ctx context.Context) {
	adminsocket.Serve(ctx, s.commands.listener, func(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("panic in a command", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				fmt.Fprintln(stderr, "stepmill: the server failed to run the command; see its log")
				status = 1
			}
		}()
		admin, err := newAdmin(ctx, s.data.core, s.commands.dir)
		if err != nil {
			fmt.Fprintf(stderr, "stepmill: %v\n", err)
			return 1
		}
		admin.serverURL, admin.files, admin.diskTimeout, admin.diskReserve = s.publicURL, s.files, s.config.DiskTimeout, s.disk.reserve
		admin.openPlace = func() (filesPlace, error) { return s.filesPlace, nil }
		return s.commands.run(ctx, admin, args, stdout, stderr)
	})
}

// reachTimeout is how long a command waits for a server that starts or stops, and
// for another command.
const reachTimeout = time.Minute

// reach connects with the server that uses a data directory or, if there is none,
// locks the directory. The lock of one that is read-only can be nil.
func reach(ctx context.Context, dir string, readOnly bool) (server *adminsocket.Client, lock *os.File, err error) {
	err = retry(ctx, reachTimeout, errDirInUse, func() (err error) {
		server, err = adminsocket.Connect(ctx, dir)
		switch {
		case errors.Is(err, adminsocket.ErrNoServer) && !readOnly:
			lock, err = tryLockDir(dir)
		case errors.Is(err, adminsocket.ErrNoServer):
			lock, err = tryLockReadOnly(dir)
		case errors.Is(err, os.ErrPermission) && readOnly:
			// The socket can be one that another user's server has left.
			if held, lockErr := tryLockReadOnly(dir); lockErr == nil && held != nil {
				lock, err = held, nil
			}
		}
		return err
	})
	return server, lock, err
}

// runInServer runs a command line in a server and copies its output. If the command
// fails, its standard error is the error.
func runInServer(ctx context.Context, server *adminsocket.Client, args []string, stdout, stderr io.Writer) error {
	var printed bytes.Buffer
	status, err := server.Run(ctx, args, stdout, &printed)
	if err == nil && status != 0 {
		return errors.New(strings.TrimPrefix(strings.TrimSpace(printed.String()), "stepmill: "))
	}
	_, printErr := printed.WriteTo(stderr)
	return errors.Join(err, printErr)
}

const retryEvery = 20 * time.Millisecond

// retry calls do until it returns another error than the given one, or the time is
// over.
func retry(ctx context.Context, limit time.Duration, while error, do func() error) error {
	over := time.After(limit)
	for {
		err := do()
		if !errors.Is(err, while) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return err
		case <-time.After(retryEvery):
		}
	}
}
