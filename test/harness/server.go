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

// Timeout is how long tests wait for something that must happen. It only keeps a
// broken server from hanging a test, and is long enough for a busy machine.
const Timeout = 3 * time.Minute

// recordsOfExited is how many log records a failed test shows of a server that had
// exited before. Crash tests have many of them.
const recordsOfExited = 5

var (
	readyLine = regexp.MustCompile(`(?m)^Stepmill \S+ is ready at (http://\S+)$`)
	keyLine   = regexp.MustCompile(`(?m)^\s+(smk_\w+)$`)
	setupLine = regexp.MustCompile(`(?m)^\s+http\S+#token=(\S+)$`)
)

// Server is a running `stepmill serve`.
type Server struct {
	*Client
	// Dir is its data directory.
	Dir string
	// StartupTime is the time from the start of the process until it was ready.
	StartupTime time.Duration

	cmd         *exec.Cmd
	out         *output
	log         *output
	exited      chan struct{}
	madeToPanic bool    // by a failpoint
	metrics     *Client // made on first use
}

// Exit describes how a server exited. The code is -1 if a signal killed it.
type Exit struct {
	Code int
	Took time.Duration
}

// Options configures a server.
type Options struct {
	// Dir is the data directory. If it is set, the server listens on a free port.
	// Otherwise the arguments and the environment set both.
	Dir  string
	Args []string
	Env  []string
	// WorkDir is the working directory. It defaults to that of the tests.
	WorkDir string
	// Database is the URL of a database that the server shares with other nodes. The
	// directory then only holds the master key.
	Database string
	// EmptyDatabase gives a new directory a database without tables on PostgreSQL,
	// which the server migrates.
	EmptyDatabase bool
	// Worker starts a node that serves no requests and has no client.
	Worker bool
	// Failpoint makes the server die, panic or pause at a point. It is the value of FP
	// that package failpoint reads, and selects the binary built with failpoints.
	Failpoint string
	// Release makes the server behave like a node of an earlier release, by its number.
	// Like Failpoint, it selects the binary built with failpoints.
	Release int
	// Binary is another program than the one under test, such as an earlier release.
	Binary string
	// OpenFiles limits the file descriptors of the process, unless it is zero.
	OpenFiles int
	// CountLines has texts. The log lines that contain them are counted.
	CountLines []string
}

// Start starts a server on a free port and waits until it is ready. Its client has the
// admin key if the directory was new. When the test ends, the server is killed if it
// still runs, and a defect that its log shows fails the test.
func Start(t testing.TB, dir string, args ...string) *Server {
	t.Helper()
	return StartWith(t, Options{Dir: dir, Args: args})
}

// StartWith is like Start with all options.
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

// Launch starts a server and waits until it is ready. If the server exits before that,
// the error shows what it printed.
func Launch(ctx context.Context, o Options) (*Server, error) {
	first := o.Dir != "" && o.Database == "" && isNew(o.Dir)
	started := time.Now()
	s, err := Spawn(o)
	if err != nil {
		return nil, err
	}
	if err := s.AwaitReadyLine(); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx, started.Add(Timeout)); err != nil {
		return nil, s.failed(err.Error())
	}
	s.StartupTime = time.Since(started)
	if first {
		var ok bool
		if s.Key, ok = s.out.await(keyLine, s.exited); !ok {
			return nil, s.failed("printed no admin key on its first start")
		}
	}
	return s, nil
}

// AwaitReadyLine waits for the line that prints the URL of the server.
func (s *Server) AwaitReadyLine() error {
	url, ok := s.out.await(readyLine, s.exited)
	if !ok {
		return s.failed("did not print that it is ready")
	}
	s.Client = NewClient(url, "")
	return nil
}

// Spawn starts a server without waiting for it. It has no client yet.
func Spawn(o Options) (*Server, error) {
	program, env := &productBuild, o.Env
	if o.Failpoint != "" {
		program, env = &failpointBuild, append(slices.Clone(env), "FP="+o.Failpoint)
	}
	if o.Release != 0 {
		program, env = &failpointBuild, append(slices.Clone(env), fmt.Sprintf("FP_RELEASE=%d", o.Release))
	}
	path, err := o.Binary, error(nil)
	if path == "" {
		path, err = program.binary()
	}
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: o.Dir, out: newOutput(), log: newOutput(o.CountLines...), exited: make(chan struct{})}
	s.madeToPanic = strings.Contains(o.Failpoint, ":panic")
	args, err := o.arguments()
	if err != nil {
		return nil, err
	}
	// A disk or a database that stalls on a busy machine does not fail a test.
	env = append([]string{"STEPMILL_DISK_TIMEOUT=" + Timeout.String()}, env...)
	if OnPostgres() && o.Database == "" {
		env = append([]string{"STEPMILL_NODE_LEASE=" + lease, "STEPMILL_DATABASE_TIMEOUT=" + Timeout.String()}, env...)
	}
	if o.OpenFiles > 0 {
		path, args = "sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, o.OpenFiles), path}, args...)
	}
	s.cmd = exec.Command(path, args...)
	s.cmd.Dir = o.WorkDir
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = Environ(env...), s.out, s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // the exit code is in the process state
		close(s.exited)
	}()
	return s, nil
}

// StartProcess starts a server without waiting for it. The server is closed when
// the test ends.
func StartProcess(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Spawn(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t) })
	return s
}

// AwaitListening waits until the server prints its URL. From then on it has a client.
func (s *Server) AwaitListening(t testing.TB) {
	t.Helper()
	if err := s.AwaitReadyLine(); err != nil {
		t.Fatal(err)
	}
}

// arguments returns the command line.
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
		where, err := ensureDatabase(o.Dir, o.EmptyDatabase)
		return append(args, where...), err
	}
	return args, nil
}

func (s *Server) failed(what string) error {
	s.kill()
	return fmt.Errorf("the server %s (exit code %d)\n%s%s", what, s.cmd.ProcessState.ExitCode(), s.out.text(), s.Excerpt())
}

// AwaitReady waits until the server is ready for requests.
func (s *Server) AwaitReady(t testing.TB) {
	t.Helper()
	if err := s.awaitReady(t.Context(), time.Now().Add(Timeout)); err != nil {
		t.Fatalf("the server %v\n%s", err, s.Excerpt())
	}
}

func (s *Server) awaitReady(ctx context.Context, deadline time.Time) error {
	for {
		response, err := s.Do(ctx, http.MethodGet, "/readyz", nil)
		switch {
		case err == nil && response.Status == http.StatusOK:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("is not ready: %d, %w", response.Status, err)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("exited before it was ready")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Pid returns the process id of the server.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// PrintedKey returns the admin key that the server printed, or "".
func (s *Server) PrintedKey() string {
	if match := keyLine.FindStringSubmatch(s.out.text()); match != nil {
		return match[1]
	}
	return ""
}

// AwaitKey waits until the server prints the admin key and returns it.
func (s *Server) AwaitKey(t testing.TB) string {
	t.Helper()
	return s.awaitPrinted(t, keyLine, "no admin key")
}

// AwaitSetupToken waits until the server prints the link with which the first account
// is created, and returns the token in it.
func (s *Server) AwaitSetupToken(t testing.TB) string {
	t.Helper()
	return s.awaitPrinted(t, setupLine, "no link for the first account")
}

// awaitPrinted waits until the standard output matches the pattern and returns its
// first group.
func (s *Server) awaitPrinted(t testing.TB, pattern *regexp.Regexp, missing string) string {
	t.Helper()
	found, ok := s.out.await(pattern, s.exited)
	if !ok {
		t.Fatalf("the server printed %s\n%s", missing, s.out.text())
	}
	return found
}

// AwaitOutput waits until the standard output of the server matches the pattern.
func (s *Server) AwaitOutput(t testing.TB, pattern string) {
	t.Helper()
	if _, ok := s.out.await(regexp.MustCompile("("+pattern+")"), s.exited); !ok {
		t.Fatalf("the output does not match %s\n%s", pattern, s.out.text())
	}
}

// Log returns the end of the log.
func (s *Server) Log() string { return s.log.text() }

// Excerpt returns the lines of the log that explain a failure: panics, data races and
// the last records, without those of successful requests.
func (s *Server) Excerpt() string { return s.log.excerpt(maxRecords) }

// AwaitLog waits until the log matches the pattern and returns the first group.
func (s *Server) AwaitLog(t testing.TB, pattern string) string {
	t.Helper()
	found, ok := s.log.await(regexp.MustCompile(pattern), s.exited)
	if !ok {
		t.Fatalf("the log does not match %s\n%s", pattern, s.Excerpt())
	}
	return found
}

// CountLogged returns how many log lines contain one of Options.CountLines.
func (s *Server) CountLogged(text string) int { return s.log.countLogged(text) }

// Kill kills the server.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if !s.kill() {
		t.Fatalf("process %d survived SIGKILL", s.Pid())
	}
}

func (s *Server) kill() bool {
	_ = s.cmd.Process.Kill() // it may have exited already
	select {
	case <-s.exited:
		return true
	case <-time.After(Timeout):
		return false
	}
}

// Done returns a channel that is closed when the process exits.
func (s *Server) Done() <-chan struct{} { return s.exited }

// Exited reports whether the process has exited.
func (s *Server) Exited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// TrySignal sends a signal to a server that may have exited.
func (s *Server) TrySignal(signal syscall.Signal) error { return s.cmd.Process.Signal(signal) }

// Signal sends a signal.
func (s *Server) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.TrySignal(signal); err != nil {
		t.Fatalf("signal %v: %v", signal, err)
	}
}

// Wait waits for the server to exit, and fails the test if it does not.
func (s *Server) Wait(t testing.TB) Exit {
	t.Helper()
	started := time.Now()
	select {
	case <-s.exited:
	case <-time.After(Timeout):
		t.Fatalf("the server is still running after %v", Timeout)
	}
	return Exit{s.cmd.ProcessState.ExitCode(), time.Since(started)}
}

// Terminate asks the server to stop and waits until it exits.
func (s *Server) Terminate(t testing.TB) Exit {
	t.Helper()
	s.Signal(t, syscall.SIGTERM)
	return s.Wait(t)
}

// Stop asks the server to stop and fails the test unless it exits with code 0.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if exit := s.Terminate(t); exit.Code != 0 {
		t.Fatalf("exit code %d after SIGTERM, want 0\n%s", exit.Code, s.Excerpt())
	}
}

// Close kills the server if it still runs. It fails the test if the log shows a defect:
// a data race, a panic, a fatal error or a broken invariant. If the test failed, it
// shows an excerpt of the log, which is short enough that the message of the failure
// stays in sight.
func (s *Server) Close(t testing.TB) {
	t.Helper()
	records := maxRecords
	select {
	case <-s.exited:
		records = recordsOfExited
	default:
		s.Kill(t)
	}
	for _, line := range s.log.defectLines(s.madeToPanic) {
		t.Errorf("the server logged: %s", line)
	}
	if t.Failed() {
		t.Logf("log of server %d on %s without successful requests:\n%s", s.Pid(), s.Dir, s.log.excerpt(records))
	}
}
