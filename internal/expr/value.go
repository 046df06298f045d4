package expr

import (
	"slices"
	"strconv"
)

// Value is a compiled JSON value whose strings may hold expressions. It is
// immutable and safe for concurrent use.
type Value struct {
	root branch
	refs Refs
}

// branch is a part of the value: exactly one of template, keys and kids, kids
// alone, or constant says what it is.
type branch struct {
	path     *path
	template *Template
	keys     []string // of an object, in order, one per kid
	kids     []branch
	isList   bool
	constant any
	size     int // bytes of JSON: of a constant, or of what surrounds the kids
}

// CompileValue compiles every string with an expression inside a decoded JSON
// value. Keys of objects are taken as they are. The value must not be changed
// afterwards: parts without expressions come out of Eval as they went in. The
// error is an [Errors] with every problem found, each with its JSON pointer.
// Escapes, by the JSON pointer of a string, are applied to what expressions
// bring into the text of that string.
func CompileValue(v any, escapes map[string]Escape) (*Value, error) {
	c := valueCompiler{meter: meter{m: newMachine(nil, Budget{}), left: maxConstant}, escapes: escapes}
	root := c.branch(v, nil, 0)
	if c.errs != nil {
		return nil, c.errs
	}
	if s, ok := root.constant.(string); ok {
		root.size = len(s) // as finish counts it
	}
	return &Value{root: root, refs: c.refs}, nil
}

// maxConstant bounds the constant parts of a value. It is above what any
// budget lets through.
const maxConstant = 64 << 20

type valueCompiler struct {
	meter       meter
	escapes     map[string]Escape
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
		return c.failf(at, "", "the value is nested more than %d deep", maxNesting)
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
		return branch{} // it is refused already
	}
	if at.length() > maxPointer {
		return c.failf(at, s, "the keys around an expression are longer than %d bytes together", maxPointer)
	}
	t, errs := compileTemplate(s, maxErrors)
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
		return c.failf(at, s, "the value holds more expressions or larger patterns than are allowed")
	}
	c.refs.merge(t.refs.within(at.pointer()))
	return branch{path: at, template: t}
}

// constant makes v plain JSON once, so that Eval can hand it out as it is.
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
		b.kids = append(b.kids, c.branch(v[k], &path{up: at, key: k}, depth+1))
	}
	return b.fold(func() any {
		out := make(map[string]any, len(b.keys))
		for i, k := range b.keys {
			out[k] = b.kids[i].constant
		}
		return out
	})
}

func (c *valueCompiler) list(v []any, at *path, depth int) branch {
	b := branch{path: at, isList: true, size: 2 + max(0, len(v)-1)}
	for i, e := range v {
		b.kids = append(b.kids, c.branch(e, &path{up: at, key: strconv.Itoa(i)}, depth+1))
	}
	return b.fold(func() any {
		out := make([]any, len(b.kids))
		for i, kid := range b.kids {
			out[i] = kid.constant
		}
		return out
	})
}

// fold turns a branch whose kids are all constant into a constant.
func (b branch) fold(constant func() any) branch {
	size := b.size
	for _, kid := range b.kids {
		if kid.template != nil || kid.kids != nil {
			return b
		}
		size += kid.size
	}
	return branch{path: b.path, constant: constant(), size: size}
}

// Refs returns what the expressions inside the value read.
func (v *Value) Refs() Refs { return v.refs }

// Eval renders the value. Objects and arrays that hold an expression are made
// anew; parts without one are shared between results, and results may share
// parts of env, so none of them may be changed. A value without any expression
// costs no more than the check of its size. One budget covers everything.
func (v *Value) Eval(env *Env, budget Budget) (any, error) {
	m := newMachine(env, budget)
	defer m.settle(budget)
	if t := v.root.template; t != nil {
		return t.evalOn(m)
	}
	mt := meter{m: m, left: m.result}
	return v.root.eval(&mt)
}

func (b *branch) eval(mt *meter) (any, error) {
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

func (b *branch) evalObject(mt *meter) (any, error) {
	out := make(map[string]any, len(b.keys))
	for i := range b.kids {
		v, err := b.kids[i].eval(mt)
		if err != nil {
			return nil, err
		}
		out[b.keys[i]] = v
	}
	return out, nil
}

func (b *branch) evalList(mt *meter) (any, error) {
	out := make([]any, len(b.kids))
	for i := range b.kids {
		v, err := b.kids[i].eval(mt)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}
