// Package pages reads lists page by page: it evaluates the expressions of the input
// paginate, and keeps how far a step has read, with a checkpoint after each page. The
// action sends the requests and decides how the next page is requested.
package pages

import (
	"cmp"
	"errors"
	"maps"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

// Failed is the code of pages that cannot be followed.
const Failed = "pagination_failed"

// defaultMax limits the pages if max_pages is not given.
const defaultMax = 100

// Rules are the members of paginate that do not depend on how a page is requested.
type Rules struct {
	Items *expr.Program
	Next  *expr.Program // nil if it is not given
	More  *expr.Program // nil if it is not given
	Max   int
}

// Parse returns the rules in a paginate, and the problems of their expressions, which can
// use the names of the scope.
func Parse(given map[string]any, scope *expr.Scope) (Rules, []action.Problem) {
	var problems []action.Problem
	compile := func(name string) *expr.Program {
		source, ok := given[name].(string)
		if !ok {
			return nil
		}
		program, err := scope.Compile(source)
		if err != nil {
			problems = append(problems, action.Problem{Pointer: "/paginate/" + name, Message: err.Error()})
		}
		return program
	}
	r := Rules{Items: compile("items"), Next: compile("next"), More: compile("more")}
	r.Max, _ = Integer(given["max_pages"])
	r.Max = cmp.Or(r.Max, defaultMax)
	return r, problems
}

// Continues evaluates more. Without it, the result is the default.
func (r Rules) Continues(env *expr.Env, byDefault bool) (bool, error) {
	if r.More == nil {
		return byDefault, nil
	}
	more, err := r.More.EvalBool(env, expr.Budget{})
	if err != nil {
		return false, expressionFailure("more", err)
	}
	return more, nil
}

// Following evaluates next. It returns nil after the last page.
func (r Rules) Following(env *expr.Env) (any, error) {
	next, err := r.Next.Eval(env, expr.Budget{})
	if err != nil {
		return nil, expressionFailure("next", err)
	}
	if next == "" || next == false {
		return nil, nil
	}
	return next, nil
}

// Integer returns a number that the schema accepts as an integer.
func Integer(value any) (int, bool) {
	switch n := value.(type) {
	case int:
		return n, true
	case float64:
		return int(n), true
	}
	return 0, false
}

// With returns a copy of an object in which a member is set.
func With(object map[string]any, name string, value any) map[string]any {
	out := make(map[string]any, len(object)+1)
	maps.Copy(out, object)
	out[name] = value
	return out
}

// WithPath returns a copy of an object in which the member at a path such as
// variables.after is set.
func WithPath(object map[string]any, path string, value any) map[string]any {
	name, rest, nested := strings.Cut(path, ".")
	if nested {
		inner, _ := object[name].(map[string]any)
		value = WithPath(inner, rest, value)
	}
	return With(object, name, value)
}

// Failure returns the failure of pages that cannot be followed.
func Failure(message string) error {
	return &action.Failure{Code: Failed, Message: message}
}

func expressionFailure(name string, err error) error {
	failure, ok := errors.AsType[*expr.Error](err)
	if !ok {
		return err
	}
	return &action.Failure{Code: failure.Code, Message: "paginate/" + name + ": " + failure.Error()}
}
