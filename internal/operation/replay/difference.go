package replay

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// differences returns how a value differs from the expected one, a line for each member,
// with its JSON pointer. It returns nil if they are equal.
func differences(pointer string, got, want any) []string {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return memberDifferences(pointer, got, want)
		}
	case []any:
		if got, ok := got.([]any); ok {
			return memberDifferences(pointer, indexed(got), indexed(want))
		}
	}
	return []string{fmt.Sprintf("  %sis %s, want %s", label(pointer), shown(got), shown(want))}
}

// memberDifferences compares objects, or lists by their indexes.
func memberDifferences[K interface{ int | string }](pointer string, got, want map[K]any) []string {
	keys := maps.Clone(got)
	maps.Copy(keys, want)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := pointer + jsonpointer.Of(fmt.Sprint(key))
		given, isGiven := got[key]
		expected, isExpected := want[key]
		switch {
		case !isGiven:
			out = append(out, fmt.Sprintf("  %sis missing, want %s", label(at), shown(expected)))
		case !isExpected:
			out = append(out, fmt.Sprintf("  %sis %s, but nothing is expected", label(at), shown(given)))
		default:
			out = append(out, differences(at, given, expected)...)
		}
	}
	return out
}

func indexed(list []any) map[int]any { return maps.Collect(slices.All(list)) }

// shown returns a value that was decoded from JSON as JSON.
func shown(value any) string {
	text, err := strictjson.Encode(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

func label(pointer string) string {
	if pointer == "" {
		return ""
	}
	return pointer + ": "
}
