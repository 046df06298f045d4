package expr

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// parse reads source with expr-lang's parser. Its recursion follows the
// nesting of the source, which the limit on the length keeps harmless. Places
// in the tree are those of the text that wrapMaps makes.
func parse(source string) (tree ast.Node, inserted []int, err error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, nil, invalidf(0, "the expression is empty")
	case len(source) > maxSource:
		return nil, nil, invalidf(0, "the expression is longer than %d bytes", maxSource)
	case !utf8.ValidString(source):
		return nil, nil, invalidf(0, "the expression is not valid UTF-8")
	}
	defer func() {
		if r := recover(); r != nil {
			tree, inserted, err = nil, nil, invalidf(0, "the expression cannot be parsed")
		}
	}()
	text, inserted := wrapMaps(source)
	t, err := parser.Parse(text)
	if err != nil {
		return nil, nil, parseError(source, inserted, err)
	}
	return t.Node, inserted, nil
}

func parseError(source string, inserted []int, err error) error {
	at, message := 0, err.Error()
	if e := (*file.Error)(nil); errors.As(err, &e) {
		at, message = original(inserted, max(0, e.From)), e.Message
	}
	if strings.Contains(source, "${{") {
		message += "; ${{ }} goes around the whole expression"
	}
	return invalidf(at, "%s", message)
}

// compile compiles one expression that begins at origin.
func compile(source string, origin position) (*code, *Error) {
	tree, inserted, err := parse(source)
	if err != nil {
		return nil, located(err, source, origin)
	}
	c := &compiler{source: source, origin: origin, inserted: inserted}
	root, err := c.node(tree)
	if err != nil {
		return nil, located(err, source, origin)
	}
	return &code{
		root: root, source: source, origin: origin, refs: c.refs,
		size: c.size, slots: c.slots, frames: c.frames, patterns: c.patterns,
	}, nil
}
