package action_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
)

func TestProblemsOfInputs(t *testing.T) {
	t.Parallel()
	catalog, err := action.NewCatalog(action.Entry{Spec: action.Spec{Name: "x", ExactlyOne: []string{"a", "b"}, Input: `{
		"type": "object", "additionalProperties": false,
		"properties": {
			"a": {"type": "string", "minLength": 1, "maxLength": 3},
			"b": {"type": "string", "minLength": 2},
			"n": {"type": "number", "minimum": 0.5, "maximum": 1000}
		}
	}`}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		input map[string]any
		want  []action.Problem
	}{
		"valid":        {map[string]any{"a": "abc", "n": 0.5}, nil},
		"empty":        {map[string]any{"a": ""}, []action.Problem{{Pointer: "/a", Message: "must not be empty"}}},
		"too short":    {map[string]any{"b": "x"}, []action.Problem{{Pointer: "/b", Message: "must have at least 2 characters, not 1"}}},
		"too long":     {map[string]any{"a": "abcd"}, []action.Problem{{Pointer: "/a", Message: "must have at most 3 characters, not 4"}}},
		"too small":    {map[string]any{"a": "x", "n": 0}, []action.Problem{{Pointer: "/n", Message: "must be at least 0.5"}}},
		"too large":    {map[string]any{"a": "x", "n": 1001}, []action.Problem{{Pointer: "/n", Message: "must be at most 1000"}}},
		"neither":      {map[string]any{"n": 1}, []action.Problem{{Message: "needs exactly one of a, b"}}},
		"both at once": {map[string]any{"a": "x", "b": "xy"}, []action.Problem{{Message: "needs exactly one of a, b"}}},
	} {
		if diff := cmp.Diff(tc.want, catalog.Check("x", tc.input, func(string) bool { return false })); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
