// Package postgres starts PostgreSQL servers for tests: a new cluster in a temporary
// directory, on a loopback port, run by a user other than root, optionally behind a
// PgBouncer. Servers and directories are removed when the test process ends, however
// it ends. It does not know what is tested.
package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser = "stepmill"
	// readyTime is how long a server may take to start, including recovery.
	readyTime = time.Minute
	// stopTime is how long a server may take to stop.
	stopTime = time.Minute
	// tailShown is how much of a log a failure shows.
	tailShown = 8 << 10
)

// Options configures a server.
type Options struct {
	// MaxConnections defaults to 100.
	MaxConnections int
	// Settings are settings of postgresql.conf. They override all others.
	Settings map[string]string
	// Unsafe trades durability for speed, for tests that kill nothing.
	Unsafe bool
	// FakeTime runs the server under libfaketime, so that SetClock can set its clock.
	FakeTime bool
}

// Server is a PostgreSQL server.
type Server struct {
	tb    testing.TB
	bin   string
	dir   string
	data  string
	port  int
	guard *watchdog

	env []string // of the server process

	mu     sync.Mutex
	child  *child
	shared bool
}

// Start starts a server that runs until the end of the test.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s, err := Launch(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	s.tb = tb
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of PostgreSQL on port %d:\n%s", s.port, tail(s.Log()))
		}
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns the unsafe server that the tests of a process share. It starts on
// first use and stops with the process.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	shared.once.Do(func() {
		// Not the context of this test, because the server outlives it.
		shared.server, shared.err = Launch(context.Background(), Options{Unsafe: true, MaxConnections: 400})
		if shared.err == nil {
			shared.server.shared = true
		}
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}

var durable struct {
	once   sync.Once
	server *Server
	err    error
}

// Durable returns the durable server that tests which kill programs share. It starts
// on first use and stops with the process.
func Durable() (*Server, error) {
	durable.once.Do(func() {
		durable.server, durable.err = Launch(context.Background(), Options{MaxConnections: 400})
		if durable.err == nil {
			durable.server.shared = true
		}
	})
	return durable.server, durable.err
}

// Launch makes a cluster and starts it, for callers that are not tests. The caller
// closes the server.
func Launch(ctx context.Context, o Options) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	if s.dir, err = newDir(); err != nil {
		return nil, err
	}
	s.data = filepath.Join(s.dir, "data")
	if o.FakeTime {
		if s.env, err = s.fakeTime(); err != nil {
			return nil, errors.Join(err, os.RemoveAll(s.dir))
		}
	}
	if s.guard, err = startWatchdog(s.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.setUp(ctx, o); err != nil {
		return nil, errors.Join(err, s.guard.release())
	}
	// Between the choice of a port and its use another process may take it.
	for try := 1; ; try++ {
		if s.port, err = FreePort(); err == nil {
			err = s.start(ctx)
		}
		if err == nil {
			return s, nil
		}
		if try == 5 || !errors.Is(err, errEnded) {
			return nil, errors.Join(err, s.Close())
		}
	}
}

// setUp makes the cluster. Its default collation is linguistic if the version supports
// ICU, so that text which must be compared by bytes has to say so.
func (s *Server) setUp(ctx context.Context, o Options) error {
	args := []string{
		"--pgdata", s.data, "--username", superuser, "--auth", "trust", "--no-sync",
		"--encoding", "UTF8", "--locale", "C",
	}
	major, err := majorVersion(ctx, s.bin)
	if err != nil {
		return err
	}
	if major >= 15 {
		args = append(args, "--locale-provider", "icu", "--icu-locale", "en")
	}
	if err := run(ctx, s.dir, filepath.Join(s.bin, "initdb"), args...); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(s.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(o.conf(s.dir))
	return errors.Join(err, file.Close())
}

func (o Options) conf(dir string) string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": dir,
		"max_connections":         "100",
		"shared_buffers":          "32MB",
		"log_line_prefix":         "%m [%p] %a ",
		"logging_collector":       "off",
	}
	if o.MaxConnections > 0 {
		settings["max_connections"] = strconv.Itoa(o.MaxConnections)
	}
	if o.Unsafe {
		for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes", "autovacuum"} {
			settings[name] = "off"
		}
	}
	return lines(settings, o.Settings, func(value string) string {
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	})
}

// lines formats settings one per line. Those in wanted override ours.
func lines(ours, wanted map[string]string, quote func(string) string) string {
	maps.Copy(ours, wanted)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		fmt.Fprintf(&text, "%s = %s\n", name, quote(ours[name]))
	}
	return text.String()
}

// start starts the server and waits until it accepts connections.
func (s *Server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil {
		return fmt.Errorf("PostgreSQL on port %d is already running", s.port)
	}
	log, err := os.OpenFile(s.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	child, err := spawn(s.dir, s.env, log, s.guard, syscall.SIGQUIT,
		filepath.Join(s.bin, "postgres"), "-D", s.data, "-p", strconv.Itoa(s.port))
	if err != nil {
		return err
	}
	if err := child.await(ctx, func(ctx context.Context) error { return ping(ctx, s.URL("postgres")) }); err != nil {
		child.end(syscall.SIGQUIT)
		return fmt.Errorf("PostgreSQL on port %d: %w\n%s", s.port, err, tail(s.Log()))
	}
	s.child = child
	return nil
}

func ping(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Start starts a stopped server with its data and on its port. Like the methods that
// stop it, it fails the test if it cannot, and may be called from any goroutine.
func (s *Server) Start() {
	s.requireUnshared("started")
	if err := s.start(context.Background()); err != nil { // also during cleanup
		s.tb.Error(err)
	}
}

// StopImmediate crashes the server: clients are disconnected, and the next start
// recovers from the log.
func (s *Server) StopImmediate() { s.stop(syscall.SIGQUIT) }

// Stop shuts the server down. A fast shutdown disconnects clients and rolls back open
// transactions; otherwise the server waits until the clients have disconnected.
func (s *Server) Stop(fast bool) {
	if fast {
		s.stop(syscall.SIGINT)
	} else {
		s.stop(syscall.SIGTERM)
	}
}

func (s *Server) stop(signal syscall.Signal) {
	s.requireUnshared("stopped")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return
	}
	if !s.child.end(signal) {
		s.tb.Errorf("PostgreSQL on port %d did not stop within %v\n%s", s.port, stopTime, tail(s.Log()))
	}
	s.child = nil
}

func (s *Server) requireUnshared(what string) {
	if s.shared {
		panic("the shared PostgreSQL server must not be " + what + " by a test")
	}
}

// Close stops the server and removes its directory.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil {
		s.child.end(syscall.SIGQUIT)
		s.child = nil
	}
	return s.guard.release()
}

// Port returns the port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Pid returns the process id of the server, or 0 while it is stopped.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return 0
	}
	return s.child.pid()
}

// URL returns the URL of a database.
func (s *Server) URL(database string) string { return address(s.port, database) }

func address(port int, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(superuser), Host: "127.0.0.1:" + strconv.Itoa(port),
		Path: database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Log returns the log of the server.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

func tail(log string) string {
	if len(log) > tailShown {
		return "…" + log[len(log)-tailShown:]
	}
	return log
}

// NewDatabase makes an empty database that exists until the end of the test, and
// returns its URL.
func (s *Server) NewDatabase(tb testing.TB) string {
	tb.Helper()
	return s.CopyDatabase(tb, "template0")
}

// NewTemplate makes a database that exists as long as the server, fills it and returns
// its name. Copying it is faster than filling another one.
func (s *Server) NewTemplate(tb testing.TB, fill func(url string) error) string {
	tb.Helper()
	name := "template_" + strings.ToLower(rand.Text())
	err := s.exec(tb.Context(), "CREATE DATABASE "+name+" TEMPLATE template0")
	if err == nil {
		err = fill(s.URL(name))
	}
	if err != nil {
		tb.Fatalf("make a template: %v", err)
	}
	return name
}

// CopyDatabase copies a database that has no connections. The copy exists until the end
// of the test. It returns the URL of the copy.
func (s *Server) CopyDatabase(tb testing.TB, template string) string {
	tb.Helper()
	name, err := s.CreateDatabase(tb.Context(), template)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.DropDatabase(name); err != nil {
			tb.Error(err)
		}
	})
	return s.URL(name)
}

// CreateDatabase copies a database and returns the name of the copy, which exists until
// it is dropped.
func (s *Server) CreateDatabase(ctx context.Context, template string) (string, error) {
	name := "test_" + strings.ToLower(rand.Text())
	if err := s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	return name, nil
}

// DropDatabase drops a database and disconnects its clients.
func (s *Server) DropDatabase(name string) error {
	if s.Pid() == 0 {
		return nil // it is removed with the cluster
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop a database: %w", err)
	}
	return nil
}

func (s *Server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
