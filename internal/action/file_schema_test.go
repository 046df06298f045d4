package action_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

func TestFilesInInputs(t *testing.T) {
	t.Parallel()
	catalog, err := action.NewCatalog(action.Entry{Spec: action.Spec{Name: "x", Input: `{
		"type": "object", "additionalProperties": false,
		"properties": {
			"any": {"description": "Anything."},
			"file": {"format": "file"},
			"text": {"type": "string"},
			"object": {"type": ["object", "null"]},
			"list": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {"file": {"format": "file"}, "value": {"type": "string"}}}},
			"free": {"type": "object"}
		}
	}`}})
	if err != nil {
		t.Fatal(err)
	}
	f := expr.NewFile(expr.File{ID: "file_1", Name: "a", Type: "b", SHA256: "c"})
	looksLikeOne := map[string]any{"$file": "file_1", "name": "a", "type": "b", "size": 0, "sha256": "c"}
	for name, tc := range map[string]struct {
		input map[string]any
		want  []action.Problem
	}{
		"files where they may be": {map[string]any{"any": f, "file": f, "free": map[string]any{"a": []any{f}}, "list": []any{map[string]any{"file": f}}}, nil},
		"none":                    {map[string]any{"any": 1}, nil},
		"text":                    {map[string]any{"file": "file_1"}, []action.Problem{{Pointer: "/file", Message: "expected a file, got text"}}},
		"a number":                {map[string]any{"file": 1}, []action.Problem{{Pointer: "/file", Message: "expected a file, got a number"}}},
		"an object":               {map[string]any{"file": looksLikeOne}, []action.Problem{{Pointer: "/file", Message: "expected a file, got an object"}}},
		"null in a list":          {map[string]any{"list": []any{map[string]any{"file": nil}}}, []action.Problem{{Pointer: "/list/0/file", Message: "expected a file, got null"}}},
		"a file as text":          {map[string]any{"text": f}, []action.Problem{{Pointer: "/text", Message: "must be string, not a file"}}},
		"a file as an object":     {map[string]any{"object": f}, []action.Problem{{Pointer: "/object", Message: "must be object or null, not a file"}}},
		"a file as an item":       {map[string]any{"list": []any{f}}, []action.Problem{{Pointer: "/list/0", Message: "must be object, not a file"}}},
		"a file beside an error":  {map[string]any{"any": f, "text": 1}, []action.Problem{{Pointer: "/text", Message: "must be string, not number"}}},
	} {
		if diff := cmp.Diff(tc.want, catalog.Check("x", tc.input, func(string) bool { return false })); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
