package expr

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/stepmill/stepmill/internal/suggest"
)

func (c *compiler) identifier(n *ast.IdentifierNode) (node, error) {
	if i := slices.Index(c.vars, n.Value); i >= 0 {
		return slot{i}, nil
	}
	if c.scope != nil {
		return c.scopedName(n)
	}
	c.refs.addWord(n.Value)
	switch n.Value {
	case "item":
		c.refs.Item = true
		return loopItem{}, nil
	case "index":
		c.refs.Index = true
		return loopIndex{}, nil
	case "previous":
		c.refs.Previous = true
		return loopPrevious{}, nil
	case "response":
		c.refs.Response = true
		return pollResponse{}, nil
	case "cursor":
		c.refs.Cursor = true
		return pollCursor{}, nil
	case "trigger", "run", "workflow":
		c.refs.Version = c.refs.Version || n.Value == "workflow"
		return newRootObject(n.Value), nil
	case "steps":
		c.refs.AllSteps = true
		return allSteps{}, nil
	case "vars":
		c.refs.AllVars = true
		return allVars{}, nil
	case "secrets":
		return nil, invalidf(c.at(n), "a secret needs a literal name: secrets.name")
	case "links":
		return nil, invalidf(c.at(n), "%s", linkRule)
	}
	return nil, c.unknown(n)
}

const linkRule = "a link needs the literal id of its step: links.id.page or links.id.callback"

func (c *compiler) unknown(n *ast.IdentifierNode) error {
	switch strings.ToLower(n.Value) {
	case "null", "none", "undefined":
		return invalidf(c.at(n), "unknown name %s (write nil)", n.Value)
	}
	if _, ok := lookup(n.Value); ok {
		return invalidf(c.at(n), "%s is a function: write %s(…)", n.Value, n.Value)
	}
	names := append(c.rootNames(), c.vars...)
	return invalidf(c.at(n), "unknown name %s%s; an expression can use %s",
		n.Value, suggest.Hint(n.Value, names), strings.Join(c.rootNames(), ", "))
}

// member compiles a.b and a[b]. It resolves literal names of the environment at
// compile time: this checks them, records the reference, and avoids building the
// whole object.
func (c *compiler) member(n *ast.MemberNode) (node, error) {
	name, literal := n.Property.(*ast.StringNode)
	if literal {
		out, err := c.fixedMember(n, name.Value)
		if err != nil || out != nil {
			c.size++
			return out, err
		}
	}
	of, err := c.chained(n.Node)
	if err != nil {
		return nil, err
	}
	if literal {
		return field{of: of, name: name.Value}, nil
	}
	key, err := c.node(n.Property)
	return element{of: of, key: key}, err
}

// fixedMember compiles n.name if n is a root or a step, and returns nil otherwise.
func (c *compiler) fixedMember(n *ast.MemberNode, name string) (node, error) {
	if c.scope != nil {
		return c.scopedMember(n, name)
	}
	if id, ok := c.stepID(n.Node); ok {
		if !slices.Contains(stepFields(), name) {
			return nil, c.noField(n, "steps."+id, name, stepFields())
		}
		c.refs.addWord("steps." + name)
		return stepValue{id: id, name: name}, nil
	}
	if id, ok := c.memberOf("links", n.Node); ok {
		if !slices.Contains(linkFields(), name) {
			return nil, c.noField(n, "links."+id, name, linkFields())
		}
		c.refs.Links = addRef(c.refs.Links, id, c.position(unchain(n.Node)))
		c.refs.addWord("links." + name)
		return linkValue{id: id, name: name}, nil
	}
	switch root := c.root(n.Node); root {
	case "trigger", "run", "workflow":
		read := rootField(root + "." + name)
		if read == nil {
			return nil, c.noField(n, root, name, fieldsOf(root))
		}
		c.refs.Version = c.refs.Version || root == "workflow" && name == "version"
		c.refs.addWord(root + "." + name)
		return rootValue{read}, nil
	case "steps":
		c.refs.Steps = addRef(c.refs.Steps, name, c.position(n))
		c.refs.addWord(root)
		return stepObject{name}, nil
	case "secrets":
		c.refs.Secrets = addRef(c.refs.Secrets, name, c.position(n))
		c.refs.addWord(root)
		return secret{name}, nil
	case "links":
		return nil, invalidf(c.at(n), "%s", linkRule)
	case "vars":
		c.refs.Vars = addRef(c.refs.Vars, name, c.position(n))
		c.refs.addWord(root)
		return variable{name}, nil
	}
	return nil, nil
}

func (c *compiler) noField(n *ast.MemberNode, of, name string, fields []string) error {
	return invalidf(c.at(n), "%s has no %s%s; it has %s", of, name, suggest.Hint(name, fields), strings.Join(fields, ", "))
}

// root returns the name of the root that n is, "" if it is not one.
func (c *compiler) root(n ast.Node) string {
	id, ok := unchain(n).(*ast.IdentifierNode)
	if !ok || slices.Contains(c.vars, id.Value) {
		return ""
	}
	return id.Value
}

// stepID returns the id if n is steps.id, and records the reference.
func (c *compiler) stepID(n ast.Node) (string, bool) {
	id, ok := c.memberOf("steps", n)
	if ok {
		c.refs.Steps = addRef(c.refs.Steps, id, c.position(unchain(n)))
	}
	return id, ok
}

// memberOf returns the name if n is root.name with a literal name.
func (c *compiler) memberOf(root string, n ast.Node) (string, bool) {
	m, ok := unchain(n).(*ast.MemberNode)
	if !ok || c.root(m.Node) != root {
		return "", false
	}
	name, ok := m.Property.(*ast.StringNode)
	if !ok {
		return "", false
	}
	return name.Value, true
}

func unchain(n ast.Node) ast.Node {
	for {
		chain, ok := n.(*ast.ChainNode)
		if !ok {
			return n
		}
		n = chain.Node
	}
}

func (c *compiler) position(n ast.Node) position {
	return c.origin.advance(c.source[:byteOffset(c.source, c.at(n))])
}
