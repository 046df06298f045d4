package poll

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
)

// state is the progress of a poll.
type state struct {
	// Source is a hash of the request and how it is read. When that changes, the
	// poll starts over.
	Source []byte
	Cursor any
	// Seen holds the keys of items, those of the latest response last.
	Seen []byte

	first bool // there was no poll before
}

// storedState is the stored form of state.
type storedState struct {
	Source []byte          `json:"source"`
	Cursor json.RawMessage `json:"cursor,omitempty"`
	Seen   []byte          `json:"seen,omitempty"`
}

func parseState(raw []byte, t workflow.Trigger) (state, error) {
	s := state{Source: sourceHash(t), first: true}
	if raw == nil {
		return s, nil
	}
	var stored storedState
	if err := json.Unmarshal(raw, &stored); err != nil {
		return s, fmt.Errorf("decode the state of the poll %s: %w", t.ID, err)
	}
	if string(stored.Source) != string(s.Source) {
		return s, nil
	}
	s.Seen, s.first = stored.Seen, false
	if stored.Cursor == nil {
		return s, nil
	}
	var err error
	s.Cursor, err = expr.FromJSON(stored.Cursor)
	return s, err
}

// sourceHash identifies the request of a poll and how its response is read. The
// interval does not matter.
func sourceHash(t workflow.Trigger) []byte {
	text := fmt.Sprintf("%q %q %q %q", t.Request, t.Items, t.Key, t.Cursor)
	sum := sha256.Sum256([]byte(text))
	return sum[:8]
}

func (s state) encode() []byte {
	stored := storedState{Source: s.Source, Seen: s.Seen}
	if s.Cursor != nil {
		stored.Cursor, _ = strictjson.Encode(s.Cursor) // the result of an expression always encodes
	}
	out, _ := json.Marshal(stored) // bytes and JSON
	return out
}

func (s state) equal(as state) bool {
	return !s.first && string(s.Seen) == string(as.Seen) && reflect.DeepEqual(s.Cursor, as.Cursor)
}

// keys returns the keys of the seen items.
func (s state) keys() map[key]bool {
	out := make(map[key]bool, len(s.Seen)/len(key{}))
	for rest := s.Seen; len(rest) >= len(key{}); rest = rest[len(key{}):] {
		out[key(rest[:len(key{})])] = true
	}
	return out
}

// unseen returns the items that were not seen before: all of them, without keys.
func (s state) unseen(items []item) []item {
	seen := s.keys()
	var out []item
	for _, i := range items {
		if i.key == (key{}) || !seen[i.key] {
			out = append(out, i)
		}
	}
	return out
}

// withSeen returns the state after items of a response were seen. It forgets the
// oldest keys first, but none that the response still has.
func (s state) withSeen(found result, seen []item) state {
	next := state{Source: s.Source, Cursor: s.Cursor, Seen: s.Seen}
	if found.cursor != nil {
		next.Cursor = found.cursor
	}
	if !found.keyed || len(seen) == 0 {
		return next
	}
	known, current := s.keys(), map[key]bool{}
	for _, i := range found.items {
		current[i.key] = known[i.key]
	}
	for _, i := range seen {
		current[i.key] = true
	}
	next.Seen = nil
	for rest := s.Seen; len(rest) >= len(key{}); rest = rest[len(key{}):] {
		if k := key(rest[:len(key{})]); !current[k] {
			next.Seen = append(next.Seen, k[:]...)
		}
	}
	for _, i := range found.items {
		if current[i.key] {
			next.Seen = append(next.Seen, i.key[:]...)
		}
	}
	if over := len(next.Seen) - maxItems*len(key{}); over > 0 {
		next.Seen = next.Seen[over:]
	}
	return next
}
