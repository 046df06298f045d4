package codejs_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/codejs"
	"github.com/stepmill/stepmill/internal/fairqueue"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/sandbox"
)

// TestMain runs scripts if the test binary is started as the sandbox process.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "sandbox" {
		_ = sandbox.Serve(os.Stdin, os.Stdout, 64<<20)
		return
	}
	m.Run()
}

func realRunner(t *testing.T) *sandbox.Pool {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pool := sandbox.New(sandbox.Config{Command: []string{program, "sandbox"}, Size: 2})
	t.Cleanup(pool.Close)
	return pool
}

// fakeRunner returns fixed results and counts checks.
type fakeRunner struct {
	outcome sandbox.Outcome
	failure *sandbox.Failure
	err     error
	script  sandbox.Script
	checks  int
}

func (f *fakeRunner) Run(_ context.Context, script sandbox.Script) (sandbox.Outcome, error) {
	f.script = script
	if f.failure != nil {
		return f.outcome, f.failure
	}
	return f.outcome, f.err
}

func (f *fakeRunner) Acquire(context.Context, string) (func(), error) { return func() {}, nil }

func (f *fakeRunner) Check(context.Context, string, string) (*sandbox.Failure, error) {
	f.checks++
	return f.failure, f.err
}

func TestRun(t *testing.T) {
	t.Parallel()
	var lines []string
	result, err := codejs.Entry(realRunner(t)).Action.Run(t.Context(), action.Request{
		Input: map[string]any{
			"code":  "console.log('got', input.n); console.error('careful'); return {n: input.n + 1, half: input.n / 2, big: input.big}",
			"input": map[string]any{"n": 41, "big": json.Number("9007199254740991")},
		},
		Log: func(level action.Level, text string) { lines = append(lines, string(level)+" "+text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"n": 42, "half": 20.5, "big": 9007199254740991}, result.Output); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"info got 41", "error careful"}, lines); diff != "" {
		t.Error(diff)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		failure sandbox.Failure
		want    action.Failure
	}{
		{
			sandbox.Failure{Kind: sandbox.Exception, Message: "Error: x", Line: 2, Column: 7, Stack: []string{"f (2:7)", "5:1"}},
			action.Failure{Code: "script_error", Message: "Error: x (line 2, column 7)\n    at f (2:7)\n    at 5:1"},
		},
		{
			sandbox.Failure{Kind: sandbox.Exception, Message: "Error: x", Line: 1, Column: 1, Stack: []string{"1:1"}},
			action.Failure{Code: "script_error", Message: "Error: x (line 1, column 1)"},
		},
		{sandbox.Failure{Kind: sandbox.Syntax, Message: "SyntaxError: x", Line: 3}, action.Failure{Code: "script_error", Message: "SyntaxError: x (line 3)"}},
		{sandbox.Failure{Kind: sandbox.Timeout, Message: "m"}, action.Failure{Code: "script_timeout", Message: "m"}},
		{sandbox.Failure{Kind: sandbox.Memory, Message: "m"}, action.Failure{Code: "script_memory", Message: "m"}},
		{sandbox.Failure{Kind: sandbox.TooLarge, Message: "m"}, action.Failure{Code: "output_too_large", Message: "m"}},
		{sandbox.Failure{Kind: sandbox.InputTooLarge, Message: "m"}, action.Failure{Code: "invalid_input", Message: "m"}},
		{sandbox.Failure{Kind: sandbox.Crashed, Message: "m"}, action.Failure{Code: "script_crashed", Message: "m"}},
		{sandbox.Failure{Kind: sandbox.Lost, Message: "m"}, action.Failure{Code: "script_crashed", Message: "m", Retryable: true}},
	} {
		entry := codejs.Entry(&fakeRunner{failure: &tc.failure})
		_, err := entry.Action.Run(t.Context(), action.Request{Input: map[string]any{"code": "x"}})
		got, ok := errors.AsType[*action.Failure](err)
		if !ok {
			t.Fatalf("%+v: got error %v", tc.failure, err)
		}
		if diff := cmp.Diff(tc.want, *got); diff != "" {
			t.Errorf("%+v\n%s", tc.failure, diff)
		}
	}
}

func TestFailedScriptKeepsItsLog(t *testing.T) {
	t.Parallel()
	runner := &fakeRunner{failure: &sandbox.Failure{Kind: sandbox.Timeout}, outcome: sandbox.Outcome{Lines: []sandbox.Line{{Level: "debug", Text: "so far"}}}}
	var lines []string
	request := action.Request{
		Input: map[string]any{"code": "x"},
		Log:   func(level action.Level, text string) { lines = append(lines, string(level)+" "+text) },
	}
	if _, err := codejs.Entry(runner).Action.Run(t.Context(), request); err == nil || len(lines) != 1 || lines[0] != "debug so far" {
		t.Errorf("%v, %v", err, lines)
	}
}

// Errors that the script did not cause, such as the timeout of the step, are
// returned unchanged.
func TestOtherErrorsAreReturned(t *testing.T) {
	t.Parallel()
	_, err := codejs.Entry(&fakeRunner{err: context.DeadlineExceeded}).Action.Run(t.Context(), action.Request{Input: map[string]any{"code": "x"}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ step, want time.Duration }{
		{0, time.Minute},
		{15 * time.Minute, time.Minute},
		{10 * time.Second, 9800 * time.Millisecond},
		{200 * time.Millisecond, 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if tc.step > 0 {
				ctx, cancel = context.WithTimeout(ctx, tc.step)
			}
			defer cancel()
			runner := &fakeRunner{outcome: sandbox.Outcome{Output: json.RawMessage("1")}}
			if _, err := codejs.Entry(runner).Action.Run(ctx, action.Request{Input: map[string]any{"code": "x"}}); err != nil {
				t.Fatal(err)
			}
			if got := runner.script.Limit; got != tc.want {
				t.Errorf("step timeout %v: the script may run for %v, want %v", tc.step, got, tc.want)
			}
		})
	}
}

// checkCode returns a function that checks the code of a step.
func checkCode(t *testing.T, runner codejs.Runner) func(code string) []action.Problem {
	t.Helper()
	check := codejs.Entry(runner).Spec.SlowCheck
	return func(code string) []action.Problem {
		t.Helper()
		problems, err := check(t.Context(), "ws_1", map[string]any{"code": code})
		if err != nil {
			t.Fatal(err)
		}
		return problems
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	check := checkCode(t, realRunner(t))
	for _, tc := range []struct{ code, want string }{
		{"return input.a ?? await null", ""},
		{"for (;;) {}", ""},
		{"const a = 1\nconst b = = 2", "SyntaxError: Unexpected token = (line 2, column 11)"},
		{strings.Repeat("(", 100_000), "is too complex to compile"},
	} {
		problems := check(tc.code)
		switch {
		case tc.want == "" && len(problems) > 0:
			t.Errorf("%.20s: %+v", tc.code, problems)
		case tc.want != "" && (len(problems) != 1 || problems[0].Pointer != "/code" || problems[0].Message != tc.want):
			t.Errorf("%.20s: %+v", tc.code, problems)
		}
	}
}

// The same code is compiled once. Unknown results are not cached.
func TestCompileResultsAreCached(t *testing.T) {
	t.Parallel()
	runner := &fakeRunner{}
	check := checkCode(t, runner)
	for range 3 {
		check("return 1")
	}
	if runner.checks != 1 {
		t.Errorf("compiled %d times", runner.checks)
	}
	runner.checks, runner.err = 0, sandbox.ErrClosed
	for range 3 {
		if problems := check("return 2"); problems != nil {
			t.Errorf("%+v", problems)
		}
	}
	if runner.checks != 3 {
		t.Errorf("compiled %d times", runner.checks)
	}
}

// A workspace that has too many checks waiting is told so, and a check ends with
// its request. Neither saves code that was not checked.
func TestCheckFails(t *testing.T) {
	t.Parallel()
	check := func(ctx context.Context, runner codejs.Runner) error {
		problems, err := codejs.Entry(runner).Spec.SlowCheck(ctx, "ws_1", map[string]any{"code": "return 1"})
		if problems != nil {
			t.Errorf("%+v", problems)
		}
		return err
	}
	if err := check(t.Context(), &fakeRunner{err: fairqueue.ErrFull}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("gave %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := check(ctx, &fakeRunner{err: ctx.Err()}); !errors.Is(err, context.Canceled) {
		t.Errorf("gave %v", err)
	}
}

// A compile timeout says more about the machine than about the code.
func TestCompileTimeoutIsNotCached(t *testing.T) {
	t.Parallel()
	runner := &fakeRunner{failure: &sandbox.Failure{Kind: sandbox.Timeout}}
	check := checkCode(t, runner)
	if problems := check("return 1"); len(problems) != 1 {
		t.Errorf("%+v", problems)
	}
	runner.failure = nil
	if problems := check("return 1"); problems != nil {
		t.Errorf("the timeout was cached: %+v", problems)
	}
}
