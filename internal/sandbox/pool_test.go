package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/sandbox"
)

const (
	addOne      = "return input + 1"
	endlessLoop = "console.log('begun'); for (;;) {}"
)

// killProcess kills a process.
func killProcess(t testing.TB, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestReusesWarmProcesses(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const code = "const o = {}; for (const k of Object.keys(input)) o[k] = input[k] * 2; return o"
	first := mustRun(t, pool, code, `{"b": 1, "a": 2}`)
	pid := pool.Pids()[0]
	for range 200 {
		if got := mustRun(t, pool, code, `{"b": 1, "a": 2}`); got != first {
			t.Fatalf("%s, and before %s", got, first)
		}
	}
	if pids := pool.Pids(); len(pids) != 1 || pids[0] != pid {
		t.Errorf("%v, want %d: a failure or a success is no reason for a new process", pids, pid)
	}
}

func TestReplacesProcessesAfterManyScripts(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Scripts: 3})
	seen := map[int]bool{}
	for i := range 9 {
		if got := mustRun(t, pool, addOne, fmt.Sprint(i)); got != fmt.Sprint(i+1) {
			t.Error(got)
		}
		for _, pid := range pool.Pids() {
			seen[pid] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("nine scripts took %d processes, want 3", len(seen))
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	if got := pool.Stats(); got != (sandbox.Stats{}) {
		t.Errorf("before the first script: %+v", got)
	}
	mustRun(t, pool, addOne, "1")
	if got := pool.Stats(); got != (sandbox.Stats{Processes: 1, Started: 1}) {
		t.Errorf("after one: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	for range 2 {
		go func() {
			_, _ = pool.AcquireAndRun(ctx, sandbox.Script{Code: endlessLoop})
			ended <- struct{}{}
		}()
	}
	for deadline := time.Now().Add(5 * time.Minute); pool.Stats() != (sandbox.Stats{Processes: 2, Scripts: 2, Started: 2}); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("while two run: %+v", pool.Stats())
		}
	}
	cancel()
	<-ended
	<-ended
	for deadline := time.Now().Add(5 * time.Minute); pool.Stats() != (sandbox.Stats{Started: 2}); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after both were killed: %+v", pool.Stats())
		}
	}
}

func TestStopsIdleProcesses(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Idle: 10 * time.Millisecond})
	mustRun(t, pool, addOne, "1")
	for deadline := time.Now().Add(5 * time.Minute); len(pool.Pids()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the process is still there")
		}
	}
	if got := mustRun(t, pool, addOne, "1"); got != "2" {
		t.Error(got)
	}
}

// If a child is killed, only its script fails.
func TestProcessKilledDuringAScript(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	for delay := 100 * time.Millisecond; ; delay *= 2 {
		mustRun(t, pool, addOne, "1")
		pid := pool.Pids()[0]
		time.AfterFunc(delay, func() { killProcess(t, pid) })
		failure, outcome := mustFail(t, pool, endlessLoop, 2*time.Minute)
		if failure.Kind != sandbox.Lost {
			t.Fatalf("%+v, %+v", failure, outcome)
		}
		if len(outcome.Lines) == 1 { // otherwise it was killed before the script ran
			break
		}
	}
	if got := mustRun(t, pool, addOne, "1"); got != "2" {
		t.Error(got)
	}
}

// A child that is killed while idle is replaced.
func TestProcessKilledWhileIdle(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	mustRun(t, pool, addOne, "1")
	killProcess(t, pool.Pids()[0])
	for range 3 {
		outcome, err := pool.AcquireAndRun(t.Context(), sandbox.Script{Code: addOne, Input: json.RawMessage("1")})
		failure, ok := errors.AsType[*sandbox.Failure](err)
		if ok && failure.Kind == sandbox.Lost {
			continue // the pool has not noticed yet
		}
		if err != nil || string(outcome.Output) != "2" {
			t.Errorf("%s, %v", outcome.Output, err)
		}
	}
}

func TestConcurrentScripts(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			outcome, err := pool.AcquireAndRun(t.Context(), sandbox.Script{
				Code: "console.log(input); return {got: input, mine: typeof kept, kept: (kept = input)}", Input: json.RawMessage(fmt.Sprint(i)),
			})
			want := fmt.Sprintf(`{"got":%d,"mine":"undefined","kept":%[1]d}`, i)
			if err != nil || string(outcome.Output) != want || len(outcome.Lines) != 1 || outcome.Lines[0].Text != fmt.Sprint(i) {
				t.Errorf("script %d: %s %+v, %v", i, outcome.Output, outcome.Lines, err)
			}
		})
	}
	wg.Wait()
	if n := len(pool.Pids()); n < 1 || n > 2 {
		t.Errorf("%d processes", n)
	}
}

// Hostile scripts do not affect others that run at the same time.
func TestHostileScriptsDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	hostile := []string{"for (;;) {}", "let a = []; for (;;) a.push('x'.repeat(1 << 20))", "const f = () => f(); f()", "throw 1"}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			if i%3 == 0 {
				mustFail(t, pool, hostile[i/3%len(hostile)], 200*time.Millisecond)
				return
			}
			if got := mustRun(t, pool, addOne, fmt.Sprint(i)); got != fmt.Sprint(i+1) {
				t.Errorf("%d gave %s", i, got)
			}
		})
	}
	wg.Wait()
}

func TestCancel(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	mustRun(t, pool, addOne, "1")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for pool.Stats().Scripts == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := pool.AcquireAndRun(ctx, sandbox.Script{Code: endlessLoop}); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled script ended with %v", err)
	}
	if n := len(pool.Pids()); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// If the context ends while a script waits for a slot, the error is not a Failure
// of the script.
func TestContextEndsWhileQueued(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		_, _ = pool.AcquireAndRun(ctx, sandbox.Script{Code: endlessLoop})
	}()
	for pool.Stats().Scripts == 0 {
		time.Sleep(time.Millisecond)
	}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := pool.AcquireAndRun(short, sandbox.Script{Code: addOne, Limit: time.Second}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("gave %v", err)
	}
	// Checks do not wait for scripts.
	if failure, err := pool.Check(t.Context(), "ws", addOne); failure != nil || err != nil {
		t.Errorf("gave %v, %v", failure, err)
	}
	cancel()
	<-busy
}

func TestClose(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	mustRun(t, pool, addOne, "1")
	ended := make(chan error, 1)
	go func() {
		_, err := pool.AcquireAndRun(t.Context(), sandbox.Script{Code: endlessLoop})
		ended <- err
	}()
	for pool.Stats().Scripts == 0 {
		time.Sleep(time.Millisecond)
	}
	pool.Close()
	if err := <-ended; !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("the script that ran ended with %v", err)
	}
	if _, err := pool.AcquireAndRun(t.Context(), sandbox.Script{Code: addOne}); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("a closed pool gives %v", err)
	}
}

func TestInputAndOutputLimits(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	input := json.RawMessage(`"` + strings.Repeat("x", sandbox.MaxInput) + `"`)
	_, err := pool.AcquireAndRun(t.Context(), sandbox.Script{Code: "return input.length", Input: input})
	if failure, ok := errors.AsType[*sandbox.Failure](err); !ok || failure.Kind != sandbox.InputTooLarge {
		t.Errorf("gave %v", err)
	}
	input = append(input[:sandbox.MaxInput-1], '"')
	if got := mustRun(t, pool, "return input.length", string(input)); got != fmt.Sprint(sandbox.MaxInput-2) {
		t.Errorf("gave %s", got)
	}
	if got := mustRun(t, pool, "return '<'.repeat(4194302)", ""); len(got) != sandbox.MaxOutput {
		t.Errorf("gave %d bytes", len(got))
	}
}

// A child that breaks the protocol is killed.
func TestKillsProcessesThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"huge frame":    {program, "liar", strconv.Quote("a\xff\xff\xff\xff")},
		"unknown frame": {program, "liar", strconv.Quote("?\x00\x00\x00\x02{}")},
		"no JSON":       {program, "liar", strconv.Quote("a\x00\x00\x00\x02{]")},
		"broken line":   {program, "liar", strconv.Quote("l\x00\x00\x00\x02[}")},
		"long line":     {program, "liar", strconv.Quote("l\x00\x00\x2e\xe0" + `{"text":"` + strings.Repeat("x", 12000-11) + `"}`)},
		"nothing":       {program, "-test.run=^$"},
		"no program":    {program + "-is-not-there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, sandbox.Config{Command: command})
			failure, _ := mustFail(t, pool, addOne, 2*time.Minute)
			if failure.Kind != sandbox.Lost && failure.Kind != sandbox.Crashed {
				t.Errorf("%+v", failure)
			}
			if n := len(pool.Pids()); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}

func BenchmarkWarm(b *testing.B) {
	pool := newPool(b, sandbox.Config{Scripts: 1 << 30})
	mustRun(b, pool, addOne, "1")
	for b.Loop() {
		if _, err := pool.AcquireAndRun(b.Context(), sandbox.Script{Code: addOne, Input: json.RawMessage("1"), Limit: time.Minute}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCold(b *testing.B) {
	pool := newPool(b, sandbox.Config{Scripts: 1})
	for b.Loop() {
		mustRun(b, pool, addOne, "1")
	}
}
