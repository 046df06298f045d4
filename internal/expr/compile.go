package expr

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/stepmill/stepmill/internal/suggest"
)

// compiler turns the parser's tree into nodes. It rejects everything that it has
// no case for, so it defines the language.
type compiler struct {
	source   string
	origin   position
	inserted []int  // see wrapMaps
	scope    *Scope // nil in a workflow
	refs     Refs
	names    []string // of the scope
	vars     []string // let variables in scope, by slot
	slots    int
	loops    []string // functions whose body is being compiled
	frames   int
	depth    int
	size     int
	patterns int
}

func (c *compiler) at(n ast.Node) int { return original(c.inserted, n.Location().From) }

// node compiles n one level deeper than its parent.
func (c *compiler) node(n ast.Node) (node, error) {
	if c.depth >= maxDepth {
		return nil, invalidf(c.at(n), "the expression is nested more than %d levels deep", maxDepth)
	}
	c.depth++
	defer func() { c.depth-- }()
	return c.chained(n)
}

// chained compiles n at the depth of its parent: the left side of an operator or
// a dot does not look nested to a reader. The number of nodes bounds the length
// of such a chain.
func (c *compiler) chained(n ast.Node) (node, error) {
	c.size++
	if c.size > maxNodes {
		return nil, invalidf(c.at(n), "the expression has more than %d parts", maxNodes)
	}
	switch n := n.(type) {
	case *ast.NilNode:
		return constant{nil}, nil
	case *ast.BoolNode:
		return constant{n.Value}, nil
	case *ast.IntegerNode:
		return constant{n.Value}, nil
	case *ast.FloatNode:
		return constant{n.Value}, nil
	case *ast.StringNode:
		return constant{n.Value}, nil
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.PointerNode:
		return c.pointer(n)
	case *ast.ChainNode:
		return c.chained(n.Node)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.SliceNode:
		return c.slice(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	}
	return c.compound(n)
}

func (c *compiler) compound(n ast.Node) (node, error) {
	switch n := n.(type) {
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.VariableDeclaratorNode:
		return c.let(n)
	case *ast.SequenceNode:
		nodes, err := c.nodes(n.Nodes)
		return sequence{nodes}, err
	case *ast.ArrayNode:
		items, err := c.nodes(n.Nodes)
		return array{items}, err
	case *ast.MapNode:
		return c.object(n)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.call(n, callee.Value, n.Arguments)
		}
		return nil, invalidf(c.at(n), "values have no methods: write name(value) instead of value.name()")
	case *ast.BytesNode:
		return nil, invalidf(c.at(n), `byte strings are not available: leave out the b before the quote`)
	}
	return nil, invalidf(c.at(n), "this is not available in expressions")
}

func (c *compiler) nodes(list []ast.Node) ([]node, error) {
	out := make([]node, len(list))
	for i, n := range list {
		var err error
		if out[i], err = c.node(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *compiler) pointer(n *ast.PointerNode) (node, error) {
	if len(c.loops) == 0 {
		return nil, invalidf(c.at(n), "# can only be used inside filter, map and similar functions")
	}
	inner := len(c.loops) - 1
	switch n.Name {
	case "", "index":
	case "acc":
		if c.loops[inner] != "reduce" {
			return nil, invalidf(c.at(n), "#acc can only be used inside reduce")
		}
	default:
		return nil, invalidf(c.at(n), "unknown name #%s%s", n.Name, suggest.Hint(n.Name, []string{"index", "acc"}))
	}
	return pointer{frame: inner, name: n.Name}, nil
}

func (c *compiler) conditional(n *ast.ConditionalNode) (node, error) {
	parts, err := c.nodes([]ast.Node{n.Cond, n.Exp1, n.Exp2})
	if err != nil {
		return nil, err
	}
	return conditional{at: c.at(n.Cond), cond: parts[0], then: parts[1], other: parts[2]}, nil
}

func (c *compiler) let(n *ast.VariableDeclaratorNode) (node, error) {
	taken := slices.Contains(c.rootNames(), n.Name) || slices.Contains(c.vars, n.Name)
	if _, ok := lookup(n.Name); ok || taken {
		return nil, invalidf(c.at(n), "the name %s is already in use", n.Name)
	}
	value, err := c.node(n.Value)
	if err != nil {
		return nil, err
	}
	index := len(c.vars)
	c.vars = append(c.vars, n.Name)
	c.slots = max(c.slots, len(c.vars))
	body, err := c.chained(n.Expr)
	c.vars = c.vars[:index]
	return let{index: index, value: value, body: body}, err
}

func (c *compiler) object(n *ast.MapNode) (node, error) {
	out := object{}
	for _, p := range n.Pairs {
		pair, ok := p.(*ast.PairNode)
		if !ok {
			return nil, invalidf(c.at(p), "this is not available in expressions")
		}
		parts, err := c.nodes([]ast.Node{pair.Key, pair.Value})
		if err != nil {
			return nil, err
		}
		out.keys = append(out.keys, parts[0])
		out.values = append(out.values, parts[1])
	}
	return out, nil
}

func (c *compiler) slice(n *ast.SliceNode) (node, error) {
	of, err := c.chained(n.Node)
	if err != nil {
		return nil, err
	}
	out := slice{at: c.at(n), of: of}
	if n.From != nil {
		if out.from, err = c.node(n.From); err != nil {
			return nil, err
		}
	}
	if n.To != nil {
		if out.to, err = c.node(n.To); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *compiler) unary(n *ast.UnaryNode) (node, error) {
	of, err := c.node(n.Node)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "!", "not":
		return not{at: c.at(n), of: of}, nil
	case "-":
		return binary{at: c.at(n), left: constant{0}, right: of, apply: subtract}, nil
	case "+":
		return binary{at: c.at(n), left: constant{0}, right: of, apply: add}, nil
	}
	return nil, invalidf(c.at(n), "the operator %s is not available", n.Operator)
}

func (c *compiler) binary(n *ast.BinaryNode) (node, error) {
	left, err := c.chained(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.node(n.Right)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "&&", "and":
		return logic{at: c.at(n), left: left, right: right, decides: false}, nil
	case "||", "or":
		return logic{at: c.at(n), left: left, right: right, decides: true}, nil
	case "??":
		return coalesce{left: left, right: right}, nil
	case "matches":
		if p, ok := n.Right.(*ast.StringNode); ok {
			re, err := c.pattern(p)
			return matchesConst{at: c.at(n), of: left, regex: re}, err
		}
	}
	apply := operator(n.Operator)
	if apply == nil {
		return nil, invalidf(c.at(n), "the operator %s is not available", n.Operator)
	}
	return binary{at: c.at(n), left: left, right: right, apply: apply}, nil
}

// pattern compiles a literal regular expression. All patterns of an expression
// share one limit, because the expression keeps them in memory.
func (c *compiler) pattern(n *ast.StringNode) (*regex, error) {
	re, err := compilePattern(n.Value)
	if err != nil {
		return nil, invalidf(c.at(n), "%s", err)
	}
	if c.patterns += re.program; c.patterns > maxProgram {
		return nil, invalidf(c.at(n), "the patterns of the expression are too complex")
	}
	return re, nil
}
