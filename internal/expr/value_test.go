package expr_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/expr"
)

func TestValue(t *testing.T) {
	t.Parallel()
	v, err := expr.CompileValue(map[string]any{
		"url":            "https://a.example/${{ trigger.payload.id }}",
		"${{ not.a.key}": "as it is",
		"list":           []any{"${{ item }}", "x", json.Number("7"), nil, true, 1.5},
		"fixed":          map[string]any{"a": []any{}, "b": map[string]any{}},
		"escaped":        "$${{ x }}",
		"at":             "${{ now() }}",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Eval(sampleEnv(), expr.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"url":            "https://a.example/42",
		"${{ not.a.key}": "as it is",
		"list":           []any{map[string]any{"sku": "x"}, "x", 7, nil, true, 1.5},
		"fixed":          map[string]any{"a": []any{}, "b": map[string]any{}},
		"escaped":        "${{ x }}",
		"at":             "2026-11-15T09:30:00.000Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValueTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want any }{
		{nil, nil}, {"x", "x"}, {1, 1}, {2.5, 2.5}, {false, false},
		{json.Number("12"), 12}, {json.Number("18446744073709551615"), json.Number("18446744073709551615")},
		{"${{ trigger.payload.id }}", 42},
		{[]any(nil), []any{}}, {map[string]any(nil), map[string]any{}},
		{[]any{[]any{"${{ 1 }}"}}, []any{[]any{1}}},
		{[]string{"${{ 1 }}"}, []any{"${{ 1 }}"}},
	} {
		v, err := expr.CompileValue(tc.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Eval(sampleEnv(), expr.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%v: %s", tc.in, diff)
		}
	}
}

// Changing a result must not affect later results.
func TestValueResultsAreIndependent(t *testing.T) {
	t.Parallel()
	v, err := expr.CompileValue(map[string]any{"a": "${{ trigger.payload.id }}", "l": []any{"${{ 1 }}"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	one, _ := v.Eval(sampleEnv(), expr.Budget{})
	one.(map[string]any)["a"] = "changed"
	one.(map[string]any)["l"].([]any)[0] = "changed"
	two, _ := v.Eval(sampleEnv(), expr.Budget{})
	if got := asJSON(t, two); got != `{"a":42,"l":[1]}` {
		t.Error(got)
	}
}

func TestValueCollectsErrors(t *testing.T) {
	t.Parallel()
	_, err := expr.CompileValue(map[string]any{
		"a/b": "${{ banana }} ${{ apple }}",
		"c":   []any{"fine", map[string]any{"d~": "x ${{ 1 + }}"}},
		"e":   "${{ 1",
		"f":   struct{}{},
	}, nil)
	var errs expr.Errors
	if !errors.As(err, &errs) {
		t.Fatalf("%T: %v", err, err)
	}
	var got []string
	for _, e := range errs {
		got = append(got, fmt.Sprintf("%s %s %d", e.Pointer, e.Code, e.Offset))
	}
	want := []string{
		"/a~1b expression_invalid 4", "/a~1b expression_invalid 18",
		"/c/1/d~0 expression_invalid 9", "/e expression_invalid 0", "/f expression_invalid 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var first *expr.Error
	if !errors.As(err, &first) || first.Pointer != "/a~1b" {
		t.Errorf("first error is %v", first)
	}
	if n := strings.Count(err.Error(), "\n"); n != 4 {
		t.Errorf("%d line ends in %q", n, err)
	}
}

func TestValueRuntimeErrorHasPointer(t *testing.T) {
	t.Parallel()
	v, err := expr.CompileValue(map[string]any{"a": []any{"ok", "n: ${{ 1 / 0 }}"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Eval(nil, expr.Budget{})
	var e *expr.Error
	if !errors.As(err, &e) || e.Code != expr.CodeFailed || e.Pointer != "/a/1" || e.Column != 10 || e.Source != " 1 / 0 " {
		t.Errorf("%+v", e)
	}
}

func TestValueRefs(t *testing.T) {
	t.Parallel()
	v, err := expr.CompileValue(map[string]any{"a": "${{ steps.x.output }}", "b": []any{"${{ steps.x.status }}${{ secrets.k }}"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := expr.Refs{
		Steps:   []expr.Ref{{Name: "x", Line: 1, Column: 11, Offset: 10, Pointer: "/a"}, {Name: "x", Line: 1, Column: 11, Offset: 10, Pointer: "/b/0"}},
		Secrets: []expr.Ref{{Name: "k", Line: 1, Column: 34, Offset: 33, Pointer: "/b/0"}},
		Words:   []string{"steps.output", "steps.status", "secrets"},
	}
	if diff := cmp.Diff(want, v.Refs()); diff != "" {
		t.Error(diff)
	}
}

// The size of a result is exactly the size of its JSON.
func TestValueSize(t *testing.T) {
	t.Parallel()
	values := []any{
		map[string]any{},
		map[string]any{"a": 1},
		map[string]any{"a": "${{ trigger.payload }}", "bé\"": []any{}, "c": []any{nil, true, "x"}},
		[]any{"${{ trigger }}", `${{ [now(), 1.5, -3, 1e300, "\t\n\x01ü\\\"</a>"] }}`, "a ${{ trigger.payload.tags }}"},
	}
	for _, in := range values {
		v, err := expr.CompileValue(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := v.Eval(sampleEnv(), expr.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		size := len(asJSON(t, out))
		if _, err := v.Eval(sampleEnv(), expr.Budget{Result: size}); err != nil {
			t.Errorf("%d bytes do not fit: %v", size, err)
		}
		_, err = v.Eval(sampleEnv(), expr.Budget{Result: size - 1})
		var e *expr.Error
		if !errors.As(err, &e) || e.Code != expr.CodeCost {
			t.Errorf("%s fits into %d bytes: %v", asJSON(t, out), size-1, err)
		}
	}
}

// The limit applies to all strings of a value together.
func TestValueOutputExplosion(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	env := &expr.Env{Trigger: expr.Trigger{Payload: strings.Repeat("x", limit)}}
	one, err := expr.CompileValue("${{ trigger.payload }}", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Eval(env, expr.Budget{}); err != nil {
		t.Errorf("%d bytes: %v", limit, err)
	}
	for _, in := range []any{
		"x${{ trigger.payload }}",
		"${{ trigger.payload }}${{ trigger.payload }}",
		[]any{"${{ trigger.payload }}"},
		strings.Repeat("${{ trigger.payload }}", 10),
		map[string]any{"a": "${{ trigger.payload }}", "b": "${{ trigger.payload }}"},
	} {
		v, err := expr.CompileValue(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Eval(env, expr.Budget{})
		var e *expr.Error
		if !errors.As(err, &e) || e.Code != expr.CodeCost {
			t.Errorf("%.60v: %v", in, err)
		}
	}
}

func TestValueLimits(t *testing.T) {
	t.Parallel()
	many := make([]any, 2001)
	for i := range many {
		many[i] = "${{ 1 }}"
	}
	patterns := make([]any, 20)
	for i := range patterns {
		patterns[i] = `${{ "a" matches "a{400}" }}`
	}
	var deep any = "x"
	for range 200 {
		deep = []any{deep}
	}
	bad := make([]any, 500)
	for i := range bad {
		bad[i] = "${{ banana }}"
	}
	for name, in := range map[string]any{"many": many, "patterns": patterns, "deep": deep, "bad": bad} {
		_, err := expr.CompileValue(in, nil)
		var errs expr.Errors
		if !errors.As(err, &errs) || len(errs) > 100 {
			t.Errorf("%s: %d errors", name, len(errs))
		}
	}
	if _, err := expr.CompileValue(many[1:], nil); err != nil {
		t.Error(err)
	}
}
