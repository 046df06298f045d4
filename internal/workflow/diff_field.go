package workflow

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// fieldComparer collects the members that differ.
type fieldComparer struct {
	out []FieldDiff
	err error
}

// compare descends while both sides are objects. It compares lists as a whole,
// because it cannot know which elements correspond.
func (c *fieldComparer) compare(at string, from, to any) {
	was, isObject := from.(map[string]any)
	now, areObjects := to.(map[string]any)
	if !isObject || !areObjects {
		if !reflect.DeepEqual(from, to) {
			c.add(at, c.text(from), c.text(to))
		}
		return
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(now))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		below := at + jsonpointer.Of(name)
		before, had := was[name]
		after, has := now[name]
		switch {
		case !had:
			c.add(below, nil, c.text(after))
		case !has:
			c.add(below, c.text(before), nil)
		default:
			c.compare(below, before, after)
		}
	}
}

func (c *fieldComparer) add(at string, from, to json.RawMessage) {
	c.out = append(c.out, FieldDiff{Pointer: at, From: from, To: to})
}

func (c *fieldComparer) text(value any) json.RawMessage {
	text, err := strictjson.Encode(value)
	if err != nil {
		c.err = err
	}
	return text
}

// decodeExact decodes JSON without losing the precision of numbers.
func decodeExact(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}
