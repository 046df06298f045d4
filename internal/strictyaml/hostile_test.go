package strictyaml_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/strictyaml"
)

// The documents are chosen to take quadratic time in a naive parser, which would
// exceed the timeout of the test.
func TestHostileDocumentsTakeLinearTime(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	fill := func(text string) string { return strings.Repeat(text, size/len(text)) }
	deepItems := "[" + strings.Repeat(strings.Repeat("[", 60)+strings.Repeat("]", 60)+",", size/130)
	for name, in := range map[string]string{
		"brackets": fill("["), "braces": fill("{a: "), "dashes": fill("- "), "question marks": fill("? "), "colons": fill("a:"),
		"quotes": "a: \"" + fill("x\n "), "single quotes": fill("'"), "escapes": "a: \"" + fill("\\\n"),
		"comments": fill("# x\n"), "empty lines": "a: x\n" + fill("\n"), "lines of text": "a: x\n" + fill(" x\n"),
		"one line": "a: " + fill("x "), "keys": fill("k: {a: 1}\n"), "keys left out": manyKeys(10_000) + fill("a:\n"),
		"lists left out": fill("a:\n- \n- \n- \n"), "literal": "a: |\n" + fill(" \n"), "folded": "a: >\n" + fill(" x\n"),
		"deep lists": deepItems, "exclamation marks": fill("!"), "markers": fill("---\n"), "tabs": fill("\t"), "no breaks": fill("\r"),
		"blocks": fill("- - - - - - a\n"), "flow text": "[" + fill("x\n"), "not closed": "{" + fill("a: 'b', "),
	} {
		in = in[:min(len(in), size)]
		_, err := strictyaml.Decode([]byte(in))
		t.Logf("%s: %v", name, err)
	}
}
