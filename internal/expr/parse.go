package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// parse parses source with expr-lang's parser. The parser recurses with the
// nesting of the source, which the length limit bounds. Positions in the tree
// refer to the text that wrapMaps returns.
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
		return nil, nil, parseError(source, text, inserted, err)
	}
	return t.Node, inserted, nil
}

// compile compiles an expression that begins at origin, with the names of the
// scope or, if it is nil, those of a workflow.
func compile(source string, origin position, scope *Scope) (*code, *Error) {
	tree, inserted, err := parse(source)
	if err != nil {
		return nil, located(err, source, origin)
	}
	c := &compiler{source: source, origin: origin, inserted: inserted, scope: scope}
	root, err := c.node(tree)
	if err != nil {
		return nil, located(err, source, origin)
	}
	return &code{
		root: root, source: source, origin: origin, refs: c.refs, names: c.names,
		size: c.size, slots: c.slots, frames: c.frames, patterns: c.patterns,
	}, nil
}
