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

// compare goes down into objects as long as both sides are one. Lists are
// compared as a whole: there is no telling which element became which.
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

// decodeExact reads JSON with its numbers as they are written.
func decodeExact(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}
