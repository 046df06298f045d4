package workflow

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
)

// Pins are sample outputs of steps, by step id, for testing the steps that
// follow. They are not versioned, and only runs of drafts use them. Those of triggers, by
// @ and their id, are kept for people who build: whoever starts a run sends what it needs.
type Pins map[string]Pin

// IsTriggerPin reports whether a pin with the key is that of a trigger.
func IsTriggerPin(key string) bool { return strings.HasPrefix(key, "@") }

// Pin is a sample output. In JSON it is the output.
type Pin struct {
	Output json.RawMessage
	// Files are the JSON pointers of the references to files inside the output.
	Files []string
}

// MarshalJSON returns the output.
func (p Pin) MarshalJSON() ([]byte, error) { return p.Output, nil }

// UnmarshalJSON reads an output without references.
func (p *Pin) UnmarshalJSON(data []byte) error {
	*p = Pin{Output: bytes.Clone(data)}
	return nil
}

// Value returns the output as expressions see it.
func (p Pin) Value() (any, error) { return expr.FromJSONWithFiles(p.Output, p.Files) }

func (p Pins) hasFiles() bool {
	for _, pin := range p {
		if len(pin.Files) > 0 {
			return true
		}
	}
	return false
}

// FilePointers returns the JSON pointers of the references to files inside all pins.
func (p Pins) FilePointers() []string {
	var pointers []string
	for id, pin := range p {
		for _, pointer := range pin.Files {
			pointers = append(pointers, "/"+id+pointer)
		}
	}
	slices.Sort(pointers)
	return pointers
}

// SetFilePointers is the inverse of FilePointers.
func (p Pins) SetFilePointers(pointers []string) {
	for id, pin := range p {
		for _, pointer := range pointers {
			if rest, inside := cutPointer(pointer, "/"+id); inside {
				pin.Files = append(pin.Files, rest)
			}
		}
		p[id] = pin
	}
}

// FileIDs returns the ids of the files that the pins refer to.
func (p Pins) FileIDs() []string {
	var ids []string
	for _, pin := range p {
		if len(pin.Files) == 0 {
			continue
		}
		value, err := pin.Value()
		if err != nil {
			continue // it does not name files
		}
		for _, f := range expr.Files(value) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

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

var pinKey = regexp.MustCompile(`^@?[a-z][a-z0-9_]{0,62}$`)

// Apply returns new pins and does not modify was, which may be shared.
func (p PinsPatch) Apply(was Pins) (Pins, error) {
	now := Pins{}
	if !p.Clear {
		maps.Copy(now, was)
	}
	for id, value := range p.Values {
		if !pinKey.MatchString(id) {
			return nil, fault.Field("/pinned", "has a key that is neither a step id nor @ followed by a trigger id")
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
		now[id] = Pin{Output: compact.Bytes()}
	}
	return now, now.check()
}

func (p Pins) check() error {
	size := 0
	for _, pin := range p {
		size += len(pin.Output)
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
	return maps.EqualFunc(a, b, func(x, y Pin) bool { return bytes.Equal(x.Output, y.Output) && slices.Equal(x.Files, y.Files) })
}
