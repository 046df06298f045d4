package jsonpath_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/jsonpath"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]jsonpath.Path{
		"data":              {"data"},
		"data[].b64_json":   {"data", "[]", "b64_json"},
		"[].image":          {"[]", "image"},
		"rows[][]":          {"rows", "[]", "[]"},
		"message.raw.bytes": {"message", "raw", "bytes"},
	} {
		if got, err := jsonpath.Parse(text); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "a.[]", "a[0]", "a[", "a]b[", "a[]b", "a[[]]"} {
		if got, err := jsonpath.Parse(text); err == nil {
			t.Errorf("%q is accepted, as %q", text, got)
		}
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		"list[].a": map[string]any{"list": []any{map[string]any{"a": "x"}, map[string]any{"b": 2}, 3, map[string]any{"a": "x"}}, "one": map[string]any{"a": 5}},
		"one.a":    map[string]any{"list": []any{map[string]any{"a": 1}, map[string]any{"b": 2}, 3, map[string]any{"a": nil}}, "one": map[string]any{"a": "x"}},
		"one[].a":  map[string]any{"list": []any{map[string]any{"a": 1}, map[string]any{"b": 2}, 3, map[string]any{"a": nil}}, "one": map[string]any{"a": 5}},
		"list.a":   map[string]any{"list": []any{map[string]any{"a": 1}, map[string]any{"b": 2}, 3, map[string]any{"a": nil}}, "one": map[string]any{"a": 5}},
		"none.a":   map[string]any{"list": []any{map[string]any{"a": 1}, map[string]any{"b": 2}, 3, map[string]any{"a": nil}}, "one": map[string]any{"a": 5}},
	} {
		value := map[string]any{"list": []any{map[string]any{"a": 1}, map[string]any{"b": 2}, 3, map[string]any{"a": nil}}, "one": map[string]any{"a": 5}}
		path, err := jsonpath.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, path.Replace(value, func(any) any { return "x" })); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
