package poll

import (
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

type state struct {
	// Source is a hash of the request and how it is read. When that changes, the
	// poll starts over.
	Source []byte
	Cursor any
	// Seen holds the keys of items, those of the latest response last.
	Seen []byte

	// starting is set until the first poll has seen everything that is not new.
	starting bool
}

type storedState struct {
	Source []byte          `json:"source"`
	Cursor json.RawMessage `json:"cursor,omitempty"`
	Seen   []byte          `json:"seen,omitempty"`
	// Starting is set while the first poll goes on.
	Starting bool `json:"starting,omitempty"`
}

// parseState returns the progress of a poll that reads a source.
func parseState(raw, source []byte) (state, error) {
	s := state{Source: source, starting: true}
	if raw == nil {
		return s, nil
	}
	var stored storedState
	if err := json.Unmarshal(raw, &stored); err != nil {
		return s, fmt.Errorf("decode the state: %w", err)
	}
	if string(stored.Source) != string(s.Source) {
		return s, nil
	}
	s.Seen, s.starting = stored.Seen, stored.Starting
	if stored.Cursor == nil {
		return s, nil
	}
	var err error
	s.Cursor, err = expr.FromJSON(stored.Cursor)
	return s, err
}

func (s state) encode() []byte {
	stored := storedState{Source: s.Source, Seen: s.Seen, Starting: s.starting}
	if s.Cursor != nil {
		stored.Cursor, _ = strictjson.Encode(s.Cursor) // the result of an expression always encodes
	}
	out, _ := json.Marshal(stored) // bytes and JSON
	return out
}

func (s state) equal(as state) bool {
	return s.starting == as.starting && string(s.Seen) == string(as.Seen) && sameCursor(s.Cursor, as.Cursor)
}

// sameCursor compares cursors as they are stored.
func sameCursor(a, b any) bool {
	one, oneErr := strictjson.Encode(a)
	other, otherErr := strictjson.Encode(b)
	return oneErr == nil && otherErr == nil && string(one) == string(other)
}

func (s state) keys() map[Key]bool {
	out := make(map[Key]bool, len(s.Seen)/len(Key{}))
	for rest := s.Seen; len(rest) >= len(Key{}); rest = rest[len(Key{}):] {
		out[Key(rest[:len(Key{})])] = true
	}
	return out
}

// unseen returns the items that were not seen before: all of them, without keys.
func (s state) unseen(items []Item) []Item {
	seen := s.keys()
	var out []Item
	for _, i := range items {
		if i.Key == (Key{}) || !seen[i.Key] {
			out = append(out, i)
		}
	}
	return out
}

// withSeen returns the state after items that were found were seen. It forgets the
// oldest keys first, but none that the response still has.
func (s state) withSeen(found Found, seen []Item) state {
	next := state{Source: s.Source, Cursor: s.Cursor, Seen: s.Seen, starting: s.starting && found.More}
	if found.Cursor != nil {
		next.Cursor = found.Cursor
	}
	if !found.Keyed || len(seen) == 0 {
		return next
	}
	known, current := s.keys(), map[Key]bool{}
	for _, i := range found.Items {
		current[i.Key] = known[i.Key]
	}
	for _, i := range seen {
		current[i.Key] = true
	}
	next.Seen = nil
	for rest := s.Seen; len(rest) >= len(Key{}); rest = rest[len(Key{}):] {
		if k := Key(rest[:len(Key{})]); !current[k] {
			next.Seen = append(next.Seen, k[:]...)
		}
	}
	for _, i := range found.Items {
		if current[i.Key] {
			next.Seen = append(next.Seen, i.Key[:]...)
		}
	}
	if over := len(next.Seen) - maxItems*len(Key{}); over > 0 {
		next.Seen = next.Seen[over:]
	}
	return next
}
