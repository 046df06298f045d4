// Package action defines actions: their declaration (name, documentation, JSON
// Schema of the input, examples), the interface that runs them and the catalog
// that finds them by name. Concrete actions live in subpackages. The engine
// decides when an action runs and with what input.
package action

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Spec declares an action.
type Spec struct {
	// Name is the value of `uses` in a step.
	Name    string
	Title   string
	Summary string
	// Keywords are words that people search for the action by, apart from those of its
	// name and title, such as what other products call it.
	Keywords []string
	// Input is the JSON Schema of a step's `with`, Output that of its result. A member of
	// the input with the keyword x-literal cannot contain expressions; its value says what
	// to do instead.
	Input  string
	Output string
	// ExactlyOne are the input fields of which a step must have exactly one.
	ExactlyOne []string
	// URLs are the JSON pointers of fields that are URLs. Values that expressions
	// insert into them are escaped.
	URLs []string
	// XML are the JSON pointers of fields that are XML documents. Values that
	// expressions insert into them are escaped.
	XML []string
	// Pure reports whether the action has no effects outside the run and is fast:
	// it needs no checkpoint of its own and may be repeated.
	Pure bool
	// Writes reports whether the action changes tables or keys. Like a pure action it
	// has no effects itself: it returns operations. It may be repeated.
	Writes bool
	// Stores reports whether the input is stored unencrypted, so that secrets are
	// rejected in it.
	Stores bool
	// Effects are the input fields that give a pure action effects. Guarded are
	// the input fields that may contain secrets although Stores is set.
	Effects []string
	Guarded []string
	// Answerable reports whether the step waits for an answer, which can arrive
	// through its links.
	Answerable bool
	// Connects reports whether the step may name a connection.
	Connects bool
	// Integration is the id of the integration whose connections the step needs, "" if
	// it needs none, or takes any.
	Integration string
	// Timeout is how long one attempt may take if the step does not say, zero for the
	// default of all steps.
	Timeout time.Duration
	// Check returns problems in the literal parts of `with` that a schema cannot
	// express.
	Check func(with map[string]any) []Problem
	// SlowCheck is like Check, for what takes long: it is called when a workflow is
	// saved, but not for its runs. An error means that it could not be determined
	// whether there are problems.
	SlowCheck func(ctx context.Context, workspaceID string, with map[string]any) ([]Problem, error)
	// Limits are the limits that the schemas do not express, a sentence each.
	Limits []string
	// Codes are the error codes specific to the action, in addition to those of
	// any step.
	Codes []Code
	// Examples document the action and are run as tests.
	Examples []Example
}

// Code is an error code of a step.
type Code struct {
	Name    string `json:"code"`
	Meaning string `json:"meaning"`
}

// Example is an input with the resulting output. Answer is the answer that the
// action waits for, if it waits.
type Example struct {
	Title  string
	With   string
	Answer string
	Output string
}

// Problem is a problem in a definition, at a JSON pointer. Line and Column are
// set if the source text of the definition is known.
type Problem struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Action executes a step.
type Action interface {
	Run(ctx context.Context, req Request) (Result, error)
}

// Request is the input of an action and the context it runs in.
type Request struct {
	// Input is `with` with every expression evaluated; it matches Spec.Input.
	Input map[string]any
	// MaskedInput is the input as the run stores it. Actions that store their input
	// elsewhere use it, so that no masked value gets there.
	MaskedInput map[string]any
	// Now is the time of day.
	Now       time.Time
	Workspace string
	// IdempotencyKey identifies this step of this run. It is the same for every
	// attempt, so that a receiver can recognize retries.
	IdempotencyKey string
	// Connection is the connection that the step names; nil for none.
	Connection *Connection
	// Interrupted reports whether a process ended during a call with the same state, which
	// may have had effects. Retried reports whether such a call failed.
	Interrupted bool
	Retried     bool
	Run         Run
	// Began is when the step began. It is the same for every attempt, even after
	// a crash.
	Began time.Time
	// WokenAt is the steady time that the step waited for, if it resumes after a wait.
	WokenAt time.Time
	// Left is how much is left of the longest wait, if the step resumes before its end.
	Left time.Duration
	// Answer is the answer the step waited for, or the result of its operation; nil if
	// none has arrived.
	Answer map[string]any
	// State is the state of the step's last checkpoint as JSON, or nil if there is
	// none.
	State json.RawMessage
	// Chunks are the chunks of that state, in order. They must not be changed.
	Chunks [][]byte
	// Files creates and reads files.
	Files Files
	// Mask returns an output without the values that must not be stored: secrets, and
	// what the mask of the step selects. An action that writes a part of its output to a
	// file calls it first.
	Mask func(output map[string]any) (map[string]any, error)
	// Secrets masks the secrets that the step may have used. An action that evaluates
	// expressions with what it has received masks that first: they could make something of
	// a secret that is no longer recognized. It masks nothing if it is nil.
	Secrets *mask.Masker
	// MaxOutput is the most bytes that a state may have as JSON, and an output without
	// the lists in it that become list files. Zero means that there is no limit.
	MaxOutput int
	Plan      auth.Plan
	// Log adds a line to the log of the step. It must not be called concurrently
	// or after the action has returned.
	Log func(level Level, message string)
}

// MaxDepth is the maximum number of ancestors of a run. A run is the parent of
// the runs that its steps start, or that a receiver starts because of one of its
// requests or notifications.
const MaxDepth = 10

// DepthHeader is the header that carries the depth of a run to receivers that
// may start another.
const DepthHeader = "X-Service-Depth"

// Run describes the run that an action is part of.
type Run struct {
	ID         string
	WorkflowID string
	Path       string
	// Depth is the number of ancestors of the run.
	Depth int
	// Trial reports whether the step is only being tested, outside any run.
	Trial bool
}

// Level is the severity of a log line.
type Level string

// The levels.
const (
	Debug Level = "debug"
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
)

// Result is the result of an action: an output, a wait, a checkpoint, an operation on
// tables or keys, or the end of the whole run. A wait can come with a checkpoint.
type Result struct {
	Output any
	// Files means that the output refers to files that the run may not know yet, because
	// the action has read them from a table or a key.
	Files      bool
	Wait       *Wait
	Checkpoint *Checkpoint
	Operation  *Operation // only of actions whose Spec has Writes
	Stop       *Stop
}

// Checkpoint means that the action has made progress and is not done. Once the state
// is durable, the action runs again with it as [Request.State]: after the wait if the
// result has one, otherwise immediately. Whatever interrupts a call, be it a failure,
// a timeout, a crash or a shutdown, the next call gets the state of the last checkpoint.
//
// A checkpoint resets the attempts of the step: its retry policy applies to the
// failures since then. The timeout of the step applies to each call. Pure actions
// cannot return checkpoints.
type Checkpoint struct {
	// State is encoded as JSON. It replaces that of the last checkpoint. It is sealed,
	// so it may contain secrets. With all chunks, its size has the same limit as an
	// output.
	State any
	// Chunk is added to the chunks of the state, unless it is nil. Other than State, it
	// is written only once, however many checkpoints follow. If Restart is set, it
	// replaces the earlier chunks.
	Chunk   []byte
	Restart bool
	// Files are the files that the state refers to. The run holds them until a
	// checkpoint of the step does not have them or the step ends.
	Files []*expr.File
}

// Resume makes the request that of the next call, after a checkpoint that is held in
// memory only.
func (r *Request) Resume(after Checkpoint) error {
	state, err := strictjson.Encode(after.State)
	if err != nil {
		return err
	}
	r.State = state
	if after.Restart {
		r.Chunks = nil
	}
	if after.Chunk != nil {
		r.Chunks = append(slices.Clip(r.Chunks), after.Chunk)
	}
	return nil
}

// Object returns an output the way a run stores and shows it, which is always as
// an object: a bare value is wrapped, and nil becomes an empty object.
func Object(output any) map[string]any {
	switch value := output.(type) {
	case map[string]any:
		return value
	case nil:
		return map[string]any{}
	default:
		return map[string]any{"value": value}
	}
}

// Wait suspends the step. The action runs again when the wait is over.
type Wait struct {
	// For is how long the step waits at most, however the clock is set meanwhile.
	For time.Duration
	// Until is the time of day that the step waits for instead. If the clock is set
	// meanwhile, the action may run too early, and waits again.
	Until  time.Time
	Reason string
	// Awaits is what can end the wait earlier, if anything.
	Awaits Awaits
	// Longest is after what time the action stops waiting, if it may wait again after
	// For.
	Longest time.Duration
}

// Awaits is what a step waits for in addition to a time.
type Awaits string

// The values of Awaits.
const (
	AwaitsAnswer Awaits = "answer" // from a person or another service
	AwaitsRun    Awaits = "run"    // the end of a run that it started
	AwaitsTime   Awaits = "time"   // a time of day, which comes sooner if the clock is set
)

// A broken connection is awaited by its name: see [AwaitsConnection].

// Stop ends the run immediately.
type Stop struct {
	Failed  bool
	Message string
}

// Failure is an error with a code that is shown in the run.
type Failure struct {
	Code    string
	Message string
	// Output is the output of the failed step, such as the response of a server,
	// or nil. The engine redacts and truncates it.
	Output map[string]any
	// Retryable reports whether the failure may be transient.
	Retryable bool
	// Rejected reports whether the server rejected the credential of the connection.
	Rejected bool
	// RetryAfter is the delay that the server asked for, if any.
	RetryAfter time.Duration
}

func (e *Failure) Error() string { return e.Code + ": " + e.Message }

// Error codes that any step can fail with.
const (
	InvalidInput   = "invalid_input"
	TimedOut       = "timed_out"
	OutputTooLarge = "output_too_large"
)

// Entry is an action with its declaration.
type Entry struct {
	Spec   Spec
	Action Action
	// Acquire, if set, waits until the action may run for a workspace. It is for
	// actions that share a resource of which there is little. It must return as
	// soon as the context ends. The timeout of the step starts when it returns, and
	// release is called when the action has returned.
	Acquire func(ctx context.Context, workspaceID string) (release func(), err error)
}

// Func adapts a function to an Action.
type Func func(ctx context.Context, req Request) (Result, error)

// Run calls the function.
func (f Func) Run(ctx context.Context, req Request) (Result, error) { return f(ctx, req) }
