// Package action owns what an action is: its declaration (name, documentation,
// JSON Schema of its input, examples), the one method that runs it and the
// catalog that finds it by name. Concrete actions live in folders of their own
// below this one; when and with what an action runs is the engine's business.
package action

import (
	"context"
	"time"
)

// Spec declares an action.
type Spec struct {
	// Name is what a step writes in `uses`.
	Name    string
	Title   string
	Summary string
	// Input is the JSON Schema of a step's `with`, Output that of its result.
	Input  string
	Output string
	// URLs are the JSON pointers of fields that are URLs: what expressions bring
	// into their text is escaped.
	URLs []string
	// Pure says that the action has no effect outside the run and takes no time
	// worth mentioning: it needs no checkpoint of its own and may be repeated.
	Pure bool
	// Stores says that what goes in is kept in the open, so that secrets are
	// refused in it.
	Stores bool
	// Effects are the fields of the input that make a pure action one with effects,
	// and Guarded those that are not kept in the open although the rest is.
	Effects []string
	Guarded []string
	// Answerable says that the step waits for an answer, which can come over its
	// links.
	Answerable bool
	// Check reports what a schema cannot say about the literal parts of `with`.
	Check func(with map[string]any) []Problem
	// Slow says that Check takes its time and may be wrong under load: it is asked
	// when a workflow is saved, and not again for its runs.
	Slow bool
	// Limits are the bounds that the schemas do not show, a sentence each.
	Limits []string
	// Codes are what the action itself can fail with, beside what any step can.
	Codes []Code
	// Examples document the action and are run as tests.
	Examples []Example
}

// Code is a code that a step can fail with.
type Code struct {
	Name    string `json:"code"`
	Meaning string `json:"meaning"`
}

// Example is an input with the output it gives, once the answer has come that it
// waits for, if it does.
type Example struct {
	Title  string
	With   string
	Answer string
	Output string
}

// Problem is something wrong with a definition, at a JSON pointer. Line and
// Column are set where the text is known that the definition was read from.
type Problem struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Action does the work of a step.
type Action interface {
	Run(ctx context.Context, req Request) (Result, error)
}

// Request is what an action is given.
type Request struct {
	// Input is `with` with every expression evaluated; it fits Spec.Input.
	Input map[string]any
	Now   time.Time
	// Workspace is whom the step belongs to.
	Workspace string
	// IdempotencyKey names this step of this run: the same for every attempt,
	// so that a receiver can tell a repetition.
	IdempotencyKey string
	// Run is the run that the step is part of.
	Run Run
	// Began is when the step began: the same for every attempt, also after a
	// crash.
	Began time.Time
	// WokenAt is set when the step waited until this time and goes on now.
	WokenAt time.Time
	// Answer is what came for a step that waited for an answer; nil: none came.
	Answer map[string]any
	// Log adds a line to the log of the step. It can be called from one
	// goroutine at a time, until the action returns.
	Log func(level Level, message string)
}

// MaxDepth is how many runs can stand above a run: those that had it started,
// one after the other, by a step or by a message that a receiver acted on.
const MaxDepth = 10

// DepthHeader carries the depth of a run to those who may start another.
const DepthHeader = "X-Service-Depth"

// Run is what an action may know of the run around it.
type Run struct {
	ID string
	// Path is that of the step in the run.
	Path string
	// Depth is how many runs stand above this one.
	Depth int
	// Trial says that there is no run: the step is only tried out.
	Trial bool
}

// Level is how much a line of a log matters.
type Level string

// The levels.
const (
	Debug Level = "debug"
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
)

// Result is what an action gives back: an output, the wish to wait, or the end
// of the whole run.
type Result struct {
	Output any
	Wait   *Wait
	Stop   *Stop
}

// Wait suspends the step; the action is then run again.
type Wait struct {
	// Until is when it goes on at the latest.
	Until  time.Time
	Reason string
	// Awaits is what ends the wait before that, if anything does.
	Awaits Awaits
	// Deadline is when the action gives up waiting, if it goes on before only to
	// wait again.
	Deadline time.Time
}

// Awaits is what a step waits for beside a time.
type Awaits string

// What a step can wait for.
const (
	AwaitsAnswer Awaits = "answer" // of a person or another service
	AwaitsRun    Awaits = "run"    // the end of a run that it started
)

// Stop ends the run at once.
type Stop struct {
	Failed  bool
	Message string
}

// Failure is an error with a code that is shown in the run.
type Failure struct {
	Code    string
	Message string
	// Retryable says that the reason may pass.
	Retryable bool
	// RetryAfter is what the other side asked for, if it did.
	RetryAfter time.Duration
}

func (e *Failure) Error() string { return e.Code + ": " + e.Message }

// The codes that any step can fail with.
const (
	InvalidInput = "invalid_input"
	TimedOut     = "timed_out"
)

// Entry is an action with its declaration.
type Entry struct {
	Spec   Spec
	Action Action
}

// Func is a function that is an action.
type Func func(ctx context.Context, req Request) (Result, error)

// Run calls the function.
func (f Func) Run(ctx context.Context, req Request) (Result, error) { return f(ctx, req) }
