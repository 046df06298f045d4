package httprequest

import (
	"cmp"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/pages"
	"github.com/stepmill/stepmill/internal/expr"
)

// style is how the next page of a list is requested.
type style string

// The styles.
const (
	byCursor  style = "cursor"   // a value of the response, sent as a parameter
	byPage    style = "page"     // a page number
	byOffset  style = "offset"   // the number of items before the page
	byLink    style = "link"     // the URL in the header Link
	byNextURL style = "next_url" // a URL in the response
)

type pagination struct {
	style  style
	rules  pages.Rules
	param  string
	inBody bool
	start  int
	size   int // zero if it is not known
}

// pageScope has the names that the expressions of paginate can use.
var pageScope = expr.NewScope(map[string][]string{"body": nil, "headers": nil, "status": nil, "page": nil})

// parsePagination returns the pagination of an input, or nil if it has none, and the
// problems that the schema does not express.
func parsePagination(with map[string]any) (*pagination, []action.Problem) {
	given, ok := with["paginate"].(map[string]any)
	if !ok {
		return nil, nil
	}
	p := &pagination{}
	text, _ := given["style"].(string)
	p.style = style(text)
	problems := p.checkMembers(given)
	rules, found := pages.Parse(given, pageScope)
	p.rules, problems = rules, append(problems, found...)
	p.param, _ = given["param"].(string)
	p.param = cmp.Or(p.param, string(p.style))
	p.inBody = given["in"] == "body"
	p.start, ok = pages.Integer(given["start"])
	if !ok && p.style == byPage {
		p.start = 1
	}
	p.size, _ = pages.Integer(given["size"])
	return p, problems
}

// checkMembers reports members that the style needs or does not have.
func (p *pagination) checkMembers(given map[string]any) []action.Problem {
	if !slices.Contains([]style{byCursor, byPage, byOffset, byLink, byNextURL}, p.style) {
		return nil // an expression
	}
	var problems []action.Problem
	report := func(name, message string) {
		problems = append(problems, action.Problem{Pointer: "/paginate/" + name, Message: message})
	}
	hasNext := p.style == byCursor || p.style == byNextURL
	if _, ok := given["next"]; hasNext && !ok {
		report("next", "is required for the style "+string(p.style))
	}
	for _, rule := range []struct {
		name   string
		styles []style
	}{
		{"next", []style{byCursor, byNextURL}},
		{"param", []style{byCursor, byPage, byOffset}},
		{"in", []style{byCursor, byPage, byOffset}},
		{"start", []style{byPage, byOffset}},
		{"size", []style{byPage, byOffset}},
	} {
		if _, ok := given[rule.name]; ok && !slices.Contains(rule.styles, p.style) {
			report(rule.name, "cannot be used with the style "+string(p.style))
		}
	}
	return problems
}
