package expr_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/expr"
)

func sampleEnv() *expr.Env {
	return &expr.Env{
		Trigger: expr.Trigger{
			Type: "webhook", ID: "hook",
			Payload: map[string]any{
				"id": 42, "price": 9.5, "name": "Ada", "ok": true, "none": nil,
				"tags":  []any{"a", "b", "c"},
				"lines": []any{map[string]any{"sku": "x", "qty": 2}, map[string]any{"sku": "y", "qty": 3}},
				"deep":  map[string]any{"a": map[string]any{"b": 1}},
				"env":   "${{ secrets.token }}",
			},
			Headers: map[string]any{"x-github-delivery": "d-1"},
			Query:   map[string]string{"page": "2"},
		},
		Steps: map[string]expr.Step{
			"get":  {Output: map[string]any{"body": map[string]any{"total": 120}}, Status: "succeeded"},
			"skip": {Status: "skipped"},
			"bad":  {Status: "failed", Error: map[string]any{"code": "timeout"}},
		},
		Run:      expr.Run{ID: "run_1", StartedAt: time.Date(2026, 11, 15, 9, 30, 0, 123456789, time.UTC)},
		Workflow: expr.Workflow{ID: "wf_1", Name: "Big order", Version: 7},
		Secrets:  map[string]string{"token": "s3cret"},
		Vars:     map[string]any{"region": "eu", "limits": map[string]any{"max": 10}},
		Links:    map[string]expr.Link{"ask": {Page: "https://x/p", Callback: "https://x/c"}},
		Loop:     &expr.Loop{Item: map[string]any{"sku": "x"}, Index: 3},
		Now:      time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC),
		Seed:     []byte("sample"),
	}
}

// eval returns the result as JSON, which distinguishes 1 from "1" and is short.
func eval(t testing.TB, source string) string {
	t.Helper()
	p, err := expr.Compile(source)
	if err != nil {
		t.Fatalf("compile %s: %v", source, err)
	}
	v, err := p.Eval(sampleEnv(), expr.Budget{})
	if err != nil {
		t.Fatalf("eval %s: %v", source, err)
	}
	return asJSON(t, v)
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// mustFail compiles and evaluates source, and returns the expected error.
func mustFail(t testing.TB, source string) *expr.Error {
	t.Helper()
	p, err := expr.Compile(source)
	if err == nil {
		var v any
		v, err = p.Eval(sampleEnv(), expr.Budget{})
		if err == nil {
			t.Fatalf("%.100s gave %.100v, want an error", source, v)
		}
	}
	var e *expr.Error
	if !errors.As(err, &e) {
		t.Fatalf("%.100s: %T is not an *expr.Error", source, err)
	}
	return e
}

// canonicalJSON re-encodes JSON with encoding/json.
func canonicalJSON(t testing.TB, text string) string {
	t.Helper()
	v, err := expr.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(t, v)
}
