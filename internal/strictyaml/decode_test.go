package strictyaml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"a mapping", "a: 1\nb: x\n", `{"a":1,"b":"x"}`},
		{"the order of keys is kept", "z: 1\na: 2\nm: 3\n", `{"z":1,"a":2,"m":3}`},
		{"nested mappings", "a:\n  b:\n    c: 1\n  d: 2\ne: 3\n", `{"a":{"b":{"c":1},"d":2},"e":3}`},
		{"a list under its key", "a:\n- 1\n- 2\nb: 3\n", `{"a":[1,2],"b":3}`},
		{"a list that is indented", "a:\n  - 1\n  -   2\nb: 3\n", `{"a":[1,2],"b":3}`},
		{"mappings beside dashes", "- a: 1\n  b: 2\n-   c: 3\n    d: 4\n", `[{"a":1,"b":2},{"c":3,"d":4}]`},
		{"lists beside dashes", "- - 1\n  - 2\n- - - 3\n", `[[1,2],[[3]]]`},
		{"values on the next line", "a:\n  x\nb:\n  \"y\"\nc:\n  {d: 1}\n", `{"a":"x","b":"y","c":{"d":1}}`},
		{"values left out", "a:\nb: # none\nc:\n  d:\n  e:\n", `{"a":null,"b":null,"c":{"d":null,"e":null}}`},
		{"entries left out", "-\n- # none\n- x\n-\n", `[null,null,"x",null]`},
		{"a marker and an end", "# c\n---\na: 1\n...\n# c\n", `{"a":1}`},
		{"no line break at the end", "a: 1", `{"a":1}`},
		{"line breaks of others", "a: 1\r\nb: |\r\n  x\r\n  y\r\nc: 2\rd: 3", `{"a":1,"b":"x\ny\n","c":2,"d":3}`},
		{"comments", "# a\na: 1 # b\n  # c\nb: x#y # z\n#d\n", `{"a":1,"b":"x#y"}`},
		{"tabs that do not indent", "a:\t1\t# x\n\t\nb: [1,\t2]\n", `{"a":1,"b":[1,2]}`},

		{"text over lines", "a: one\n  two\n\n  three\n\n\n   four # c\nb: 1\n", `{"a":"one two\nthree\n\nfour","b":1}`},
		{"text with signs", "a: http://x/y#z?a=b&c\nb: -x\nc: ?x\nd: :x\ne: a,b [c] {d}\n", `{"a":"http://x/y#z?a=b&c","b":"-x","c":"?x","d":":x","e":"a,b [c] {d}"}`},
		{"an expression", "a: ${{ steps.x.output['y'] }}\n", `{"a":"${{ steps.x.output['y'] }}"}`},
		{"keys with blanks and quotes", "a b: 1\n\"c: d\": 2\n'e''f' : 3\n", `{"a b":1,"c: d":2,"e'f":3}`},

		{"double quotes", `a: "\"\\\/\b\f\n\r\t\a\v\e\x41\u00e4\U0001F600\N\_\L\P\ "` + "\n", `{"a":"\"\\/\u0008\u000c\n\u000d\t\u0007\u000b\u001bAä😀` + "\u0085\u00a0\u2028\u2029" + ` "}`},
		{"a surrogate pair, as JSON writes it", `"\ud83d\ude00"`, `"😀"`},
		{"double quotes over lines", "a: \"one  \n  two\n\n  three \\\n   four\\\n\n  five\"\n", `{"a":"one two\nthree four\nfive"}`},
		{"single quotes", `a: 'it''s "x" \n'`, `{"a":"it's \"x\" \\n"}`},
		{"single quotes over lines", "a: 'one\n  two\n\n  three '\n", `{"a":"one two\nthree "}`},

		{"literal text", "a: |\n  one\n    two\n\n  three\nb: 1\n", `{"a":"one\n  two\n\nthree\n","b":1}`},
		{"literal text, stripped", "a: |-\n  one\n\nb: 1\n", `{"a":"one","b":1}`},
		{"literal text, kept", "a: |+\n  one\n\n\nb: 1\n", `{"a":"one\n\n\n","b":1}`},
		{"literal text with its indentation said", "a: |2-\n    one\n   two\nb: 1\n", `{"a":"  one\n two","b":1}`},
		{"literal text beside a dash", "- |\n one\n- |-\n   two\n", `["one\n","two"]`},
		{"literal text at the end", "a: |\n  one", `{"a":"one"}`},
		{"literal text that is none", "a: |\nb: >\n\nc: |+\n\n", `{"a":"","b":"","c":"\n"}`},
		{"literal text with signs", "a: |\n  # no comment\n  b: c\n  - \"d\n", `{"a":"# no comment\nb: c\n- \"d\n"}`},
		{"literal text with blanks", "a: |\n\n  one  \n     \n  \ttwo\n", `{"a":"\none  \n   \n\ttwo\n"}`},
		{"a comment behind the indicator", "a: | # c\n  one\n", `{"a":"one\n"}`},
		{"folded text", "a: >\n  one\n  two\n\n  three\n    four\n    five\n\n  six\n  seven\n", `{"a":"one two\nthree\n  four\n  five\n\nsix seven\n"}`},
		{"folded text, stripped", "a: >-\n\n  one\n  two\n\n", `{"a":"\none two"}`},

		{"brackets", "a: [1, [x, 'y'], {b: c, d: [e]}]\n", `{"a":[1,["x","y"],{"b":"c","d":["e"]}]}`},
		{"brackets over lines", "a: [\n  1, # one\n  2,\n]\nb: {\n  c: d,\n  e: two\n    lines\n}\n", `{"a":[1,2],"b":{"c":"d","e":"two lines"}}`},
		{"JSON", `{"a":[1,true,null,"x\u0041"],"b":{"c":-1.5e3}}`, `{"a":[1,true,null,"xA"],"b":{"c":-1.5e3}}`},
		{"empty brackets", "a: []\nb: {}\n", `{"a":[],"b":{}}`},
		{"values left out in brackets", "{a: , b: , c: 1}", `{"a":null,"b":null,"c":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			document, err := strictyaml.Decode([]byte(tc.in))
			if err != nil {
				t.Fatalf("%q: %v", tc.in, err)
			}
			if got := string(document.JSON); got != tc.want {
				t.Errorf("%q is\n%s, want\n%s", tc.in, got, tc.want)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tc := range []struct{ name, in, at, says string }{
		{"an anchor", "a: 1\nb: &x 2\n", "2:4 /b", "anchors"},
		{"an alias", "a:\n  - *x\n", "2:5 /a", "aliases"},
		{"a merge key", "a: 1\nb:\n  <<: {c: 1}\n", "3:3 /b", "merge keys"},
		{"a merge key in brackets", "{a: 1, <<: b}", "1:8 ", "merge keys"},
		{"a tag", "a: !!str 1\n", "1:4 /a", "tags"},
		{"a tag of its own", "- !x {}\n", "1:3 ", "tags"},
		{"a tag that says nothing", "- ! 1\n", "1:3 ", "tags"},
		{"a directive", "%YAML 1.2\n---\na: 1\n", "1:1 ", "directives"},
		{"two documents", "a: 1\n---\nb: 2\n", "2:1 ", "more than one document"},
		{"two documents with an end", "a: 1\n...\nb: 2\n", "3:1 ", "does not belong"},
		{"no document", " \n# nothing\n", "3:1 ", "empty"},
		{"a key twice", "a: 1\nb: 2\na: 3\n", "3:1 /a", `duplicate key "a"`},
		{"a key twice, written differently", "x:\n  a: 1\n  \"\\x61\": 2\n", "3:3 /x/a", `duplicate key "a"`},
		{"a key twice in brackets", "{a: 1, b: 2, a: 3}", "1:14 /a", `duplicate key "a"`},
		{"a number as a key", "a: 1\n1: 2\n", "2:1 ", "a key has to be text: put 1 in quotes"},
		{"a truth value as a key", "true: 2\n", "1:1 ", "put true in quotes"},
		{"null as a key", "~: 2\n", "1:1 ", "put ~ in quotes"},
		{"a list as a key", "[a]: 2\n", "1:4 ", "a key is not allowed here"},
		{"a list as a key in brackets", "{[a]: 2}", "1:2 ", "a key has to be text"},
		{"no key", ": 2\n", "1:1 ", "no key before the colon"},
		{"a complex key", "? a\n: b\n", "1:1 ", "complex keys"},
		{"a key over lines", "{a: 1, 'b\n  c': 2}", "1:8 ", "on one line"},
		{"a tab that indents", "a:\n\tb: 1\n", "2:1 /a", "a tab cannot indent"},
		{"a tab after spaces", "a:\n  \tb: 1\n", "2:3 /a", "a tab cannot indent"},
		{"a tab behind a dash", "-\t- a\n", "1:2 ", "a tab cannot indent"},
		{"bytes that are not UTF-8", "a: ä\nb: x\xff\n", "2:5 ", "invalid UTF-8"},
		{"a byte order mark", "\uFEFFa: 1\n", "1:1 ", "byte order mark"},
		{"a NUL", "a: x\x00\n", "1:5 ", "NUL"},
		{"an escaped NUL", `a: "x\0"`, "1:6 /a", "NUL"},
		{"an escaped NUL in digits", `a: "x\u0000"`, "1:6 /a", "NUL"},
		{"a control character", "a: \"x\x07\"\n", "1:6 ", "U+0007"},
		{"a delete character", "a: x\x7f\n", "1:5 ", "U+007F"},
		{"a line separator", "a: x\u2028y\n", "1:5 ", `\u2028`},
		{"no number", "a: .nan\n", "1:4 /a", "no number"},
		{"an infinite number", "a: -.inf\n", "1:4 /a", "no number"},
		{"a number that is too long", "a: " + strings.Repeat("1", 101) + "\n", "1:4 /a", "too long"},
		{"a hexadecimal number that is too long", "a: 0x" + strings.Repeat("1", 101) + "\n", "1:4 /a", "too long"},

		{"a key that is indented too far", "a:\n  b: 1\n   c: 2\n", "3:4 /a/b", "belongs to the text"},
		{"a key that is indented too far, behind a comment", "a:\n  b: 1 # x\n   c: 2\n", "3:4 /a", "indented further"},
		{"a key between two columns", "a:\n    b: 1\n  c: 2\n", "3:3 ", "indented further"},
		{"a key that left its list", "steps:\n  - id: a\n   uses: b\n", "3:4 /steps", "indented further"},
		{"an entry among keys", "a: 1\n- b\n", "2:1 ", "not a list entry"},
		{"a key among entries", "- a\nb: 1\n", "2:1 ", "expected a list entry"},
		{"no colon", "a: 1\nb\n", "2:1 ", "expected a key"},
		{"no space behind the colon", "a: 1\nb:2\n", "2:1 ", "expected a key"},
		{"two keys on a line", "a: b: c\n", "1:5 /a", "a key is not allowed here"},
		{"a list beside its key", "a: - b\n", "1:4 /a", "own line"},
		{"text that goes on after quotes", "a: 'it's'\n", "1:8 /a", "unexpected text"},
		{"quotes that are not closed", "a: \"b\nc: 1\nd: 2\n", "1:4 /a", "not closed before line 2"},
		{"quotes that are never closed", "a: 'b\n", "1:4 /a", "not closed"},
		{"a bracket that is not closed", "a: [1, 2\nb: 3\n", "2:1 /a/1", "the bracket of line 1 is not closed"},
		{"a bracket that is never closed", "a: {b: [1,\n  2\n", "1:8 /a/b/1", "not closed"},
		{"a bracket that is closed in a comment", "a:\n  - {b: c(d, # > 1), e: f}\ng: 1\n", "3:1 /a/0", `the bracket of line 2 is not closed; "# > 1), e: f}" is a comment`},
		{"a bracket that is not closed after a comment", "a: [1, # [2]\n]\nb: [\n", "3:4 /b", "the bracket is not closed"},
		{"a bracket that closes nothing", "a: ]\n", "1:4 /a", "unexpected ']'"},
		{"brackets that do not match", "a: [1}\n", "1:6 /a", "comma or ]"},
		{"no value between commas", "a: [1,,2]\n", "1:7 /a", "unexpected ','"},
		{"a pair in a list", "a: [b: c]\n", "1:6 /a", "needs { }"},
		{"no colon in brackets", "{a, b: 1}", "1:3 /a", "expected a colon"},
		{"no space behind the colon in brackets", "{a:1}", "1:5 /a:1", "expected a colon"},
		{"a colon before the bracket", "{a:}", "1:3 /a", "expected a colon"},
		{"an expression without quotes in brackets", "with: {url: ${{ x }}}\n", "1:14 /with", "comma or }"},
		{"an unknown escape", `a: "C:\dir"`, "1:7 /a", "invalid escape"},
		{"half an escape", `a: "\x4"`, "1:5 /a", "2 hexadecimal digits"},
		{"half a surrogate pair", `a: "\ud800"`, "1:5 /a", "surrogate"},
		{"two halves that do not match", `a: "\ud800\ud800"`, "1:5 /a", "surrogate"},
		{"an escape beyond Unicode", `a: "\U00110000"`, "1:5 /a", "not a Unicode"},
		{"reserved signs", "a: @b\n", "1:4 /a", "text that starts with @"},
		{"text behind an indicator", "a: |x\n", "1:5 /a", "on the line after"},
		{"an empty line that is indented further", "a: |\n     \n  x\n", "2:1 /a", "empty line"},
		{"literal text that is not indented", "a:\n  b: |\n   x\n  y\n", "4:3 /a", "expected a key"},
		{"a comment without a space", "a: 'b'#c\n", "1:7 /a", "a space before it"},
		{"characters before the place", "ä: [ö, ü}\n", "1:9 /ä", "comma or ]"},

		{"too deep in brackets", nested(65), "1:65 " + strings.Repeat("/0", 64), "deeper than 64"},
		{"too deep in dashes", strings.Repeat("- ", 65) + "a", "1:129 " + strings.Repeat("/0", 64), "deeper than 64"},
		{"too many keys", manyKeys(10_001), "10001:1 ", "more than 10000 keys"},
		{"too many entries", strings.Repeat("- 1\n", 100_001), "100001:3 /100000", "more than 100000 entries"},
		{"too many values", "[" + strings.Repeat("["+strings.Repeat("1,", 999)+"],", 201) + "]", "1:400198 /199/998", "more than 200000 values"},
		{"too long a key", strings.Repeat("k", 1025) + ": 1", "1:1 ", "longer than 1024"},
		{"too large", strings.Repeat("#", 4<<20+1), "1:1 ", "larger than 4194304 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			document, err := strictyaml.Decode([]byte(tc.in))
			var problems strictjson.Errors
			if !errors.As(err, &problems) {
				t.Fatalf("%.80q: got %+v, %v", tc.in, document, err)
			}
			p := problems[0]
			if got := fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Pointer); got != tc.at || !strings.Contains(p.Message, tc.says) {
				t.Errorf("%.80q: %s: %s\nwant %s: … %s …", tc.in, got, p.Message, tc.at, tc.says)
			}
		})
	}
}

func TestDecodeAcceptsDocumentsAtTheLimits(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"depth":   strings.Repeat("[", 64) + strings.Repeat("]", 64),
		"keys":    manyKeys(10_000),
		"entries": strings.Repeat("- 1\n", 100_000),
		"key":     strings.Repeat("k", 1024) + ": 1",
		"number":  strings.Repeat("1", 100),
		"size":    "a" + strings.Repeat("#", 4<<20-1),
	} {
		if _, err := strictyaml.Decode([]byte(in)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

func TestDecodeWithin(t *testing.T) {
	t.Parallel()
	limits := strictyaml.Limits{Bytes: 12, Values: 4}
	for in, want := range map[string]string{
		"[1, 2, 3]":     "",
		"[1, 2, 3, 4]":  "more than 4 values",
		"[1, 2, 3]    ": "larger than 12 bytes",
	} {
		_, err := strictyaml.DecodeWithin([]byte(in), limits)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: the error is %v, want %q", in, err, want)
		}
	}
}
