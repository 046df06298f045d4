package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Definition is the versioned part of a workflow: what it does.
type Definition struct {
	Triggers []Trigger `json:"triggers"`
	Steps    []Step    `json:"steps"`
	Settings Settings  `json:"settings"`
	// Files are the files that the steps refer to. They are found when the definition is
	// saved, and stored beside it.
	Files References `json:"-"`
	// Level is the release that the definition needs: see the package release. It is found
	// when the definition is saved, and stored beside it. 0: any release.
	Level int `json:"-"`
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
	// Disabled leaves the step out: it is skipped, and the steps after it come after what it
	// needs.
	Disabled bool `json:"disabled,omitempty"`
	// Timeout limits one attempt; waiting does not count.
	Timeout string `json:"timeout,omitempty"`
	Retry   *Retry `json:"retry,omitempty"`
	// Mask lists the paths into the output whose values are masked from then on.
	Mask []string `json:"mask,omitempty"`
	// Connection is the name of the connection that the step uses.
	Connection string `json:"connection,omitempty"`
	// OnBrokenConnection says what happens while that connection has to be
	// reconnected; empty for wait.
	OnBrokenConnection OnBroken `json:"on_broken_connection,omitempty"`

	// A step that contains steps is a block: a loop over a list, or one that
	// repeats until a condition is true.
	Foreach  string  `json:"foreach,omitempty"`
	Parallel int     `json:"parallel,omitempty"`
	Repeat   *Repeat `json:"repeat,omitempty"`
	Steps    []Step  `json:"steps,omitempty"`
}

// Repeat says when a repeated block ends and how long it waits between two
// rounds.
type Repeat struct {
	Until string `json:"until"`
	Every string `json:"every,omitempty"`
	Max   int    `json:"max,omitempty"`
}

// Retry says how often and when a step is retried after a temporary failure.
// Omitted members have their defaults.
type Retry struct {
	MaxAttempts int     `json:"max_attempts,omitempty"`
	Initial     string  `json:"initial,omitempty"`
	Factor      float64 `json:"factor,omitempty"`
	MaxDelay    string  `json:"max_delay,omitempty"`
}

// Settings are the options of a whole workflow.
type Settings struct {
	// Timeout limits the total execution time of the steps of a run; waiting does
	// not count.
	Timeout     string       `json:"timeout,omitempty"`
	Concurrency *Concurrency `json:"concurrency,omitempty"`
}

// Concurrency limits how many runs with the same key are in progress at a time.
type Concurrency struct {
	Key     string    `json:"key,omitempty"`
	Limit   SlotCount `json:"limit,omitempty"`
	OnLimit OnLimit   `json:"on_limit,omitempty"`
}

// SlotCount is how many runs may be in progress at a time.
type SlotCount int

// UnmarshalJSON reads a number. It rejects zero, which means that the member is absent.
func (p *SlotCount) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*int)(p)); err != nil {
		return err
	}
	if *p < 1 {
		return errors.New("must be at least 1")
	}
	return nil
}

// OnLimit says what happens to a new run when the concurrency limit is reached.
type OnLimit string

// The values of OnLimit.
const (
	Queue         OnLimit = "queue"          // it is queued until a slot is free
	Drop          OnLimit = "drop"           // it is rejected
	CancelRunning OnLimit = "cancel_running" // it starts, and the oldest run is cancelled
)

// UnmarshalJSON reads a name. It rejects "", which means that the member is absent.
func (o *OnLimit) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(o)) }

// Join says when a step with several needs starts.
type Join string

// The values of Join.
const (
	AnyRan Join = "any_ran" // all settled, none failed, at least one ran
	All    Join = "all"     // all succeeded
	Always Join = "always"  // all settled, in any way
	First  Join = "first"   // one succeeded
)

// UnmarshalJSON reads a name. It rejects "", which means that the member is absent.
func (j *Join) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(j)) }

// OnError says what happens to the run when a step fails.
type OnError string

// The values of OnError.
const (
	Fail     OnError = "fail"
	Continue OnError = "continue"
)

// UnmarshalJSON reads a name. It rejects "", which means that the member is absent.
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

// OnBroken says what a step does while its connection has to be reconnected.
type OnBroken string

// The values of OnBroken.
const (
	WaitIfBroken OnBroken = "wait"
	FailIfBroken OnBroken = "fail"
)

// UnmarshalJSON reads a name. It rejects "", which means that the member is absent.
func (o *OnBroken) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(o)) }

// Condition is the `if` of a step: an expression as text, or true or false.
type Condition string

// UnmarshalJSON reads a string or a boolean.
func (c *Condition) UnmarshalJSON(data []byte) error {
	switch {
	case bytes.Equal(data, []byte("true")), bytes.Equal(data, []byte("false")):
		*c = Condition(data)
		return nil
	case len(data) > 0 && data[0] == '"' && len(data) > len(`""`):
		return json.Unmarshal(data, (*string)(c))
	}
	return errors.New("must be an expression, true or false")
}

// Count returns the number of steps, including those inside blocks.
func Count(steps []Step) int {
	n := len(steps)
	for _, step := range steps {
		n += Count(step.Steps)
	}
	return n
}

// Title returns the name of the step, or its id if it has none.
func (s Step) Title() string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}

// Point is a position on the canvas.
type Point [2]float64

// UnmarshalJSON reads exactly two numbers.
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

// Layout holds the positions of steps in the builder. It is not versioned.
type Layout map[string]Point

// Canonical returns the canonical JSON of a definition: equal definitions have
// equal bytes.
func (d Definition) Canonical() ([]byte, error) {
	if d.Triggers == nil {
		d.Triggers = []Trigger{}
	}
	if d.Steps == nil {
		d.Steps = []Step{}
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return strictjson.NormalizeStrings(text)
}

// ErrCorrupt means that a stored definition cannot be read.
var ErrCorrupt = errors.New("a stored definition cannot be read")

// ParseDefinition reads the output of Canonical.
func ParseDefinition(data []byte) (Definition, error) {
	var d Definition
	if err := json.Unmarshal(data, &d); err != nil {
		return Definition{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return d, nil
}

// ParseStored reads a stored definition. It refuses one of a newer release, of which this
// one would read only a part.
func ParseStored(data []byte, level int) (Definition, error) {
	if known := release.Known(); level > known {
		return Definition{}, fault.New(fault.Unavailable, "the workflow uses features of Stepmill %s, and this node runs %s: upgrade the node",
			release.Name(level), release.Name(known))
	}
	d, err := ParseDefinition(data)
	d.Level = level
	return d, err
}

// Connections lists the connections that the definition names, sorted.
func (d Definition) Connections() []string {
	var names []string
	for _, trigger := range d.Triggers {
		names = append(names, trigger.Connection)
	}
	names = appendConnections(names, d.Steps)
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// StepsUsing lists the ids of the steps, at any depth, whose connection fits.
func (d Definition) StepsUsing(fits func(connection string) bool) []string {
	var ids []string
	var walk func([]Step)
	walk = func(steps []Step) {
		for _, step := range steps {
			if step.Connection != "" && fits(step.Connection) {
				ids = append(ids, step.ID)
			}
			walk(step.Steps)
		}
	}
	walk(d.Steps)
	return ids
}

// TriggersUsing lists the ids of the triggers whose connection fits.
func (d Definition) TriggersUsing(fits func(connection string) bool) []string {
	var ids []string
	for _, trigger := range d.Triggers {
		if trigger.Connection != "" && fits(trigger.Connection) {
			ids = append(ids, trigger.ID)
		}
	}
	return ids
}

func appendConnections(names []string, steps []Step) []string {
	for _, step := range steps {
		names = appendConnections(append(names, step.Connection), step.Steps)
	}
	return names
}
