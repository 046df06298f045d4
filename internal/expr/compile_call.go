package expr

import (
	"github.com/expr-lang/expr/ast"

	"github.com/stepmill/stepmill/internal/suggest"
)

func (c *compiler) call(n ast.Node, name string, args []ast.Node) (node, error) {
	f, ok := lookup(name)
	if !ok {
		return nil, invalidf(c.at(n), "unknown function %s%s", name, suggest.Hint(name, functionNames()))
	}
	if len(args) < f.min || len(args) > f.max {
		return nil, invalidf(c.at(n), "%s takes %s, got %d: %s", name, arity(f), len(args), f.Signature)
	}
	c.refs.addWord(f.word(len(args)))
	if f.InSteps {
		c.refs.Random = addRef(c.refs.Random, name, c.position(n))
	}
	if f.loop != nil {
		return c.loop(n, f, args)
	}
	nodes, err := c.nodes(args)
	if err != nil {
		return nil, err
	}
	out := &call{at: c.at(n), function: f, args: nodes}
	if literal, ok := secondLiteral(args); ok {
		switch {
		case f.pattern:
			out.regex, err = c.pattern(literal)
		case f.selector:
			out.selector, err = c.selector(literal)
		}
	}
	return out, err
}

func secondLiteral(args []ast.Node) (*ast.StringNode, bool) {
	if len(args) < 2 {
		return nil, false
	}
	literal, ok := args[1].(*ast.StringNode)
	return literal, ok
}

func (c *compiler) selector(n *ast.StringNode) (*selector, error) {
	s, err := compileSelector(n.Value)
	if err != nil {
		return nil, invalidf(c.at(n), "%s", err)
	}
	return s, nil
}

func arity(f *function) string {
	switch {
	case f.max == anyNumber:
		return arguments(f.min) + " or more"
	case f.min == f.max:
		return arguments(f.min)
	}
	return arguments(f.min) + " at least and " + arguments(f.max) + " at most"
}

func (c *compiler) loop(n ast.Node, f *function, args []ast.Node) (node, error) {
	l := &loop{at: c.at(n), frame: len(c.loops), run: f.loop}
	var err error
	if l.list, err = c.node(args[0]); err != nil {
		return nil, err
	}
	if len(args) > 2 {
		if l.extra, err = c.node(args[2]); err != nil {
			return nil, err
		}
	}
	before := c.size
	if len(args) > 1 {
		if l.body, err = c.body(f.Name, args[1]); err != nil {
			return nil, err
		}
	}
	l.cost = 1 + c.size - before
	return l, nil
}

func (c *compiler) body(name string, n ast.Node) (node, error) {
	p, ok := n.(*ast.PredicateNode)
	if !ok {
		return nil, invalidf(c.at(n), "%s needs an expression to evaluate for each element", name)
	}
	c.loops = append(c.loops, name)
	c.frames = max(c.frames, len(c.loops))
	defer func() { c.loops = c.loops[:len(c.loops)-1] }()
	return c.node(p.Node)
}

// call is a call of a function that is not a loop.
type call struct {
	at       int
	function *function
	args     []node
	regex    *regex    // of a literal pattern
	selector *selector // if it is a literal
}

func (n *call) eval(m *evaluation) (any, error) {
	base := len(m.stack)
	for _, arg := range n.args {
		v, err := arg.eval(m)
		if err != nil {
			return nil, err
		}
		m.stack = append(m.stack, v)
	}
	v, err := n.function.call(m, args{name: n.function.Name, values: m.stack[base:], compiled: n.regex, selector: n.selector})
	m.stack = m.stack[:base]
	return v, locate(err, n.at)
}
