package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/sandbox"
)

const memory = 64 << 20

// TestMain makes the test binary its own child process, like stepmill.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "sandbox" {
		if err := sandbox.Serve(os.Stdin, os.Stdout, memory); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && runProbe(os.Args[1]) {
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "liar" {
		// A child that breaks the protocol. An argument cannot have zero bytes.
		text, err := strconv.Unquote(os.Args[2])
		if err != nil {
			panic(err)
		}
		fmt.Print(text)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	m.Run()
}

func newPool(t testing.TB, config sandbox.Config) *sandbox.Pool {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if config.Command == nil {
		config.Command = []string{program, "sandbox"}
	}
	if config.Size == 0 {
		config.Size = 1
	}
	pool := sandbox.New(config)
	t.Cleanup(pool.Close)
	return pool
}

// mustRun runs a script that must succeed and returns its output.
func mustRun(t testing.TB, pool *sandbox.Pool, code, input string) string {
	t.Helper()
	script := sandbox.Script{Code: code, Limit: 2 * time.Minute}
	if input != "" {
		script.Input = json.RawMessage(input)
	}
	outcome, err := pool.AcquireAndRun(t.Context(), script)
	if err != nil {
		t.Fatalf("%s\n%v", code, err)
	}
	return string(outcome.Output)
}

// mustFail runs a script that must fail and returns the failure.
func mustFail(t testing.TB, pool *sandbox.Pool, code string, limit time.Duration) (*sandbox.Failure, sandbox.Outcome) {
	t.Helper()
	outcome, err := pool.AcquireAndRun(t.Context(), sandbox.Script{Code: code, Limit: limit})
	failure, ok := errors.AsType[*sandbox.Failure](err)
	if !ok {
		t.Fatalf("%s\ngave %s, %v", code, outcome.Output, err)
	}
	return failure, outcome
}
