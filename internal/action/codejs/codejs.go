// Package codejs is the action code.js: JavaScript between two steps. It says
// what a script is given, what becomes of its result, and how its failures are
// told; where and within which limits it runs is the runner's business.
package codejs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/sandbox"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// The codes that a script can fail with.
const (
	ScriptError    = "script_error"
	ScriptTimeout  = "script_timeout"
	ScriptMemory   = "script_memory"
	ScriptCrashed  = "script_crashed"
	OutputTooLarge = "output_too_large"
)

const (
	// longest is how long a script may run, whatever the time of its step: it
	// holds a process that others wait for.
	longest = time.Minute
	// margin is how much before the end of the step a script is ended, so that
	// the step can say why.
	margin = 200 * time.Millisecond
)

// Runner runs and compiles scripts.
type Runner interface {
	Run(ctx context.Context, script sandbox.Script) (sandbox.Outcome, error)
	Check(ctx context.Context, code string) (*sandbox.Failure, error)
}

// Entry declares the action.
func Entry(runner Runner) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name:  "code.js",
			Title: "Run JavaScript",
			Summary: "Runs the body of a JavaScript function and gives what it returns. The script runs in a process of its own, " +
				"with limited time and memory and without access to files, network or timers. What it writes to the console is in the log of the step.",
			Input:  inputSchema,
			Output: outputSchema,
			Check:  newChecker(runner).check,
			Slow:   true,
			Limits: []string{
				"The code has at most 256 KiB, the input 4 MiB, the result 1 MiB, nested at most 64 deep.",
				"A script has the time of its step, at most a minute, and 64 MiB of memory unless the operator says otherwise.",
			},
			Codes: []action.Code{
				{Name: ScriptError, Meaning: "The script threw an exception, does not compile, or returned what JSON cannot hold."},
				{Name: ScriptTimeout, Meaning: "The script did not end in its time."},
				{Name: ScriptMemory, Meaning: "The script used more memory than it may."},
				{Name: ScriptCrashed, Meaning: "The process of the script ended in the middle. It is tried again when that was not its own doing."},
				{Name: OutputTooLarge, Meaning: "The result is larger than 1 MiB."},
			},
			Examples: examples,
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return run(ctx, runner, req)
		}),
	}
}

func run(ctx context.Context, runner Runner, req action.Request) (action.Result, error) {
	code, _ := req.Input["code"].(string)
	input, err := strictjson.Encode(req.Input["input"])
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("with/input: %s", err)}
	}
	outcome, err := runner.Run(ctx, sandbox.Script{Code: code, Input: input, Limit: limit(ctx)})
	record(req, outcome.Lines)
	if failure, ok := errors.AsType[*sandbox.Failure](err); ok {
		return action.Result{}, explain(failure)
	}
	if err != nil {
		return action.Result{}, err
	}
	return result(outcome.Output)
}

// limit is how long the script may run. A script that had to wait for a process
// is met by the end of its step first, and that may be tried again.
func limit(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return longest
	}
	left := time.Until(end)
	return min(longest, max(left-margin, left/2, time.Millisecond))
}

func record(req action.Request, lines []sandbox.Line) {
	if req.Log == nil {
		return
	}
	for _, line := range lines {
		req.Log(action.Level(line.Level), line.Text)
	}
}

func result(output json.RawMessage) (action.Result, error) {
	value, err := expr.FromJSON(output)
	if err != nil {
		return action.Result{}, &action.Failure{Code: ScriptError, Message: "the result is not valid JSON"}
	}
	return action.Result{Output: value}, nil
}

// explain tells a failure to the one who wrote the script.
func explain(f *sandbox.Failure) *action.Failure {
	out := &action.Failure{Code: ScriptError, Message: describe(f)}
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

// describe gives the message with its place in the code and the calls that led
// there.
func describe(f *sandbox.Failure) string {
	var text strings.Builder
	text.WriteString(f.Message)
	if f.Line > 0 {
		text.WriteString(" (" + place(f) + ")")
	}
	if len(f.Stack) > 1 {
		for _, call := range f.Stack {
			text.WriteString("\n    at " + call)
		}
	}
	return text.String()
}

func place(f *sandbox.Failure) string {
	if f.Column == 0 {
		return fmt.Sprintf("line %d", f.Line)
	}
	return fmt.Sprintf("line %d, column %d", f.Line, f.Column)
}
