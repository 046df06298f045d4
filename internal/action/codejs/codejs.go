// Package codejs implements the action code.js, which runs JavaScript. It defines
// the input of a script, its result and its failures. The runner decides where
// and within which limits a script runs.
package codejs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/sandbox"
)

// Error codes of scripts.
const (
	ScriptError    = "script_error"
	ScriptTimeout  = "script_timeout"
	ScriptMemory   = "script_memory"
	ScriptCrashed  = "script_crashed"
	OutputTooLarge = "output_too_large"
)

const (
	// maxRunTime is how long a script may run, regardless of the timeout of its
	// step: it occupies a process that other scripts wait for.
	maxRunTime = time.Minute
	// margin is how long before the timeout of the step a script is ended, so that
	// the step can report why.
	margin = 200 * time.Millisecond
)

// Runner runs and compiles scripts.
type Runner interface {
	// Acquire waits until a script of the workspace may run.
	Acquire(ctx context.Context, workspaceID string) (release func(), err error)
	Run(ctx context.Context, script sandbox.Script) (sandbox.Outcome, error)
	Check(ctx context.Context, workspaceID, code string) (*sandbox.Failure, error)
}

// Entry declares the action. Without a runner it can neither run scripts nor
// check them.
func Entry(runner Runner) action.Entry {
	entry := action.Entry{
		Spec: action.Spec{
			Name:     "code.js",
			Title:    "Run JavaScript",
			Keywords: []string{"code", "script", "javascript", "function", "custom"},
			Summary: "Runs the body of a JavaScript function and returns its result. The script runs in a separate process " +
				"with limited time and memory, without access to the file system, network or timers. It can read the files in its input and create new ones. Its console output is written to the log of the step.",
			Input:  inputSchema,
			Output: outputSchema,
			Limits: []string{
				"The code has at most 256 KiB, the input 4 MiB, and the result 4 MiB with at most 64 levels of nesting. A list in the result that is too large for an output becomes a list file.",
				"A script can run for the timeout of its step, at most a minute, and use 64 MiB of memory unless the operator has set another limit.",
				"A script can read and create files of up to a quarter of its memory, 16 MiB by default. It can read files 1,000 times and 256 MiB in total, and return up to 100 new files.",
				"The server runs a limited number of scripts at a time; workspaces take turns. Time that a step waits for its turn does not count towards its timeout, but it counts towards the timeout of the run.",
			},
			Codes: []action.Code{
				{Name: ScriptError, Meaning: "The script does not compile, threw an exception, or returned a value that JSON cannot represent."},
				{Name: ScriptTimeout, Meaning: "The script exceeded its time limit."},
				{Name: ScriptMemory, Meaning: "The script exceeded its memory limit."},
				{Name: ScriptCrashed, Meaning: "The process that executed the script ended unexpectedly. The step is retried if the script did not cause it."},
				{Name: OutputTooLarge, Meaning: "The result is larger than 4 MiB or, without lists that become list files, than the plan allows."},
			},
			Examples: examples,
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return run(ctx, runner, req)
		}),
	}
	if runner != nil {
		entry.Acquire = runner.Acquire
		entry.Spec.SlowCheck = (&checker{runner: runner, cache: map[[sha256.Size]byte]*sandbox.Failure{}}).check
	}
	return entry
}

func run(ctx context.Context, runner Runner, req action.Request) (action.Result, error) {
	code, _ := req.Input["code"].(string)
	files := &scriptFiles{stored: req.Files, marker: rand.Text(), index: map[string]int{}}
	input, err := files.encode(req.Input["input"])
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("with/input: %s", err)}
	}
	outcome, err := runner.Run(ctx, sandbox.Script{Code: code, Input: input, Files: files.forSandbox(), Limit: timeLimit(ctx)})
	writeLog(req, outcome.Lines)
	if failure, ok := errors.AsType[*sandbox.Failure](err); ok {
		return action.Result{}, toFailure(failure)
	}
	if err != nil {
		return action.Result{}, err
	}
	value, err := files.decode(outcome.Output)
	if err != nil {
		return action.Result{}, &action.Failure{Code: ScriptError, Message: "the result is not valid JSON"}
	}
	return action.Result{Output: value}, nil
}

func timeLimit(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return maxRunTime
	}
	left := time.Until(end)
	return min(maxRunTime, max(left-margin, left/2, time.Millisecond))
}

func writeLog(req action.Request, lines []sandbox.Line) {
	if req.Log == nil {
		return
	}
	for _, line := range lines {
		req.Log(action.Level(line.Level), line.Text)
	}
}

func toFailure(f *sandbox.Failure) *action.Failure {
	out := &action.Failure{Code: ScriptError, Message: formatFailure(f)}
	switch f.Kind {
	case sandbox.Timeout:
		out.Code = ScriptTimeout
	case sandbox.Memory:
		out.Code = ScriptMemory
	case sandbox.TooLarge:
		out.Code = OutputTooLarge
	case sandbox.InputTooLarge:
		out.Code = action.InvalidInput
	case sandbox.Crashed:
		out.Code = ScriptCrashed
	case sandbox.Lost:
		out.Code, out.Retryable = ScriptCrashed, true
	}
	return out
}

func formatFailure(f *sandbox.Failure) string {
	var text strings.Builder
	text.WriteString(f.Message)
	if f.Line > 0 {
		text.WriteString(" (" + location(f) + ")")
	}
	if len(f.Stack) > 1 {
		for _, call := range f.Stack {
			text.WriteString("\n    at " + call)
		}
	}
	return text.String()
}

func location(f *sandbox.Failure) string {
	if f.Column == 0 {
		return fmt.Sprintf("line %d", f.Line)
	}
	return fmt.Sprintf("line %d, column %d", f.Line, f.Column)
}
