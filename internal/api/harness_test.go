package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
	embedded "github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
)

// server is the complete service, running in this process with its own data
// directory.
type server struct {
	dir       string
	config    config.Serve
	url       string
	firstKey  string // the admin key that the first start printed
	setupLink string // the link for the first user that the last start printed
	log       *logBuffer
	http      *http.Client

	cancel  context.CancelFunc
	stopped chan error

	mu   sync.Mutex
	conn *sqlite.Conn // a second connection, opened when needed
}

// shared is the server of all tests that do not need their own. Each test uses
// its own workspace.
var shared = sync.OnceValues(func() (*server, error) {
	dir, err := os.MkdirTemp("", "stepmill-api-test-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, config: config.Serve{PreauthRPM: 1_000_000, DiskTimeout: time.Hour}}
	sharedStarted.Store(s)
	return s, s.start(context.Background())
})

var sharedStarted atomic.Pointer[server]

func TestMain(m *testing.M) {
	// A server runs scripts in a child process of its own binary, which here is
	// the test binary.
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		_ = app.Sandbox(os.Stdin, os.Stdout, 64)
		return
	}
	// Property checks send dozens of requests each, and tests mostly wait. A
	// flag on the command line wins.
	for name, value := range map[string]int{"rapid.checks": 15, "test.parallel": 2 * runtime.GOMAXPROCS(0)} {
		if err := flag.Set(name, strconv.Itoa(value)); err != nil {
			panic(err)
		}
	}
	m.Run()
	if s := sharedStarted.Load(); s != nil {
		if err := errors.Join(s.stop(), os.RemoveAll(s.dir)); err != nil {
			fmt.Fprintln(os.Stderr, "the shared server:", err)
		}
	}
}

func sharedServer(t *testing.T) *server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newServer starts a server for one test.
func newServer(t *testing.T, adjust ...func(*config.Serve)) *server {
	t.Helper()
	// With a copy of a migrated database instead of the migrations. Then the master key
	// has to exist too.
	dir := sqlitetest.NewDir(t)
	if err := os.WriteFile(filepath.Join(dir, "master.key"), []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{dir: dir, config: config.Serve{PreauthRPM: 1_000_000, DiskTimeout: time.Hour}}
	for _, change := range adjust {
		change(&s.config)
	}
	if err := s.start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
	return s
}

func (s *server) start(ctx context.Context) error {
	s.config.Listen, s.config.ConnsPerAddress = "127.0.0.1:0", 1000
	if s.log == nil {
		s.log = &logBuffer{}
	}
	running, err := app.NewServer(ctx, config.Data{Dir: s.dir}, s.config,
		slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})), app.WithPasswordCost(passwordCost))
	if err != nil {
		return err
	}
	var greeting bytes.Buffer
	running.PrintWelcome(&greeting)
	if key := regexp.MustCompile(`smk_\w+`).FindString(greeting.String()); key != "" {
		s.firstKey = key
	}
	s.setupLink = regexp.MustCompile(`http\S+/welcome#\S+`).FindString(greeting.String())
	s.url = "http://" + running.Address()
	s.http = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       5 * time.Minute,
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.stopped = make(chan error, 1)
	go func() { s.stopped <- running.Run(ctx) }()
	return nil
}

func (s *server) stop() error {
	if s.cancel == nil {
		return nil // not started
	}
	s.http.CloseIdleConnections()
	s.mu.Lock()
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
	s.mu.Unlock()
	s.cancel()
	select {
	case err := <-s.stopped:
		return err
	case <-time.After(5 * time.Minute):
		return errors.New("the server did not stop")
	}
}

// restart stops the server and starts it again on the same data.
func (s *server) restart(t *testing.T) {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// query reads rows from the database on a second connection.
func (s *server) query(t *testing.T, query string, args ...any) [][]string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		conn, err := sqlite.OpenConn(embedded.URI(filepath.Join(s.dir, embedded.FileName)), sqlite.OpenReadWrite|sqlite.OpenWAL|sqlite.OpenURI)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetBusyTimeout(5 * time.Minute)
		s.conn = conn
	}
	var out [][]string
	err := sqlitex.Execute(s.conn, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(stmt *sqlite.Stmt) error {
		row := make([]string, stmt.ColumnCount())
		for i := range row {
			row[i] = stmt.ColumnText(i)
		}
		out = append(out, row)
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

// tableContents returns the rows of all tables, except values that change on
// their own, such as request counts and times of last use.
func (s *server) tableContents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, table := range s.query(t, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`) {
		if table[0] == "usage" {
			continue
		}
		var columns []string
		for _, column := range s.query(t, `SELECT name FROM pragma_table_info(?)`, table[0]) {
			if column[0] != "last_used_at" {
				columns = append(columns, column[0])
			}
		}
		var text strings.Builder
		for _, row := range s.query(t, `SELECT `+strings.Join(columns, ", ")+` FROM `+table[0]) {
			fmt.Fprintf(&text, "%q\n", row)
		}
		out[table[0]] = text.String()
	}
	return out
}

// files returns every byte that the server stores on disk.
func (s *server) files(t *testing.T) []byte {
	t.Helper()
	var out []byte
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out = slices.Concat(out, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// logBuffer stores log output.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
