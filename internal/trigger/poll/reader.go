package poll

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Reader reads what polls of one family find.
type Reader interface {
	// Interval returns the time between two polls.
	Interval(c workflow.CompiledTrigger) time.Duration
	// IsCalled reports whether the service calls when there is something new, which makes the
	// next poll due.
	IsCalled(c workflow.CompiledTrigger) bool
	// Source identifies what a trigger reads, and how. If that changes, its poll starts over.
	Source(t workflow.Trigger) []byte
	// Read reads what there is now. The masker is for everything that is recorded. An error
	// of the poll itself is an action.Failure.
	Read(ctx context.Context, q Query) (Found, *mask.Masker, error)
}

// Query is one poll of a trigger.
type Query struct {
	Compiled workflow.CompiledTrigger
	Trigger  trigger.Trigger
	// Cursor is that of the last poll. Starting is set as long as what is found is not new.
	Cursor   any
	Starting bool
	Now      time.Time
}

// Env returns what expressions of the trigger can read.
func (q Query) Env() *expr.Env {
	return &expr.Env{
		Cursor: q.Cursor, Now: q.Now,
		Trigger:  expr.Trigger{Type: q.Compiled.Type, ID: q.Trigger.ID},
		Workflow: expr.Workflow{ID: q.Trigger.WorkflowID, Version: q.Trigger.Version},
	}
}

// Found is what a poll has found.
type Found struct {
	Items []Item
	// Keyed is set if the items have keys. Without keys, every item is new.
	Keyed bool
	// Cursor is where the next poll goes on; nil keeps the present one. If there is More, it
	// follows at once.
	Cursor any
	More   bool
	// PositionLost is set, in place of everything else, if the cursor is no longer known.
	PositionLost bool
}

// Item starts a run, unless an item with its key was seen before.
type Item struct {
	Value any
	Key   Key
}

// Key identifies an item.
type Key [8]byte

// KeyOf returns the key that stands for a value as JSON.
func KeyOf(value []byte) Key {
	sum := sha256.Sum256(value)
	return Key(sum[:len(Key{})])
}

// Hash returns a short hash of a text, for [Reader.Source].
func Hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:8]
}

// payload returns the item as the payload of a run, which is an object.
func (i Item) payload() ([]byte, error) {
	if _, ok := i.Value.(map[string]any); ok {
		return strictjson.Encode(i.Value)
	}
	return strictjson.Encode(map[string]any{"value": i.Value})
}
