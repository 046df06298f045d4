package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

var errEnded = errors.New("the process exited")

// child is a running server process.
type child struct {
	cmd    *exec.Cmd
	guard  *watchdog
	exited chan struct{}
}

// spawn starts a program in a directory, with additions to the environment. On Linux the program gets the orphaned signal
// when this process dies; the watchdog stops it in any case.
func spawn(dir string, env []string, log *os.File, guard *watchdog, orphaned syscall.Signal, program string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(program, args...), guard: guard, exited: make(chan struct{})}
	attr, err := attributes(orphaned)
	if err != nil {
		return nil, err
	}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr, c.cmd.SysProcAttr = dir, log, log, attr
	started := make(chan error)
	go func() {
		// The signal is tied to the thread that starts the program.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = c.cmd.Wait() // the log says how it ended
		guard.forget()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, guard.watch(c.pid())
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// await waits until ready returns no error, for at most readyTime.
func (c *child) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// end sends a signal and waits until the process exits. It kills the process after
// stopTime. It reports whether the process exited without being killed.
func (c *child) end(signal syscall.Signal) bool {
	_ = c.cmd.Process.Signal(signal) // it may have exited already
	select {
	case <-c.exited:
		return true
	case <-time.After(stopTime):
		_ = c.cmd.Process.Kill()
		<-c.exited
		return false
	}
}

// run runs a program as the user of the servers.
func run(ctx context.Context, dir, program string, args ...string) error {
	attr, err := attributes(0)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.SysProcAttr = dir, attr
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, out)
	}
	return nil
}

// newDir makes a temporary directory that belongs to the user of the servers.
func newDir() (string, error) {
	dir, err := os.MkdirTemp("", "stepmill-postgres-")
	if err != nil {
		return "", err
	}
	if err := chown(dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// FreePort returns a free port on 127.0.0.1 outside the ephemeral range: otherwise an
// outgoing connection could take it while its server is stopped.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(10000)
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}
