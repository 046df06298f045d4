package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Definition is what a workflow does: the part that makes versions.
type Definition struct {
	Triggers []Trigger `json:"triggers"`
	Steps    []Step    `json:"steps"`
	Settings Settings  `json:"settings"`
}

// Step is an entry of `steps`.
type Step struct {
	ID      string          `json:"id"`
	Name    string          `json:"name,omitempty"`
	Uses    string          `json:"uses,omitempty"`
	With    json.RawMessage `json:"with,omitempty"`
	Needs   *[]string       `json:"needs,omitempty"`
	If      Condition       `json:"if,omitzero"`
	Join    Join            `json:"join,omitempty"`
	OnError OnError         `json:"on_error,omitempty"`
	// Timeout bounds one attempt; waiting does not count.
	Timeout string `json:"timeout,omitempty"`
	Retry   *Retry `json:"retry,omitempty"`

	// A step with steps of its own is a block: a loop over a list, or one that is
	// repeated until a condition holds.
	Foreach  string  `json:"foreach,omitempty"`
	Parallel int     `json:"parallel,omitempty"`
	Repeat   *Repeat `json:"repeat,omitempty"`
	Steps    []Step  `json:"steps,omitempty"`
}

// Repeat says when a block that is repeated ends, and how long it rests between
// two rounds.
type Repeat struct {
	Until string `json:"until"`
	Every string `json:"every,omitempty"`
	Max   int    `json:"max,omitempty"`
}

// Retry says how often and when a step that failed for a passing reason is
// tried again. What is left out has its default.
type Retry struct {
	MaxAttempts int     `json:"max_attempts,omitempty"`
	Initial     string  `json:"initial,omitempty"`
	Factor      float64 `json:"factor,omitempty"`
	MaxDelay    string  `json:"max_delay,omitempty"`
}

// Settings are the options of a whole workflow.
type Settings struct {
	// Timeout bounds the time that steps of a run are executed; waiting does not
	// count.
	Timeout     string       `json:"timeout,omitempty"`
	Concurrency *Concurrency `json:"concurrency,omitempty"`
}

// Concurrency bounds how many runs with the same key are under way at a time.
type Concurrency struct {
	Key     string  `json:"key,omitempty"`
	Limit   Places  `json:"limit,omitempty"`
	OnLimit OnLimit `json:"on_limit,omitempty"`
}

// Places is how many runs are under way at a time.
type Places int

// UnmarshalJSON reads a number; only a member that is absent means the default.
func (p *Places) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*int)(p)); err != nil {
		return err
	}
	if *p < 1 {
		return errors.New("must be at least 1")
	}
	return nil
}

// OnLimit says what becomes of a run that would be one too many.
type OnLimit string

// What becomes of it.
const (
	Queue         OnLimit = "queue"          // it waits for its turn
	Drop          OnLimit = "drop"           // it is refused
	CancelRunning OnLimit = "cancel_running" // the oldest is cancelled for it
)

// UnmarshalJSON reads a name; only a member that is absent means the default.
func (o *OnLimit) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(o)) }

// Join says when a step with several needs starts.
type Join string

// The ways to join.
const (
	AnyRan Join = "any_ran" // all settled, none failed, at least one ran
	All    Join = "all"     // all succeeded
	Always Join = "always"  // all settled, however
	First  Join = "first"   // one succeeded
)

// UnmarshalJSON reads a name; only a member that is absent means the default.
func (j *Join) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(j)) }

// OnError says what the failure of a step means for its run.
type OnError string

// The ways to go on after a failure.
const (
	Fail     OnError = "fail"
	Continue OnError = "continue"
)

// UnmarshalJSON reads a name; only a member that is absent means the default.
func (o *OnError) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(o)) }

func unmarshalName(data []byte, into *string) error {
	if err := json.Unmarshal(data, into); err != nil {
		return err
	}
	if *into == "" {
		return errors.New("must not be empty")
	}
	return nil
}

// Condition is the `if` of a step: an expression, written as text, or a plain
// true or false.
type Condition string

// UnmarshalJSON reads text or a truth value.
func (c *Condition) UnmarshalJSON(data []byte) error {
	switch {
	case bytes.Equal(data, []byte("true")), bytes.Equal(data, []byte("false")):
		*c = Condition(data)
		return nil
	case len(data) > 0 && data[0] == '"' && len(data) > len(`""`):
		return json.Unmarshal(data, (*string)(c))
	}
	return fmt.Errorf("must be an expression or a truth value")
}

// Count is the number of steps, those inside blocks included.
func Count(steps []Step) int {
	n := len(steps)
	for _, step := range steps {
		n += Count(step.Steps)
	}
	return n
}

// Title is the name of the step, or its id.
func (s Step) Title() string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}

// Point is a place on the canvas.
type Point [2]float64

// UnmarshalJSON reads two numbers, neither more nor fewer.
func (p *Point) UnmarshalJSON(data []byte) error {
	var at []float64
	if err := strictjson.Decode(data, &at); err != nil {
		return err
	}
	if len(at) != len(p) {
		return errors.New("must be two numbers")
	}
	*p = Point(at)
	return nil
}

// Layout is where the builder draws steps; it makes no version.
type Layout map[string]Point

// Canonical returns the one written form of a definition: equal definitions
// have equal bytes.
func (d Definition) Canonical() ([]byte, error) {
	if d.Triggers == nil {
		d.Triggers = []Trigger{}
	}
	if d.Steps == nil {
		d.Steps = []Step{}
	}
	return json.Marshal(d)
}

// ErrCorrupt says that a stored definition cannot be read.
var ErrCorrupt = errors.New("a stored definition cannot be read")

// ParseDefinition reads what Canonical wrote.
func ParseDefinition(data []byte) (Definition, error) {
	var d Definition
	if err := json.Unmarshal(data, &d); err != nil {
		return Definition{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return d, nil
}
