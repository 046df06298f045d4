package graphqlrequest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/pages"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

type pagination struct {
	rules    pages.Rules
	variable string
}

var pageScope = expr.NewScope(map[string][]string{"data": nil, "extensions": nil, "headers": nil, "status": nil, "page": nil})

// parsePagination returns a pagination, and the problems that the schema does not express.
func parsePagination(given map[string]any, of operation) (*pagination, []action.Problem) {
	p := &pagination{}
	var problems []action.Problem
	p.rules, problems = pages.Parse(given, pageScope)
	p.variable, _ = given["variable"].(string)
	p.variable = cmp.Or(p.variable, "after")
	if of.kind == mutation {
		problems = append(problems, action.Problem{Pointer: "/paginate", Message: "needs a query: a mutation cannot be sent page by page"})
	} else if name, _, _ := strings.Cut(p.variable, "."); !slices.Contains(of.variables, name) {
		problems = append(problems, action.Problem{
			Pointer: "/paginate/variable", Message: fmt.Sprintf("the query does not declare the variable $%s", name),
			Hint: fmt.Sprintf("declare it, as in query ($%s: String), and pass it to the field with the pages", name),
		})
	}
	return p, problems
}

// readPage requests the next page. While more follow, the result is a checkpoint.
func readPage(ctx context.Context, client transfer.Client, req action.Request, in input) (action.Result, error) {
	at, err := pages.Open(req, 0)
	if err != nil {
		return action.Result{}, err
	}
	if at.End != nil {
		return at.Finish(ctx, req)
	}
	cursor, err := at.Position()
	if err != nil {
		return action.Result{}, err
	}
	call, err := in.pages.compose(req, at, cursor)
	if err != nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: err.Error()}
	}
	resp, got, err := send(ctx, client, call, req, in)
	if err != nil {
		return action.Result{}, err
	}
	env := &expr.Env{Values: got.output(false), Now: req.Now}
	env.Values["page"] = map[string]any{"number": at.Pages + 1, "cursor": cursor}
	if _, err := at.Read(req, in.pages.rules.Items, env.Values); err != nil {
		return action.Result{}, err
	}
	more, err := in.pages.advance(at, env)
	if err != nil {
		return action.Result{}, err
	}
	return at.Continue(ctx, req, more, in.pages.rules.Max, resp)
}

// compose builds the request for the page at a cursor, nil for the first one.
func (p *pagination) compose(req action.Request, at *pages.Progress, cursor any) (egress.Request, error) {
	if cursor != nil {
		variables, _ := req.Input["variables"].(map[string]any)
		req.Input = maps.Clone(req.Input)
		req.Input["variables"] = pages.WithPath(variables, p.variable, cursor)
	}
	call, err := compose(req)
	if err == nil {
		at.SetKey(&call)
	}
	return call, err
}

// advance moves to the next page. It returns false after the last page.
func (p *pagination) advance(at *pages.Progress, env *expr.Env) (bool, error) {
	more, err := p.rules.Continues(env, true)
	if err != nil || !more {
		return false, err
	}
	next, err := p.rules.Following(env)
	if err != nil || next == nil {
		return false, err
	}
	return true, at.SetCursor(next)
}
