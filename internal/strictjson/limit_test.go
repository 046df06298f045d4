package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
)

func nest(open, inner, closing string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
}

func object(keys int) string {
	var b strings.Builder
	for i := range keys {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func array(elements int) string {
	return "[" + strings.TrimPrefix(strings.Repeat(",0", elements), ",") + "]"
}

func TestLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, at, beyond, pointer, message string
	}{
		{"depth of arrays", nest("[", "", "]", 64), nest("[", "", "]", 65),
			strings.Repeat("/0", 64), "nesting is deeper than 64 levels"},
		{"depth of objects", nest(`{"a":`, "1", "}", 64), nest(`{"a":`, "1", "}", 65),
			strings.Repeat("/a", 64), "nesting is deeper than 64 levels"},
		{"keys", object(10_000), object(10_001), "", "object has more than 10000 keys"},
		{"elements", array(100_000), array(100_001), "", "array has more than 100000 elements"},
		{"key length", `{"` + strings.Repeat("k", 1024) + `":0}`, `{"` + strings.Repeat("k", 1025) + `":0}`,
			"", "a key is longer than 1024 bytes"},
		{"decoded key length", `{"` + strings.Repeat(`\u006b`, 1024) + `":0}`, `{"` + strings.Repeat(`\u006b`, 1025) + `":0}`,
			"", "a key is longer than 1024 bytes"},
		{"number length", "[0." + strings.Repeat("1", 98) + "]", "[0." + strings.Repeat("1", 99) + "]",
			"/0", "number is too long (more than 100 characters)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if err := strictjson.Check([]byte(test.at)); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			var raw json.RawMessage
			if err := strictjson.Decode([]byte(test.at), &raw); err != nil || string(raw) != test.at {
				t.Errorf("raw at the limit: %v", err)
			}
			errs := problems(t, strictjson.Check([]byte(test.beyond)))
			if len(errs) != 1 {
				t.Fatalf("got %d errors: %v", len(errs), errs)
			}
			got := *errs[0]
			got.Line, got.Column = 0, 0
			want := strictjson.Error{Kind: strictjson.Shape, Pointer: test.pointer, Message: test.message}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportsAtMostTwentyErrors(t *testing.T) {
	t.Parallel()
	for _, n := range []int{19, 20, 21, 5000} {
		in := `{"steps":[` + strings.TrimPrefix(strings.Repeat(",1", n), ",") + `]}`
		if got := len(problems(t, strictjson.Decode([]byte(in), new(document)))); got != min(n, 20) {
			t.Errorf("%d errors for %d mistakes", got, n)
		}
		in = `{"shape":{"points":[` + strings.TrimPrefix(strings.Repeat(`,""`, n), ",") + `]},"state":1}`
		if got := len(problems(t, strictjson.Decode([]byte(in), new(document)))); got != min(n+1, 20) {
			t.Errorf("%d errors for %d mistakes in a nested decoder", got, n)
		}
	}
}

func TestManyKeys(t *testing.T) {
	t.Parallel()
	for _, n := range []int{15, 16, 17, 31, 32, 33, 64, 1000} {
		for _, again := range []int{0, n / 2, n - 1} {
			in := strings.TrimSuffix(object(n), "}") + fmt.Sprintf(`,"k%d":{"k0":0}}`, again)
			errs := problems(t, strictjson.Check([]byte(in)))
			if want := fmt.Sprintf(`duplicate key "k%d"`, again); len(errs) != 1 || errs[0].Message != want {
				t.Errorf("%d keys: got %v, want %s", n, errs, want)
			}
		}
	}
	// Equal keys of nested objects.
	in := `{"a":` + object(40) + `,"b":[` + object(40) + `,` + object(3) + `],"k1":` + object(20) + `}`
	if err := strictjson.Check([]byte(in)); err != nil {
		t.Errorf("equal keys of different objects: %v", err)
	}
}

// The inputs are chosen to take quadratic time in a naive implementation, which
// would exceed the timeout of the test.
func TestHostileInputTakesLinearTime(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"deep arrays":       strings.Repeat("[", 1_000_000),
		"deep objects":      strings.Repeat(`{"a":`, 1_000_000),
		"deep and complete": nest("[", "", "]", 10_000),
		"long number":       strings.Repeat("9", 200_000),
		"long exponent":     "1e" + strings.Repeat("9", 200_000),
		"long key":          `{"` + strings.Repeat(`\u0041`, 50_000) + `":1}`,
		"long unknown word": strings.Repeat("a", 200_000),
		"open string":       `"` + strings.Repeat("a", 200_000),
		"many objects":      "[" + strings.Repeat(object(17)+",", 1000),
		"late bad UTF-8":    `["` + strings.Repeat("ä", 100_000) + "\xff" + `"]`,
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, dst := range []any{new(any), new(document), new(json.RawMessage)} {
				errs := problems(t, strictjson.Decode([]byte(in), dst))
				if len(errs) == 0 {
					t.Errorf("accepted into %T", dst)
				}
				if text := errs.Error(); len(text) > 2000 {
					t.Errorf("the message has %d bytes", len(text))
				}
			}
		})
	}
}

// TestTinyNumbers has exponents that are too large for exact arithmetic.
func TestTinyNumbers(t *testing.T) {
	t.Parallel()
	got, err := strictjson.DecodeAny([]byte(`[1e-999999999, 0e999999999, 0.0e-5, -1e-400]`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{0, 0, 0, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
