package expr

import (
	"slices"
	"strconv"
)

// Value is a compiled JSON value whose strings may contain expressions. It is
// immutable and safe for concurrent use.
type Value struct {
	root branch
	refs Refs
}

// branch is a part of the value. Exactly one of these is set: template, keys with
// children, children alone, or constant.
type branch struct {
	path     *path
	template *Template
	keys     []string // of an object, in order, one per kid
	children []branch
	isList   bool
	constant any
	size     int // bytes of JSON: of a constant, or of what surrounds the kids
}

// CompileValue compiles every string with an expression inside a decoded JSON
// value. Object keys are not compiled. The value must not be changed afterwards:
// Eval returns parts without expressions unchanged. The error is an [Errors] with
// all problems, each with its JSON pointer. Escapes, by the JSON pointer of a
// string, are applied to the text that expressions insert into that string.
func CompileValue(v any, escapes map[string]Escape) (*Value, error) {
	return compileValue(v, escapes, nil)
}

func compileValue(v any, escapes map[string]Escape, scope *Scope) (*Value, error) {
	c := valueCompiler{meter: resultMeter{m: newEvaluation(nil, Budget{}), left: maxConstant}, escapes: escapes, scope: scope}
	root := c.branch(v, nil, 0)
	if c.errs != nil {
		return nil, c.errs
	}
	if s, ok := root.constant.(string); ok {
		root.size = len(s) // as finish counts it
	}
	return &Value{root: root, refs: c.refs}, nil
}

// maxConstant bounds the constant parts of a value. It exceeds any budget.
const maxConstant = 64 << 20

type valueCompiler struct {
	meter       resultMeter
	escapes     map[string]Escape
	scope       *Scope
	refs        Refs
	errs        Errors
	expressions int
	patterns    int // their programs together
	overfull    bool
}

func (c *valueCompiler) fail(at *path, errs ...*Error) branch {
	for _, e := range errs {
		if len(c.errs) < maxErrors {
			e.Pointer = at.pointer()
			c.errs = append(c.errs, e)
		}
	}
	return branch{}
}

func (c *valueCompiler) failf(at *path, source, format string, args ...any) branch {
	return c.fail(at, located(invalidf(-1, format, args...), excerpt(source), start()))
}

func (c *valueCompiler) branch(v any, at *path, depth int) branch {
	if depth > maxNesting {
		return c.failf(at, "", "the value is nested more than %d levels deep", maxNesting)
	}
	switch v := v.(type) {
	case string:
		if HasExpression(v) {
			return c.template(v, at)
		}
	case map[string]any:
		return c.object(v, at, depth)
	case []any:
		return c.list(v, at, depth)
	}
	return c.constant(v, at)
}

func (c *valueCompiler) template(s string, at *path) branch {
	if len(c.errs) >= maxErrors || c.overfull {
		return branch{} // already rejected
	}
	if at.length() > maxPointer {
		return c.failf(at, s, "the path to an expression has keys of more than %d bytes in total", maxPointer)
	}
	t, errs := compileTemplate(s, maxErrors, c.scope)
	if errs != nil {
		return c.fail(at, errs...)
	}
	if len(c.escapes) > 0 {
		t.escape = c.escapes[at.pointer()]
	}
	for _, p := range t.pieces {
		if p.code != nil {
			c.expressions++
			c.patterns += p.code.patterns
		}
	}
	if c.expressions > maxExpressions || c.patterns > maxPatterns {
		c.overfull = true
		return c.failf(at, s, "the value has too many expressions or too large patterns")
	}
	c.refs.merge(t.refs.within(at.pointer()))
	return branch{path: at, template: t}
}

// constant converts v to plain JSON once, so that Eval can return it unchanged.
func (c *valueCompiler) constant(v any, at *path) branch {
	before := c.meter.left
	plain, _, err := c.meter.plain(v, 0)
	if err != nil {
		return c.failf(at, "", "%s", err)
	}
	return branch{path: at, constant: plain, size: before - c.meter.left}
}

func (c *valueCompiler) object(v map[string]any, at *path, depth int) branch {
	b := branch{path: at, size: 2 + 2*len(v) - min(1, len(v))}
	for k := range v {
		b.keys = append(b.keys, k)
		b.size += jsonSize(k)
	}
	slices.Sort(b.keys)
	for _, k := range b.keys {
		b.children = append(b.children, c.branch(v[k], &path{up: at, key: k}, depth+1))
	}
	return b.fold(func() any {
		out := make(map[string]any, len(b.keys))
		for i, k := range b.keys {
			out[k] = b.children[i].constant
		}
		return out
	})
}

func (c *valueCompiler) list(v []any, at *path, depth int) branch {
	b := branch{path: at, isList: true, size: 2 + max(0, len(v)-1)}
	for i, e := range v {
		b.children = append(b.children, c.branch(e, &path{up: at, key: strconv.Itoa(i)}, depth+1))
	}
	return b.fold(func() any {
		out := make([]any, len(b.children))
		for i, kid := range b.children {
			out[i] = kid.constant
		}
		return out
	})
}

// fold turns a branch whose children are all constant into a constant.
func (b branch) fold(constant func() any) branch {
	size := b.size
	for _, kid := range b.children {
		if kid.template != nil || kid.children != nil {
			return b
		}
		size += kid.size
	}
	return branch{path: b.path, constant: constant(), size: size}
}

// Refs returns what the expressions inside the value read.
func (v *Value) Refs() Refs { return v.refs }

// Eval renders the value. It allocates new objects and arrays where they contain
// an expression. Results share the other parts, and may share parts of env, so
// none of them may be changed. A value without any expression costs only the check
// of its size. One budget covers the whole value.
func (v *Value) Eval(env *Env, budget Budget) (any, error) {
	m := newEvaluation(env, budget)
	defer m.recordSpent(budget)
	if t := v.root.template; t != nil {
		return t.evalOn(m)
	}
	mt := resultMeter{m: m, left: m.result}
	return v.root.eval(&mt)
}

func (b *branch) eval(mt *resultMeter) (any, error) {
	if b.template != nil {
		v, at, err := b.template.render(mt.m)
		if err == nil {
			v, _, err = mt.plain(v, 0)
		}
		if err != nil {
			e := b.template.located(err, at)
			e.Pointer = b.path.pointer()
			return nil, e
		}
		return v, nil
	}
	if err := mt.take(b.size); err != nil {
		e := located(err, "", start())
		e.Pointer = b.path.pointer()
		return nil, e
	}
	switch {
	case b.keys != nil:
		return b.evalObject(mt)
	case b.isList:
		return b.evalList(mt)
	}
	return b.constant, nil
}

func (b *branch) evalObject(mt *resultMeter) (any, error) {
	out := make(map[string]any, len(b.keys))
	for i := range b.children {
		v, err := b.children[i].eval(mt)
		if err != nil {
			return nil, err
		}
		out[b.keys[i]] = v
	}
	return out, nil
}

func (b *branch) evalList(mt *resultMeter) (any, error) {
	out := make([]any, len(b.children))
	for i := range b.children {
		v, err := b.children[i].eval(mt)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}
