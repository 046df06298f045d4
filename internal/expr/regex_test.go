package expr_test

import (
	"fmt"
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/test/lane"
)

func TestRegexFunctions(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`regexFind("abc", "x")`:                                           `null`,
		`regexReplace("a.b.", "\\Q.", "-")`:                               `"a-b-"`,
		`regexFind("größe", "ß").index`:                                   `3`,
		`regexFind("ab", "(a)|(b)").groups`:                               `["a",null]`,
		`regexFindAll("", "x*") | map(.text)`:                             `[""]`,
		`regexFindAll("abc", "")  | map(.index)`:                          `[0,1,2,3]`,
		`regexFindAll("aab", "^a") | len()`:                               `1`,
		`regexFindAll("ab ab", "\\bab\\b") | map(.index)`:                 `[0,3]`,
		`regexFindAll("a\nb", "(?m)^.") | map(.text)`:                     `["a","b"]`,
		`regexFindAll("a1b2", "[a-z](\\d)", 1) | map(.groups[0])`:         `["1"]`,
		`regexFindAll("k=v; l=w", "(?P<k>\\w)=(?P<v>\\w)") | map(.named)`: `[{"k":"k","v":"v"},{"k":"l","v":"w"}]`,
		`regexReplace("a.b", "\\.", "$")`:                                 `"a$b"`,
		`regexReplace("a", "a", "$$1")`:                                   `"$1"`,
		`regexReplace("ab", "(a)(b)", "${2}x$1y")`:                        `"bxay"`,
		`regexReplace("ab", "(a)|(b)", "<$2>")`:                           `"<><b>"`,
		`regexReplace("ab", "a" + "", "${0}-${0}")`:                       `"a-ab"`,
		`regexReplace("price", "e", "$ {x}")`:                             `"pric$ {x}"`,
		`regexReplace("ab", "b", "${0")`:                                  `"a${0"`,
		`regexReplace("ab", "b", "${}")`:                                  `"a${}"`,
	})
	failTable(t, map[string]string{
		`regexReplace("a", "a", "$1")`:               "argument 3 of regexReplace names a group that the pattern does not have; write $$ for a dollar sign",
		`regexReplace("a", "a", "${name}")`:          "argument 3 of regexReplace names a group that the pattern does not have; write $$ for a dollar sign",
		`regexFind("a", "(" + "")`:                   "the pattern is not a regular expression: missing closing )",
		`regexFind("a", nil)`:                        "argument 2 of regexFind must be a string, got nil; use ?? to give a default",
		`regexFind("a", join(map(1..33, "()"), ""))`: "the pattern has more than 32 groups",
	})
	if e := mustFail(t, `regexFind("a", "(")`); e.Code != expr.CodeInvalid {
		t.Errorf("a literal pattern is checked late: %v", e)
	}
}

// The matches are those of Go's own function.
func TestRegexMatchesLikeGo(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		pattern := rapid.StringMatching(`(\^|\\b|\\B|\(\?m\)\^)?([aé.](\*|\?|\*\?|\+)?|\(a\|b\)|\(b\)\?|\\b|b\$){0,4}(\||\$)?`).Draw(rt, "pattern")
		text := rapid.StringMatching(`[abé \n]{0,12}`).Draw(rt, "text")
		want := [][]any{}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatchIndex(text, -1) {
			groups := []any{}
			for i := 2; i < len(match); i += 2 {
				if match[i] < 0 {
					groups = append(groups, nil)
				} else {
					groups = append(groups, text[match[i]:match[i+1]])
				}
			}
			want = append(want, []any{text[match[0]:match[1]], len([]rune(text[:match[0]])), groups})
		}
		source := fmt.Sprintf("map(regexFindAll(%q, %q), [.text, .index, .groups])", text, pattern)
		if got := eval(t, source); got != asJSON(t, want) {
			rt.Fatalf("%s = %s, want %s", source, got, asJSON(t, want))
		}
	})
}
