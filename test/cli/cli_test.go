// Package cli_test runs the scripts in testdata against the real command line. In
// addition to the commands of testscript, the scripts use those of this package.
package cli_test

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // the driver

	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) {
	harness.SetParallel(4)
	harness.Main(m)
}

func TestScripts(t *testing.T) {
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Values[servers{}] = map[string]*harness.Server{}
			env.Values[tester{}] = env.T().(testing.TB)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serve":    serve,
			"halt":     halt,
			"firstkey": firstKey,
			"http":     request,
			"becomes":  becomes,
			"shows":    shows,
			"exits":    exits,
			"capture":  capture,
			"mode":     mode,
			"sql":      execSQL,
		},
	})
}

type (
	servers struct{}
	tester  struct{}
)

func running(ts *testscript.TestScript) map[string]*harness.Server {
	return ts.Value(servers{}).(map[string]*harness.Server)
}

func server(ts *testscript.TestScript, name string) *harness.Server {
	s := running(ts)[name]
	if s == nil {
		ts.Fatalf("server %s was not started", name)
	}
	return s
}

// settings are the environment variables that a server gets from the script.
var settings = []string{"STEPMILL_DATA_DIR", "STEPMILL_LISTEN", "STEPMILL_MASTER_KEY", "STEPMILL_MASTER_KEY_FILE", "STEPMILL_DRAIN_DELAY"}

// serve NAME [args…] starts `stepmill serve` with the arguments and waits until it is
// ready. $NAME_URL is its URL.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve NAME [args...]")
	}
	var env []string
	for _, name := range settings {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	t := ts.Value(tester{}).(testing.TB)
	s, err := harness.Launch(t.Context(), harness.Options{Args: args[1:], Env: env, WorkDir: ts.MkAbs(".")})
	ts.Check(err)
	ts.Defer(func() { s.Close(t) })
	running(ts)[args[0]] = s
	ts.Setenv(args[0]+"_URL", s.URL)
}

// halt NAME asks a server to stop and checks that it exits with code 0.
func halt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: halt NAME")
	}
	server(ts, args[0]).Stop(ts.Value(tester{}).(testing.TB))
}

// firstkey NAME VARIABLE sets a variable to the admin key that a server printed.
func firstKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: firstkey NAME VARIABLE")
	}
	ts.Setenv(args[1], server(ts, args[0]).AwaitKey(ts.Value(tester{}).(testing.TB)))
}

// http NAME KEY STATUS METHOD PATH [JSON] sends a request with the API key, checks the
// status and prints the body of the response on standard output.
func request(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 || len(args) > 6 {
		ts.Fatalf("usage: http NAME KEY STATUS METHOD PATH [JSON]")
	}
	response := call(ts, args)
	if want := args[2]; strconv.Itoa(response.Status) != want {
		ts.Fatalf("status %d, want %s: %s", response.Status, want, response.Body)
	}
	_, err := ts.Stdout().Write(response.Body)
	ts.Check(err)
}

func call(ts *testscript.TestScript, args []string) harness.Response {
	var body any
	if len(args) == 6 {
		body = rawJSON(args[5])
	}
	t := ts.Value(tester{}).(testing.TB)
	response, err := server(ts, args[0]).With(args[1]).Do(t.Context(), args[3], args[4], body)
	ts.Check(err)
	return response
}

type rawJSON string

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// becomes NAME KEY STATUS METHOD PATH [JSON] repeats a request until the response has
// the status.
func becomes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: becomes NAME KEY STATUS METHOD PATH [JSON]")
	}
	repeat(ts, args, func(a harness.Response) bool { return strconv.Itoa(a.Status) == args[2] })
}

// shows PATTERN NAME KEY PATH repeats a GET until the body matches.
func shows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: shows PATTERN NAME KEY PATH")
	}
	pattern := regexp.MustCompile(args[0])
	repeat(ts, []string{args[1], args[2], "200", "GET", args[3]}, func(a harness.Response) bool { return pattern.Match(a.Body) })
}

func repeat(ts *testscript.TestScript, args []string, done func(harness.Response) bool) {
	for started := time.Now(); ; {
		response := call(ts, args)
		if done(response) {
			return
		}
		if time.Since(started) > harness.Timeout {
			ts.Fatalf("after %v the response is still %d %s", harness.Timeout, response.Status, response.Body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// exits CODE PROGRAM [args…] runs a program and checks its exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var failed *exec.ExitError
		if !errors.As(err, &failed) {
			ts.Fatalf("%v", err)
		}
		got = failed.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// capture VARIABLE [PATTERN] sets a variable to the last standard output, or to the
// first group of the pattern in it.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: capture VARIABLE [PATTERN]")
	}
	text := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) == 2 {
		match := regexp.MustCompile(args[1]).FindStringSubmatch(text)
		if len(match) < 2 {
			ts.Fatalf("no match for %s in %s", args[1], text)
		}
		text = match[1]
	}
	ts.Setenv(args[0], text)
}

// mode OCTAL FILE… checks the permissions of files.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mode OCTAL FILE...")
	}
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	for _, file := range args[1:] {
		info, err := os.Stat(ts.MkAbs(file))
		ts.Check(err)
		if got := info.Mode().Perm(); got != os.FileMode(want) {
			ts.Fatalf("%s has mode %o, want %o", file, got, want)
		}
	}
}

// sql DIR STATEMENT changes rows in a data directory, bypassing Stepmill. With !, the
// database must be locked.
func execSQL(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] sql DIR STATEMENT")
	}
	db, err := sql.Open("sqlite", filepath.Join(ts.MkAbs(args[0]), "stepmill.db"))
	ts.Check(err)
	result, err := db.Exec(args[1])
	if neg {
		if err == nil || !strings.Contains(err.Error(), "database is locked") {
			ts.Fatalf("got %v, want a locked database", err)
		}
		ts.Check(db.Close())
		return
	}
	ts.Check(errors.Join(err, db.Close()))
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		ts.Fatalf("%d rows were changed: %v", n, err)
	}
}
