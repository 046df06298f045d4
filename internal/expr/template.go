package expr

import "slices"

// Template is a compiled string that may contain expressions. It is immutable and
// safe for concurrent use.
type Template struct {
	source string
	pieces []piece
	refs   Refs
	escape Escape
}

// Escape escapes text that an expression inserts into a string, given the text
// before it.
type Escape func(before, text string) string

// piece is text, or an expression if code is set.
type piece struct {
	text string
	code *code
}

// CompileTemplate compiles a string with any number of ${{ … }}. In the text
// around them, $${{ is an escaped ${{.
func CompileTemplate(source string) (*Template, error) {
	t, errs := compileTemplate(source, 1, nil)
	if errs != nil {
		return nil, errs[0]
	}
	return t, nil
}

// compileTemplate reports at most the given number of errors.
func compileTemplate(source string, most int, scope *Scope) (*Template, Errors) {
	parts, err := scan(source, start())
	if err != nil {
		return nil, Errors{err}
	}
	t := &Template{source: source}
	var errs Errors
	for _, p := range parts {
		if !p.isExpr {
			t.pieces = append(t.pieces, piece{text: p.text})
			continue
		}
		c, err := compile(p.text, p.origin, scope)
		if err != nil {
			if errs = append(errs, err); len(errs) >= most {
				return nil, errs
			}
			continue
		}
		t.pieces = append(t.pieces, piece{code: c})
		t.refs.merge(c.refs)
	}
	if errs != nil {
		return nil, errs
	}
	return t, nil
}

// Source returns the string that was compiled.
func (t *Template) Source() string { return t.source }

// Refs returns what the expressions of the string read.
func (t *Template) Refs() Refs { return t.refs.within("") }

// Eval renders the string. The result of an expression that is the whole string
// keeps its type; otherwise each result becomes text. Text that comes from data is
// never parsed for expressions. See [Program.Eval] for more about the result.
func (t *Template) Eval(env *Env, budget Budget) (any, error) {
	m := newEvaluation(env, budget)
	defer m.recordSpent(budget)
	return t.evalOn(m)
}

// EvalReading evaluates the expressions of the string that read a name of its scope
// which matches, each on its own.
func (t *Template) EvalReading(env *Env, budget Budget, matches func(name string) bool) ([]any, error) {
	var out []any
	for _, p := range t.pieces {
		if p.code == nil || !slices.ContainsFunc(p.code.names, matches) {
			continue
		}
		value, err := (&Program{p.code}).Eval(env, budget)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

func (t *Template) evalOn(m *evaluation) (any, error) {
	v, at, err := t.render(m)
	if err == nil {
		v, err = m.finish(v)
	}
	if err != nil {
		return nil, t.located(err, at)
	}
	return v, nil
}

// render returns the value without measuring it, and on an error the index of the
// piece that failed.
func (t *Template) render(m *evaluation) (any, int, error) {
	if len(t.pieces) == 1 && t.pieces[0].code != nil {
		v, err := m.run(t.pieces[0].code)
		return v, 0, err
	}
	var out []byte
	for i, p := range t.pieces {
		text := p.text
		if p.code != nil {
			v, err := m.run(p.code)
			if err == nil {
				text, err = m.text(v)
			}
			if err != nil {
				return nil, i, err
			}
			if t.escape != nil {
				text = t.escape(string(out), text)
			}
		}
		if len(out)+len(text) > m.result {
			return nil, i, costf("the result exceeds the size limit")
		}
		if err := m.write(len(text)); err != nil {
			return nil, i, err
		}
		out = append(out, text...)
	}
	return string(out), 0, nil
}

func (t *Template) located(err error, at int) *Error {
	if at < len(t.pieces) && t.pieces[at].code != nil {
		c := t.pieces[at].code
		return located(err, c.source, c.origin)
	}
	return located(err, excerpt(t.source), start())
}
