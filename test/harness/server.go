package harness

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// startTime is how long a server may take until it is ready.
	startTime = 30 * time.Second
	// endTime is how long a killed process may take to be gone.
	endTime = 10 * time.Second
	// tailShown is how much of a server's log a failed test shows, and
	// tailOfEnded how much of one that had ended before.
	tailShown   = 8 << 10
	tailOfEnded = 1 << 10
)

var (
	readyLine = regexp.MustCompile(`(?m)^Stepmill \S+ is ready at (http://\S+)$`)
	keyLine   = regexp.MustCompile(`(?m)^\s+(smk_\w+)$`)
)

// Server is a running `stepmill serve`.
type Server struct {
	*Client
	// Dir is its data directory.
	Dir string
	// Ready is how long it took from its start until it was ready.
	Ready time.Duration

	cmd      *exec.Cmd
	out      *output
	log      *output
	exited   chan struct{}
	expected *regexp.Regexp
}

// Exit is how a server ended. The code is -1 when a signal ended it.
type Exit struct {
	Code int
	Took time.Duration
}

// Options say how to start a server.
type Options struct {
	// Dir is the data directory. With it the server listens on a free port;
	// without it the arguments and the environment say both.
	Dir  string
	Args []string
	Env  []string
	// Work is the directory to start in, if not that of the tests.
	Work string
	// Database is the URL of a database that the server shares with others: the
	// directory then only holds the master key.
	Database string
	// Worker starts a node that serves no requests: it has no client.
	Worker bool
	// Fail says where the server dies, panics or pauses: the FP of the package
	// failpoint, for a binary that has it.
	Fail string
	// Notice are texts whose lines in the log are counted.
	Notice []string
}

// Start starts a server on a free port and waits until it is ready. Its client
// has the admin key when the directory was new. When the test ends the server
// is killed, if it still runs, and held to account for what it logged.
func Start(t testing.TB, dir string, args ...string) *Server {
	t.Helper()
	return StartWith(t, Options{Dir: dir, Args: args})
}

// StartWith is Start with all that can be said about a server.
func StartWith(t testing.TB, o Options) *Server {
	t.Helper()
	if OnPostgres() && o.Dir != "" && o.Database == "" && isNew(o.Dir) {
		t.Cleanup(func() { dropDatabase(t, o.Dir) }) // after the last of its servers
	}
	s, err := Launch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t) })
	return s
}

// Launch starts a server and waits until it is ready. A server
// that ends before it is ready is an error that shows what it printed.
func Launch(ctx context.Context, o Options) (*Server, error) {
	first := o.Dir != "" && o.Database == "" && isNew(o.Dir)
	begun := time.Now()
	s, err := Spawn(o)
	if err != nil {
		return nil, err
	}
	if err := s.AwaitReadyLine(); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx, begun.Add(startTime)); err != nil {
		return nil, s.failed(err.Error())
	}
	s.Ready = time.Since(begun)
	if first {
		var ok bool
		if s.Key, ok = s.out.await(keyLine, s.exited, startTime); !ok {
			return nil, s.failed("printed no admin key on its first start")
		}
	}
	return s, nil
}

// AwaitReadyLine waits for the line that says where the server is.
func (s *Server) AwaitReadyLine() error {
	url, ok := s.out.await(readyLine, s.exited, startTime)
	if !ok {
		return s.failed("did not say that it is ready")
	}
	s.Client = NewClient(url, "")
	return nil
}

// Spawn starts a server and waits for nothing; it has no client yet.
func Spawn(o Options) (*Server, error) {
	program, env := &product, o.Env
	if o.Fail != "" {
		program, env = &fragile, append(slices.Clone(env), "FP="+o.Fail)
	}
	path, err := program.binary()
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: o.Dir, out: newOutput(), log: newOutput(o.Notice...), exited: make(chan struct{})}
	args, err := o.arguments()
	if err != nil {
		return nil, err
	}
	if OnPostgres() && o.Database == "" {
		env = append([]string{"STEPMILL_NODE_LEASE=" + lease}, env...)
	}
	s.cmd = exec.Command(path, args...)
	s.cmd.Dir = o.Work
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = Environ(env...), s.out, s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // the state tells
		close(s.exited)
	}()
	return s, nil
}

// arguments are those of the command line.
func (o Options) arguments() ([]string, error) {
	args := []string{"serve"}
	if o.Worker {
		args[0] = "worker"
	}
	args = append(args, o.Args...)
	if o.Dir == "" {
		return args, nil
	}
	args = append(args, "--data-dir", o.Dir)
	if !o.Worker {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	switch {
	case o.Database != "":
		return append(args, "--database-url", o.Database), nil
	case OnPostgres():
		where, err := provide(o.Dir)
		return append(args, where...), err
	}
	return args, nil
}

func (s *Server) failed(what string) error {
	s.kill()
	return fmt.Errorf("the server %s (exit code %d)\n%s%s", what, s.cmd.ProcessState.ExitCode(), s.out.text(), s.log.text())
}

func (s *Server) awaitReady(ctx context.Context, deadline time.Time) error {
	for {
		answer, err := s.Do(ctx, http.MethodGet, "/readyz", nil)
		switch {
		case err == nil && answer.Status == http.StatusOK:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("is not ready: %d, %w", answer.Status, err)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("ended before it was ready")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Pid is the process id of the server.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// PrintedKey is the admin key that the server has printed, or "".
func (s *Server) PrintedKey() string {
	if match := keyLine.FindStringSubmatch(s.out.text()); match != nil {
		return match[1]
	}
	return ""
}

// AwaitKey waits for the admin key to be printed.
func (s *Server) AwaitKey(t testing.TB) string {
	t.Helper()
	key, ok := s.out.await(keyLine, s.exited, endTime)
	if !ok {
		t.Fatalf("the server printed no admin key\n%s", s.out.text())
	}
	return key
}

// AwaitPrinted waits for the server to print, on standard output, what matches the
// pattern.
func (s *Server) AwaitPrinted(t testing.TB, pattern string) {
	t.Helper()
	if _, ok := s.out.await(regexp.MustCompile("("+pattern+")"), s.exited, endTime); !ok {
		t.Fatalf("the server printed nothing like %s\n%s", pattern, s.out.text())
	}
}

// Log is the end of what the server logged.
func (s *Server) Log() string { return s.log.text() }

// AwaitLog waits for a line of the log that matches the pattern and returns its
// first group.
func (s *Server) AwaitLog(t testing.TB, pattern string) string {
	t.Helper()
	found, ok := s.log.await(regexp.MustCompile(pattern), s.exited, endTime)
	if !ok {
		t.Fatalf("the server logged nothing like %s\n%s", pattern, s.Log())
	}
	return found
}

// Noticed is how many lines of its log had a text that was to be noticed.
func (s *Server) Noticed(text string) int { return s.log.noticed(text) }

// ExpectErrors says which errors the server will log because of what the test
// does to it.
func (s *Server) ExpectErrors(pattern string) { s.expected = regexp.MustCompile(pattern) }

// expects tells whether a line of the log was to be expected. A panic is only
// when it was named.
func (s *Server) expects(line string) bool {
	if s.expected == nil || strings.Contains(line, "panic") && !strings.Contains(s.expected.String(), "panic") {
		return false
	}
	return s.expected.MatchString(line)
}

// Kill ends the server without warning.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if !s.kill() {
		t.Fatalf("process %d outlived SIGKILL", s.Pid())
	}
}

func (s *Server) kill() bool {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	select {
	case <-s.exited:
		return true
	case <-time.After(endTime):
		return false
	}
}

// Gone is closed when the process has ended.
func (s *Server) Gone() <-chan struct{} { return s.exited }

// Signal sends a signal.
func (s *Server) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("signal %v: %v", signal, err)
	}
}

// Wait waits for the server to end, and fails the test if it does not in time.
func (s *Server) Wait(t testing.TB, atMost time.Duration) Exit {
	t.Helper()
	begun := time.Now()
	select {
	case <-s.exited:
	case <-time.After(atMost):
		t.Fatalf("the server is still running after %v", atMost)
	}
	return Exit{s.cmd.ProcessState.ExitCode(), time.Since(begun)}
}

// stopTime is how long a server may take to stop when asked to.
const stopTime = 30 * time.Second

// Terminate asks the server to stop and waits until it has.
func (s *Server) Terminate(t testing.TB) Exit {
	t.Helper()
	s.Signal(t, syscall.SIGTERM)
	return s.Wait(t, stopTime)
}

// Stop asks the server to stop and fails the test unless it ends well.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if exit := s.Terminate(t); exit.Code != 0 {
		t.Fatalf("exit code %d after SIGTERM, want 0\n%s", exit.Code, s.Log())
	}
}

// Close kills the server if it still runs. It fails the test for a data race, a
// panic or an error in the log, and shows the end of the log of a failed test.
func (s *Server) Close(t testing.TB) {
	t.Helper()
	shown := tailShown
	select {
	case <-s.exited:
		shown = tailOfEnded
	default:
		s.Kill(t)
	}
	for _, line := range s.log.suspects() {
		if !s.expects(line) {
			t.Errorf("the server logged: %s", line)
		}
	}
	if !t.Failed() {
		return
	}
	log := s.Log()
	if len(log) > shown {
		log = "…" + log[len(log)-shown:]
	}
	t.Logf("log of server %d on %s:\n%s", s.Pid(), s.Dir, log)
}
