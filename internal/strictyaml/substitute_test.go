package strictyaml_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/test/lane"
)

func TestSubstitute(t *testing.T) {
	t.Parallel()
	const in = `# The first comment.
name: A    # stays
steps:
  - id: A # a step
    with: {text: A, "A": [A, 'A', b]}
    body: |
      A
      # not a comment

    # after the text
    list:
      - A
      - "A"
  # the end
`
	const want = `# The first comment.
name: '"}: # x'    # stays
steps:
  - id: '"}: # x' # a step
    with: {text: "\"}: # x", "A": ["\"}: # x", "\"}: # x", b]}
    body: |
      several
        lines

    # after the text
    list:
      - 7
      - true
  # the end
`
	got, err := strictyaml.Substitute([]byte(in), func(pointer, text string) (any, bool, error) {
		switch {
		case strings.HasPrefix(text, "A\n"):
			return "several\n  lines\n", true, nil
		case pointer == "/steps/0/list/0":
			return json.Number("7"), true, nil
		case pointer == "/steps/0/list/1":
			return true, true, nil
		}
		return `"}: # x`, text == "A", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestSubstituteErrors(t *testing.T) {
	t.Parallel()
	wrong := errors.New("not this one")
	if _, err := strictyaml.Substitute([]byte("a: b"), func(string, string) (any, bool, error) { return nil, false, wrong }); !errors.Is(err, wrong) {
		t.Errorf("the error is %v", err)
	}
	if _, err := strictyaml.Substitute([]byte("a: [b"), func(string, string) (any, bool, error) { return nil, false, nil }); err == nil {
		t.Error("a document that cannot be read is accepted")
	}
}

// Whatever is inserted, it is one value and the rest of the document stays the same.
func TestSubstituteAnything(t *testing.T) {
	t.Parallel()
	const document = "a: X # one\nb:\n  - X\n  - {c: X, d: [X]}\n  - e: |\n      X\n\n    f: 1\ng: 'X'\n"
	lane.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringOf(rapid.SampledFrom([]rune("aX \n\t:#-'\"{}[],|>&*!%@`$\\=~?\u0085\u2028é01."))),
			rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }), // which no document has
		).Draw(t, "text")
		got, err := strictyaml.Substitute([]byte(document), func(_, was string) (any, bool, error) {
			return text, strings.TrimSpace(was) == "X", nil
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		read, err := strictyaml.Decode(got)
		if err != nil {
			t.Fatal(err)
		}
		var value struct {
			A string
			B []any
			G string
		}
		if err := json.Unmarshal(read.JSON, &value); err != nil {
			t.Fatal(err)
		}
		want := []any{text, map[string]any{"c": text, "d": []any{text}}, map[string]any{"e": text, "f": 1.0}}
		if diff := cmp.Diff(want, value.B); diff != "" || value.A != text || value.G != text {
			t.Errorf("%s\n%s", got, diff)
		}
		if !strings.Contains(string(got), "# one\n") {
			t.Errorf("the comment is gone:\n%s", got)
		}
	})
}
