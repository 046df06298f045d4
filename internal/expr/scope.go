package expr

import (
	"maps"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Scope is a set of names for expressions that are not part of a workflow. Such
// expressions can use these names instead of those of a workflow; [Env.Values] has
// their values. A Scope is immutable.
type Scope struct {
	roots map[string][]string
}

// NewScope returns a scope with the names that expressions can start with. A name
// with a list of fields is an object that has these fields only; they must be read
// one by one, with literal names. A name with a nil list can have any value.
func NewScope(roots map[string][]string) *Scope {
	return &Scope{roots: maps.Clone(roots)}
}

// With returns the scope with a further name, which can have any value.
func (s *Scope) With(name string) *Scope {
	roots := maps.Clone(s.roots)
	roots[name] = nil
	return &Scope{roots: roots}
}

// Compile compiles a bare expression. See [Compile].
func (s *Scope) Compile(source string) (*Program, error) {
	c, err := compile(source, start(), s)
	if err != nil {
		return nil, err
	}
	return &Program{c}, nil
}

// CompileTemplate compiles a string with any number of ${{ … }}. See
// [CompileTemplate]. The escape, if not nil, is applied to the text that
// expressions insert, unless the whole string is one expression.
func (s *Scope) CompileTemplate(source string, escape Escape) (*Template, error) {
	t, errs := compileTemplate(source, 1, s)
	if errs != nil {
		return nil, errs[0]
	}
	t.escape = escape
	return t, nil
}

// CompileValue compiles every string with an expression inside a decoded JSON
// value. See [CompileValue].
func (s *Scope) CompileValue(v any) (*Value, error) { return compileValue(v, nil, s) }

// Names returns the names of a [Scope] that the template reads, each once: a name
// with fixed fields as name.field, any other as name.
func (t *Template) Names() []string {
	var out []string
	for _, p := range t.pieces {
		if p.code != nil {
			out = append(out, p.code.names...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *Scope) names() []string { return slices.Sorted(maps.Keys(s.roots)) }

// rootNames returns the names that the expression can start with.
func (c *compiler) rootNames() []string {
	if c.scope != nil {
		return c.scope.names()
	}
	return rootNames()
}

func (c *compiler) scopedName(n *ast.IdentifierNode) (node, error) {
	fields, ok := c.scope.roots[n.Value]
	switch {
	case !ok:
		return nil, c.unknown(n)
	case fields != nil:
		return nil, invalidf(c.at(n), "%s needs the literal name of a field: %s.name", n.Value, n.Value)
	}
	c.names = append(c.names, n.Value)
	return scopeValue{n.Value}, nil
}

// scopedMember compiles n.name if n is a name with fixed fields, and returns nil
// otherwise.
func (c *compiler) scopedMember(n *ast.MemberNode, name string) (node, error) {
	root := c.root(n.Node)
	fields := c.scope.roots[root]
	switch {
	case fields == nil:
		return nil, nil
	case len(fields) == 0:
		return nil, invalidf(c.at(n), "%s has no %s: it has no fields", root, name)
	case !slices.Contains(fields, name):
		return nil, c.noField(n, root, name, fields)
	}
	c.names = append(c.names, root+"."+name)
	return field{of: scopeValue{root}, name: name}, nil
}

type scopeValue struct{ name string }

func (n scopeValue) eval(m *evaluation) (any, error) { return m.normalize(m.env.Values[n.name]) }
