package expr

import "strings"

// Program is one compiled expression. It is immutable and safe for concurrent
// use.
type Program struct{ code *code }

// Compile compiles a bare expression, such as steps.get.output.total > 100.
func Compile(source string) (*Program, error) {
	c, err := compile(source, start(), nil)
	if err != nil {
		return nil, err
	}
	return &Program{c}, nil
}

// CompileBare compiles the value of if, until or foreach: an expression as for
// Compile, optionally inside a single ${{ }}.
func CompileBare(source string) (*Program, error) {
	trimmed := strings.TrimSpace(source)
	if !strings.HasPrefix(trimmed, opening) {
		return Compile(source)
	}
	lead, _, _ := strings.Cut(source, opening)
	parts, err := scan(trimmed, start().advance(lead))
	if err != nil {
		return nil, err
	}
	if len(parts) != 1 {
		e := located(invalidf(-1, "the whole expression must be inside a single ${{ }}"), excerpt(trimmed), start())
		return nil, e
	}
	c, err := compile(parts[0].text, parts[0].origin, nil)
	if err != nil {
		return nil, err
	}
	return &Program{c}, nil
}

// Source returns the expression without ${{ }}.
func (p *Program) Source() string { return p.code.source }

// Refs returns what the expression reads.
func (p *Program) Refs() Refs { return p.code.refs.within("") }

// Eval evaluates the expression. The result is plain JSON as [FromJSON] returns
// it, with times as RFC 3339 strings. It may share parts of env, so neither may
// be changed afterwards. An error is always an *Error.
func (p *Program) Eval(env *Env, budget Budget) (any, error) {
	m := newEvaluation(env, budget)
	defer m.recordSpent(budget)
	v, err := m.run(p.code)
	if err == nil {
		v, err = m.finish(v)
	}
	if err != nil {
		return nil, located(err, p.code.source, p.code.origin)
	}
	return v, nil
}

// EvalBool evaluates a condition. Nil is false; any other result that is not
// true or false is an error.
func (p *Program) EvalBool(env *Env, budget Budget) (bool, error) {
	v, err := p.Eval(env, budget)
	if err != nil {
		return false, err
	}
	ok, err := asCondition(v)
	if err != nil {
		return false, located(err, p.code.source, p.code.origin)
	}
	return ok, nil
}

// EvalItems evaluates the list of a foreach: an array or a list file. Nil is an empty
// list.
func (p *Program) EvalItems(env *Env, budget Budget) (items []any, list *File, err error) {
	v, err := p.Eval(env, budget)
	if err != nil {
		return nil, nil, err
	}
	if f, ok := v.(*File); ok && f.List != nil {
		return nil, f, nil
	}
	items, err = p.elements(v)
	return items, nil, err
}

// EvalList evaluates an expression whose result must be an array. Nil is an empty list.
func (p *Program) EvalList(env *Env, budget Budget) ([]any, error) {
	v, err := p.Eval(env, budget)
	if err != nil {
		return nil, err
	}
	return p.elements(v)
}

func (p *Program) elements(v any) ([]any, error) {
	items, err := elements(v)
	if err != nil {
		return nil, located(err, p.code.source, p.code.origin)
	}
	return items, nil
}
