package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/sandbox"
)

const (
	trivial = "return input + 1"
	endless = "console.log('begun'); for (;;) {}"
)

// signal ends a process.
func signal(t testing.TB, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestWarmReuse(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const code = "const o = {}; for (const k of Object.keys(input)) o[k] = input[k] * 2; return o"
	first := succeed(t, pool, code, `{"b": 1, "a": 2}`)
	pid := pool.Pids()[0]
	for range 200 {
		if got := succeed(t, pool, code, `{"b": 1, "a": 2}`); got != first {
			t.Fatalf("%s, and before %s", got, first)
		}
	}
	if pids := pool.Pids(); len(pids) != 1 || pids[0] != pid {
		t.Errorf("%v, want %d: a failure or a success is no reason for a new process", pids, pid)
	}
}

func TestRecycling(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Scripts: 3})
	seen := map[int]bool{}
	for i := range 9 {
		if got := succeed(t, pool, trivial, fmt.Sprint(i)); got != fmt.Sprint(i+1) {
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
	succeed(t, pool, trivial, "1")
	if got := pool.Stats(); got != (sandbox.Stats{Processes: 1, Started: 1}) {
		t.Errorf("after one: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	for range 2 {
		go func() {
			_, _ = pool.Run(ctx, sandbox.Script{Code: endless})
			ended <- struct{}{}
		}()
	}
	for deadline := time.Now().Add(10 * time.Second); pool.Stats() != (sandbox.Stats{Processes: 2, Scripts: 2, Started: 2}); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("while two run: %+v", pool.Stats())
		}
	}
	cancel()
	<-ended
	<-ended
	for deadline := time.Now().Add(10 * time.Second); pool.Stats() != (sandbox.Stats{Started: 2}); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after both were killed: %+v", pool.Stats())
		}
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Idle: 10 * time.Millisecond})
	succeed(t, pool, trivial, "1")
	for deadline := time.Now().Add(10 * time.Second); len(pool.Pids()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the process is still there")
		}
	}
	if got := succeed(t, pool, trivial, "1"); got != "2" {
		t.Error(got)
	}
}

// A child that is killed from outside fails its script, and only that.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	succeed(t, pool, trivial, "1")
	pid := pool.Pids()[0]
	time.AfterFunc(100*time.Millisecond, func() { signal(t, pid) })
	failure, outcome := fail(t, pool, endless, 10*time.Second)
	if failure.Kind != sandbox.Lost || len(outcome.Lines) != 1 {
		t.Errorf("%+v, %+v", failure, outcome)
	}
	if got := succeed(t, pool, trivial, "1"); got != "2" {
		t.Error(got)
	}
}

// One that is killed while it has nothing to do is not missed.
func TestKilledWhileIdle(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	succeed(t, pool, trivial, "1")
	signal(t, pool.Pids()[0])
	for range 3 {
		outcome, err := pool.Run(t.Context(), sandbox.Script{Code: trivial, Input: json.RawMessage("1")})
		failure, ok := errors.AsType[*sandbox.Failure](err)
		if ok && failure.Kind == sandbox.Lost {
			continue // the end of the process was not known yet
		}
		if err != nil || string(outcome.Output) != "2" {
			t.Errorf("%s, %v", outcome.Output, err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			outcome, err := pool.Run(t.Context(), sandbox.Script{
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

// Good scripts beside hostile ones are not harmed.
func TestGoodBesideHostile(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	hostile := []string{"for (;;) {}", "let a = []; for (;;) a.push('x'.repeat(1 << 20))", "const f = () => f(); f()", "throw 1"}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			if i%3 == 0 {
				fail(t, pool, hostile[i/3%len(hostile)], 200*time.Millisecond)
				return
			}
			if got := succeed(t, pool, trivial, fmt.Sprint(i)); got != fmt.Sprint(i+1) {
				t.Errorf("%d gave %s", i, got)
			}
		})
	}
	wg.Wait()
}

func TestCancel(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	succeed(t, pool, trivial, "1")
	ctx, cancel := context.WithCancel(t.Context())
	var cancelled time.Time
	time.AfterFunc(100*time.Millisecond, func() {
		cancelled = time.Now()
		cancel()
	})
	_, err := pool.Run(ctx, sandbox.Script{Code: endless})
	if took := time.Since(cancelled); !errors.Is(err, context.Canceled) || took > time.Second {
		t.Errorf("%v, %v after the cancel", err, took)
	}
	if n := len(pool.Pids()); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// The end of the context while a script waits for a child is no failure of the
// script.
func TestDeadlineInTheQueue(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		_, _ = pool.Run(ctx, sandbox.Script{Code: endless})
	}()
	for pool.Stats().Scripts == 0 {
		time.Sleep(time.Millisecond)
	}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := pool.Run(short, sandbox.Script{Code: trivial, Limit: time.Second}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("gave %v", err)
	}
	// Checks do not wait behind scripts.
	if failure, err := pool.Check(t.Context(), trivial); failure != nil || err != nil {
		t.Errorf("gave %v, %v", failure, err)
	}
	cancel()
	<-busy
}

func TestClose(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	succeed(t, pool, trivial, "1")
	ended := make(chan error, 1)
	go func() {
		_, err := pool.Run(t.Context(), sandbox.Script{Code: endless})
		ended <- err
	}()
	for pool.Stats().Scripts == 0 {
		time.Sleep(time.Millisecond)
	}
	pool.Close()
	if err := <-ended; !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("the script that ran ended with %v", err)
	}
	if _, err := pool.Run(t.Context(), sandbox.Script{Code: trivial}); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("a closed pool gives %v", err)
	}
}

func TestTooMuchToSend(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	input := json.RawMessage(`"` + strings.Repeat("x", sandbox.MaxInput) + `"`)
	_, err := pool.Run(t.Context(), sandbox.Script{Code: "return input.length", Input: input})
	if failure, ok := errors.AsType[*sandbox.Failure](err); !ok || failure.Kind != sandbox.InputTooLarge {
		t.Errorf("gave %v", err)
	}
	input = append(input[:sandbox.MaxInput-1], '"')
	if got := succeed(t, pool, "return input.length", string(input)); got != fmt.Sprint(sandbox.MaxInput-2) {
		t.Errorf("gave %s", got)
	}
	if got := succeed(t, pool, "return '<'.repeat(4194302)", ""); len(got) != sandbox.MaxOutput {
		t.Errorf("gave %d bytes", len(got))
	}
}

// A child that does not keep to the protocol is killed.
func TestBrokenChild(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"huge frame":    {program, "liar", "a\xff\xff\xff\xff"},
		"unknown frame": {program, "liar", "?\x00\x00\x00\x02{}"},
		"no JSON":       {program, "liar", "a\x00\x00\x00\x02{]"},
		"broken line":   {program, "liar", "l\x00\x00\x00\x02[}"},
		"long line":     {program, "liar", "l\x00\x00\x0b\xb8" + `{"text":"` + strings.Repeat("x", 3000-11) + `"}`},
		"nothing":       {program, "-test.run=^$"},
		"no program":    {program + "-is-not-there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, sandbox.Config{Command: command})
			failure, _ := fail(t, pool, trivial, 10*time.Second)
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
	succeed(b, pool, trivial, "1")
	for b.Loop() {
		if _, err := pool.Run(b.Context(), sandbox.Script{Code: trivial, Input: json.RawMessage("1"), Limit: time.Minute}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCold(b *testing.B) {
	pool := newPool(b, sandbox.Config{Scripts: 1})
	for b.Loop() {
		succeed(b, pool, trivial, "1")
	}
}
