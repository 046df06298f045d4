package strictyaml_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/test/lane"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	const in = `{"name": "Big order", "description": "One.\nTwo: three # four\n", "empty": {}, "none": [], "gone": null,
"steps": [{"id": "get", "needs": [], "uses": "http.request", "with": {"url": "https://x.example/${{ trigger.payload.id }}", "count": 1e3, "big": 12345678901234567890}},
  {"id": "loop", "foreach": "${{ steps.get.output }}", "steps": [{"id": "in", "with": {"code": "  if (x) {\n\treturn 1\n  }", "list": [[1, [2]], [], [{"a": 1}]]}}]}],
"layout": {"get": [0, -80.5]}, "true": true, "1": "one", "": "nothing"}`
	const want = `name: Big order
description: |
  One.
  Two: three # four
empty: {}
none: []
gone: null
steps:
  - id: get
    needs: []
    uses: http.request
    with:
      url: https://x.example/${{ trigger.payload.id }}
      count: 1e3
      big: 12345678901234567890
  - id: loop
    foreach: ${{ steps.get.output }}
    steps:
      - id: in
        with:
          code: |2-
              if (x) {
            	return 1
              }
          list:
            - - 1
              - - 2
            - []
            - - a: 1
layout:
  get:
    - 0
    - -80.5
"true": true
"1": one
"": nothing
`
	got, err := strictyaml.Encode([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkRoundTrip(t, []byte(in))
}

func TestEncodeText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain": "plain", "two words": "two words", "größe ✓": "größe ✓", "${{ a.b }}": "${{ a.b }}", "/x": "/x", "a-b": "a-b", "5m": "5m", "1h": "1h",
		"it's": "it's", "a:b": "a:b", "a#b": "a#b", "http://x/y?z=1": "http://x/y?z=1", "a, b": "a, b", "x {y}": "x {y}",

		"": `""`, " a": `" a"`, "a ": `"a "`, "a: b": `"a: b"`, "a:": `"a:"`, "a #b": `"a #b"`, "- a": `"- a"`, "-": `"-"`, "#a": `"#a"`, "*a": `"*a"`,
		"&a": `"&a"`, "!a": `"!a"`, "|": `"|"`, ">": `">"`, "%a": `"%a"`, "@a": `"@a"`, "`a": "\"`a\"", "[a": `"[a"`, "{a": `"{a"`, "? a": `"? a"`, ":a": `":a"`,
		"'a": `"'a"`, `"a"`: `'"a"'`, `a: "b" 'c'`: `'a: "b" ''c'''`, `\d: x`: `'\d: x'`, "a\tb": `"a\tb"`, "\n": `"\n"`, " \n ": `" \n "`, "---": `"---"`, "...": `"..."`,

		"yes": `"yes"`, "No": `"No"`, "ON": `"ON"`, "off": `"off"`, "y": `"y"`, "N": `"N"`, "true": `"true"`, "False": `"False"`, "null": `"null"`, "NULL": `"NULL"`,
		"~": `"~"`, "<<": `"<<"`, "=": `"="`, "1": `"1"`, "-1": `"-1"`, "+1": `"+1"`, "1.5": `"1.5"`, ".5": `".5"`, "1e3": `"1e3"`, "1E+3": `"1E+3"`,
		"0777": `"0777"`, "0o17": `"0o17"`, "0x1F": `"0x1F"`, "0b11": `"0b11"`, "1_000": `"1_000"`, "12:30": `"12:30"`, "190:20:30.15": `"190:20:30.15"`,
		"2001-12-14": `"2001-12-14"`, "2001-12-14T21:59:43Z": `"2001-12-14T21:59:43Z"`, ".inf": `".inf"`, ".NaN": `".NaN"`, "1,5": `"1,5"`,

		"\u0007": `"\x07"`, "\u0085": `"\x85"`, "\u00a0": `"\xA0"`, "\u2028": `"\u2028"`, "\ufeff": `"\uFEFF"`, "\U000e0001": `"\U000E0001"`, "a\rb": `"a\x0Db"`,
		"a\nb": "|-\n  a\n  b", "a\nb\n": "|\n  a\n  b", "a\n\n": "|+\n  a\n", "\na": "|2-\n\n  a", " a\nb": "|2-\n   a\n  b", "a\n \nb": "|-\n  a\n   \n  b",
		"a\r\nb": `"a\x0D\nb"`, "a\nb\u2028": `"a\nb\u2028"`,
		strings.Repeat("long: ", 20): "|-\n  " + strings.Repeat("long: ", 20), strings.Repeat("long ", 20) + "!": strings.Repeat("long ", 20) + "!",
	} {
		document, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := strictyaml.Encode(document)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if string(got) != want+"\n" {
			t.Errorf("%q is written as\n%s, want\n%s", text, got, want)
		}
		checkRoundTrip(t, document)
		checkRoundTrip(t, []byte(`{"a":[`+string(document)+`],`+string(document)+`:`+string(document)+`}`))
	}
}

func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	for _, in := range []string{``, `{`, `{"a":1,"a":2}`, `["\u0000"]`, `[1] 2`, strings.Repeat("[", 65) + strings.Repeat("]", 65)} {
		if got, err := strictyaml.Encode([]byte(in)); err == nil {
			t.Errorf("%.80s is written as %s", in, got)
		}
	}
}

// Encoded documents decode to the same value, here and with another parser.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		document, err := json.Marshal(anyValue(4).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, document)
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	// Strings that are hard to encode: indicators, words and blanks in any order.
	pieces := []string{
		"a", "é", "😀", " ", "  ", "\n", "\n\n", "\t", "\r", ":", ": ", " #", "#", "-", "- ", "'", `"`, `\`, "{", "}", "[", "]", ",", "&", "*", "!", "|", ">", "%", "@", "`",
		"yes", "null", "~", "1", "0x1", ".5", "1e3", "---", "...", "${{ x }}", "?", "<<", "=", "\u0085", "\u2028", "\ufeff", "\u007f", "\u0001", "\u00a0",
	}
	text := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces"), "")
		}),
		rapid.Custom(func(t *rapid.T) string {
			return strings.ToValidUTF8(strings.ReplaceAll(rapid.StringN(0, 40, 200).Draw(t, "text"), "\x00", ""), "")
		}),
	)
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), text.AsAny(), text.AsAny(), rapid.Int().AsAny(),
		rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).AsAny(),
	}
	if depth > 0 {
		inner := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) })
		kinds = append(kinds, rapid.SliceOfN(inner, 0, 5).AsAny(), rapid.MapOfN(text, inner, 0, 20).AsAny())
	}
	return rapid.OneOf(kinds...)
}
