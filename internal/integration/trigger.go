package integration

import (
	"time"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Trigger starts runs when there is something new at a service. Its items are what a poll
// has found or, without a poll, the events in a call of the service.
type Trigger struct {
	Name    string // such as new_message
	Title   string
	Summary string
	// Input has the settings of the trigger, in the order of the file.
	Input []Input
	// Hook is how the service tells what is new, and Poll how to look for it. If there are
	// both, a call only makes the poll due. At least one of them is not nil.
	Hook *Hook
	Poll *Poll
	// When decides whether an item starts a run, and Key identifies it: what has the same
	// key is not new.
	When Condition
	Key  *expr.Program
	// Output is the payload of the run. Nil means the item itself.
	Output *Value
	// Deprecated is set if another trigger replaces it.
	Deprecated *Deprecation
}

// Poll says how to look for new items.
type Poll struct {
	// Operation reads a list of items. It gets the inputs of the trigger that have the same
	// name as its own, and reads the cursor.
	Operation *Operation
	// Every is how often, unless the trigger says otherwise.
	Every time.Duration
	// Start is the first cursor, or StartCall reads it. Without either, what the first poll
	// finds is not new.
	Start     *Value
	StartCall *Operation
	// Cursor is what the next poll reads as cursor; nil keeps the present one. More says
	// whether there are further items, which are read at once.
	Cursor, More *expr.Program
}

// PositionLost is the kind of an error with which a service says that it no longer knows
// the cursor of a poll.
const PositionLost = "position_lost"

const shortestPoll = 10 * time.Second

// FindTrigger returns the trigger with a name.
func (i *Integration) FindTrigger(name string) (*Trigger, bool) {
	if _, known := findOutline(i.triggers, name); !known {
		return nil, false
	}
	triggers := i.Triggers()
	for n := range triggers {
		if triggers[n].Name == name {
			return &triggers[n], true
		}
	}
	return nil, false
}

// GetTrigger returns the trigger with a name and its outline, or the error that clients see
// if there is none.
func (i *Integration) GetTrigger(name string) (*Trigger, Outline, error) {
	found, ok := i.FindTrigger(name)
	if !ok {
		return nil, Outline{}, fault.New(fault.TriggerNotFound, "%s has no trigger %q%s", i.Name, name, suggest.Hint(name, i.TriggerNames()))
	}
	outline, _ := findOutline(i.triggers, name)
	return found, outline, nil
}

// TriggerNames returns the names of the triggers, in the order of the file.
func (i *Integration) TriggerNames() []string { return outlineNames(i.triggers) }

// InputSchema returns the JSON Schema of the settings of the trigger, like that of the
// input of an operation.
func (t *Trigger) InputSchema() string { return inputSchema(t.Input) }
