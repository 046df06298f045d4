package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// BouncerOptions configures a PgBouncer.
type BouncerOptions struct {
	// Server is the server it connects to.
	Server *Server
	// PoolSize is the number of connections for each database. It defaults to 10.
	PoolSize int
	// MaxPreparedStatements lets it track the prepared statements of its clients. It
	// needs PgBouncer 1.21.
	MaxPreparedStatements int
	// Settings are settings of pgbouncer.ini. They override all others.
	Settings map[string]string
}

// Bouncer is a PgBouncer that pools by transaction.
type Bouncer struct {
	dir  string
	port int
}

// StartBouncer starts a PgBouncer that runs until the end of the test.
func StartBouncer(tb testing.TB, o BouncerOptions) *Bouncer {
	tb.Helper()
	dir, err := newDir()
	if err != nil {
		tb.Fatal(err)
	}
	guard, err := startWatchdog(dir)
	if err != nil {
		tb.Fatal(errors.Join(err, os.RemoveAll(dir)))
	}
	b := &Bouncer{dir: dir}
	child, err := b.start(tb.Context(), guard, o)
	if err != nil {
		tb.Fatal(errors.Join(err, guard.release()))
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of PgBouncer on port %d:\n%s", b.port, tail(b.Log()))
		}
		child.end(syscall.SIGKILL)
		if err := guard.release(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// start starts the process and waits until it accepts connections.
func (b *Bouncer) start(ctx context.Context, guard *watchdog, o BouncerOptions) (*child, error) {
	program, err := bouncer(ctx, o)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		child, err := b.tryPort(ctx, guard, program, o)
		if err == nil || try == 5 || !errors.Is(err, errEnded) {
			return child, err
		}
	}
}

// tryPort starts the process on a port that was free a moment ago.
func (b *Bouncer) tryPort(ctx context.Context, guard *watchdog, program string, o BouncerOptions) (*child, error) {
	var err error
	if b.port, err = FreePort(); err != nil {
		return nil, err
	}
	ini := filepath.Join(b.dir, "pgbouncer.ini")
	if err := os.WriteFile(ini, []byte(o.ini(b.port)), 0o600); err != nil {
		return nil, err
	}
	if err := chown(ini); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(b.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	child, err := spawn(b.dir, nil, log, guard, syscall.SIGKILL, program, ini)
	if err != nil {
		return nil, err
	}
	if err := child.await(ctx, func(ctx context.Context) error { return ping(ctx, b.URL("postgres")) }); err != nil {
		child.end(syscall.SIGKILL)
		return nil, fmt.Errorf("PgBouncer on port %d: %w\n%s", b.port, err, tail(b.Log()))
	}
	return child, nil
}

// ini returns the configuration, which lets every client connect as the superuser.
func (o BouncerOptions) ini(port int) string {
	settings := map[string]string{
		"listen_addr":       "127.0.0.1",
		"listen_port":       fmt.Sprint(port),
		"unix_socket_dir":   "",
		"auth_type":         "any",
		"pool_mode":         "transaction",
		"default_pool_size": fmt.Sprint(cmp.Or(o.PoolSize, 10)),
		"max_client_conn":   "1000",
	}
	if o.MaxPreparedStatements > 0 {
		settings["max_prepared_statements"] = fmt.Sprint(o.MaxPreparedStatements)
	}
	head := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=%s\n[pgbouncer]\n", o.Server.Port(), superuser)
	return head + lines(settings, o.Settings, strings.Clone)
}

// bouncer returns the path of the program.
func bouncer(ctx context.Context, o BouncerOptions) (string, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // often not in PATH
	}
	if err != nil {
		return "", errors.New("these tests need PgBouncer: install the package pgbouncer")
	}
	if o.MaxPreparedStatements == 0 {
		return program, nil
	}
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("pgbouncer --version: %w", err)
	}
	var major, minor int
	first, _, _ := strings.Cut(string(out), "\n")
	if _, err := fmt.Sscanf(first, "PgBouncer %d.%d", &major, &minor); err != nil || major == 1 && minor < 21 {
		return "", fmt.Errorf("prepared statements need PgBouncer 1.21, this is %q", first)
	}
	return program, nil
}

// URL returns the URL of a database through the PgBouncer.
func (b *Bouncer) URL(database string) string { return address(b.port, database) }

// Log returns the log.
func (b *Bouncer) Log() string {
	text, err := os.ReadFile(b.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (b *Bouncer) logFile() string { return filepath.Join(b.dir, "log") }
