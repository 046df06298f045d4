package workflow

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"

	"github.com/stepmill/stepmill/internal/fault"
)

// Pins are sample outputs of steps, by step id, for testing the steps that
// follow. They are not versioned, and only runs of drafts use them.
type Pins map[string]json.RawMessage

// PinsPatch changes pins; null removes one.
type PinsPatch struct {
	Clear  bool
	Values map[string]json.RawMessage
}

// Limits on pins, which are part of every response that contains a workflow.
const (
	maxPins     = 500
	maxPin      = 64 << 10
	maxPinsSize = 1 << 20
)

var pinKey = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// Apply returns new pins and does not modify was, which may be shared.
func (p PinsPatch) Apply(was Pins) (Pins, error) {
	now := Pins{}
	if !p.Clear {
		maps.Copy(now, was)
	}
	for id, value := range p.Values {
		if !pinKey.MatchString(id) {
			return nil, fault.Field("/pinned", "has a key that is not a valid step id")
		}
		if bytes.Equal(value, []byte("null")) {
			delete(now, id)
			continue
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return nil, fault.Field("/pinned/"+id, "is not valid JSON")
		}
		switch {
		case compact.Bytes()[0] != '{':
			return nil, fault.Field("/pinned/"+id, "must be an object, like the output of a step")
		case compact.Len() > maxPin:
			return nil, fault.Field("/pinned/"+id, "has %d bytes; at most %d are allowed", compact.Len(), maxPin)
		}
		now[id] = compact.Bytes()
	}
	return now, now.check()
}

func (p Pins) check() error {
	size := 0
	for _, value := range p {
		size += len(value)
	}
	switch {
	case len(p) > maxPins:
		return fault.Field("/pinned", "must have at most %d entries", maxPins)
	case size > maxPinsSize:
		return fault.Field("/pinned", "the pins have %d bytes together; at most %d are allowed", size, maxPinsSize)
	}
	return nil
}

func samePins(a, b Pins) bool {
	return maps.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}
