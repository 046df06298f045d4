package httprequest

import (
	"cmp"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
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

// defaultMaxPages limits the pages if max_pages is not given.
const defaultMaxPages = 100

// pagination is the input paginate.
type pagination struct {
	style    style
	items    *expr.Program
	next     *expr.Program // of byCursor and byNextURL
	more     *expr.Program // nil: see continues
	param    string
	inBody   bool
	start    int
	size     int // zero if it is not known
	maxPages int
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
	compile := func(name string) *expr.Program {
		source, ok := given[name].(string)
		if !ok {
			return nil
		}
		program, err := pageScope.Compile(source)
		if err != nil {
			problems = append(problems, action.Problem{Pointer: "/paginate/" + name, Message: err.Error()})
		}
		return program
	}
	p.items, p.next, p.more = compile("items"), compile("next"), compile("more")
	p.param, _ = given["param"].(string)
	p.param = cmp.Or(p.param, string(p.style))
	p.inBody = given["in"] == "body"
	p.start, ok = integer(given["start"])
	if !ok && p.style == byPage {
		p.start = 1
	}
	p.size, _ = integer(given["size"])
	p.maxPages, _ = integer(given["max_pages"])
	p.maxPages = cmp.Or(p.maxPages, defaultMaxPages)
	return p, problems
}

// integer returns a number that the schema accepts as an integer.
func integer(value any) (int, bool) {
	switch n := value.(type) {
	case int:
		return n, true
	case float64:
		return int(n), true
	}
	return 0, false
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
