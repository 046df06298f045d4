package integration

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
)

// place is where a call stands in a manifest, which decides what it can read.
type place struct {
	names variables
	// roots are the names that the call can read beside the connection; nil for the test
	// of a connection.
	roots map[string][]string
}

func (w place) scope(more ...string) *expr.Scope {
	roots := maps.Clone(w.roots)
	if roots == nil {
		roots = map[string][]string{}
	}
	for _, name := range more {
		roots[name] = nil
	}
	return w.names.scope(roots)
}

// answerScope returns the scope of what looks at the answer.
func (w place) answerScope(more ...string) *expr.Scope {
	return w.scope(append(more, "status", "headers", "body", "link")...)
}

func (p *parser) call(pointer string, c *manifestCall, where place) *Call {
	request, answer := where.of(c)
	scope := request.scope()
	out := &Call{
		ID: c.ID, If: p.condition(at(pointer, "if"), c.If, scope),
		Method: c.Method, NoAuth: c.Auth != "", GraphQL: c.GraphQL,
		Path:      p.path(at(pointer, "path"), c.Path, scope),
		URL:       p.callURL(at(pointer, "url"), c, request),
		Query:     p.object(at(pointer, "query"), c.Query, scope),
		Headers:   p.callHeaders(at(pointer, "headers"), c.Headers, scope),
		JSON:      p.optionalValue(at(pointer, "json"), c.JSON, scope),
		Form:      p.object(at(pointer, "form"), c.Form, scope),
		Multipart: p.object(at(pointer, "multipart"), c.Multipart, scope),
		Raw:       p.optionalValue(at(pointer, "raw"), c.Raw, scope),
		Variables: p.object(at(pointer, "variables"), c.Variables, scope),
	}
	switch {
	case (c.Path == "") == (c.URL == ""):
		p.failf(pointer, "needs either a path or a url")
	case c.Path != "" && !p.base:
		p.failf(at(pointer, "path"), "needs a base_url: add one, or use url")
	}
	hasBody := p.checkBody(pointer, c)
	if out.Method == "" {
		out.Method = http.MethodGet
		if hasBody {
			out.Method = http.MethodPost
		}
	}
	p.oneOf(at(pointer, "method"), out.Method, methods())
	if c.Auth != "" {
		p.oneOf(at(pointer, "auth"), c.Auth, callAuths())
	}
	p.answer(pointer, c, out, answer)
	out.Chunk = p.chunk(pointer, c, where, answer, out.Errors)
	return out
}

// of returns the place with the names that the call itself provides, for its request and
// for what looks at the answer.
func (w place) of(c *manifestCall) (request, answer place) {
	roots := maps.Clone(w.roots)
	if c.Page != nil && roots != nil {
		roots["page"] = []string{"cursor", "number", "offset", "size"}
	}
	if c.Batch != nil && roots != nil {
		roots["batch"] = nil
	}
	request, answer = place{w.names, roots}, place{w.names, roots}
	if c.Chunk != nil && roots != nil {
		answer.roots = maps.Clone(roots)
		answer.roots["chunk"] = chunkPosition()
		request.roots = maps.Clone(roots)
		request.roots["chunk"] = append(chunkPosition(), "data")
	}
	return request, answer
}

// checkBody reports more than one body, and returns whether there is one.
func (p *parser) checkBody(pointer string, c *manifestCall) bool {
	var bodies []string
	for name, given := range map[string]bool{
		"json": c.JSON != nil, "form": c.Form != nil, "multipart": c.Multipart != nil, "raw": c.Raw != nil, "graphql": c.GraphQL != "",
	} {
		if given {
			bodies = append(bodies, name)
		}
	}
	if len(bodies) > 1 {
		slices.Sort(bodies)
		p.failf(pointer, "has %s: a request has one body", strings.Join(bodies, " and "))
	}
	if c.Variables != nil && c.GraphQL == "" {
		p.failf(at(pointer, "variables"), "belongs to graphql, which is missing")
	}
	return len(bodies) > 0
}

func (p *parser) answer(pointer string, c *manifestCall, out *Call, where place) {
	answer := where.answerScope()
	if out.Response = cmp.Or(c.Response, ResponseJSON); where.roots != nil {
		p.oneOf(at(pointer, "response"), out.Response, Responses())
	}
	p.files(pointer, c, out, answer)
	out.Items = p.program(at(pointer, "items"), c.Items, answer)
	withItems := where.answerScope("items")
	if c.Page != nil {
		page := at(pointer, "page")
		out.Page = &Page{
			Next: p.program(at(page, "next"), c.Page.Next, withItems), NextURL: p.program(at(page, "next_url"), c.Page.NextURL, withItems),
			More: p.program(at(page, "more"), c.Page.More, withItems), Size: c.Page.Size,
		}
		switch {
		case c.Items == "":
			p.failf(page, "needs items: the list in an answer")
		case c.Page.Next != "" && c.Page.NextURL != "":
			p.failf(page, "has next and next_url: remove one of them")
		case c.Batch != nil:
			p.failf(page, "cannot be combined with batch")
		}
	}
	if c.Batch != nil {
		batch := at(pointer, "batch")
		out.Batch = &Batch{Of: p.program(at(batch, "of"), c.Batch.Of, where.scope()), Size: c.Batch.Size}
		if c.Batch.Of == "" || c.Batch.Size < 1 {
			p.failf(batch, "needs of, a list, and size, the most items of a request")
		}
	}
	p.idempotency(at(pointer, "idempotency"), c, out, where)
	for i, rule := range c.Errors {
		out.Errors = append(out.Errors, p.errorRule(at(pointer, "errors", strconv.Itoa(i)), rule, answer))
	}
	out.Output = p.optionalValue(at(pointer, "output"), c.Output, withItems)
	if where.roots == nil {
		p.checkTestCall(pointer, c)
	}
}

// operationMembers returns the members that only a call of an operation can have, and
// whether they are given.
func operationMembers(c *manifestCall) map[string]bool {
	return map[string]bool{
		"id": c.ID != "", "if": c.If != "", "auth": c.Auth != "", "multipart": c.Multipart != nil, "raw": c.Raw != nil, "response": c.Response != "",
		"file_name": c.FileName != "", "blobs": c.Blobs != nil, "items": c.Items != "", "page": c.Page != nil, "batch": c.Batch != nil, "chunk": c.Chunk != nil, "idempotency": c.Idempotency != nil,
		"on_unknown": c.OnUnknown != "", "output": c.Output != nil,
	}
}

func (p *parser) checkTestCall(pointer string, c *manifestCall) {
	for name, given := range operationMembers(c) {
		if given {
			p.failf(at(pointer, name), "is a member of operations, which the test of a connection does not have")
		}
	}
}

// idempotency compiles what a repeated request does. By default the method decides.
func (p *parser) idempotency(pointer string, c *manifestCall, out *Call, where place) {
	out.Idempotency.Safe = slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}, out.Method)
	if given := c.Idempotency; given != nil {
		out.Idempotency = Idempotency{Safe: given.word == "safe"}
		switch {
		case given.word != "":
			p.oneOf(pointer, given.word, idempotencyWords())
		case (given.Remembered == "") == (given.Find == nil):
			p.failf(pointer, "must be safe, none, {remembered: duration} or {find: call}")
		case given.Find != nil:
			out.Idempotency.Find = p.call(at(pointer, "find"), given.Find, where)
			if given.Find.Output == nil {
				p.failf(at(pointer, "find", "output"), "is required: what the earlier request has made, or nil")
			}
		default:
			out.Idempotency.Remembered = p.duration(at(pointer, "remembered"), given.Remembered)
		}
	}
	if out.OnUnknown = cmp.Or(c.OnUnknown, Repeat); out.OnUnknown != Repeat {
		p.oneOf(at(pointer, "on_unknown"), out.OnUnknown, unknownOutcomes())
	}
}

func (p *parser) duration(pointer, text string) time.Duration {
	d, err := clock.ParseDuration(text)
	if err != nil {
		p.failf(pointer, "%s", err)
	}
	return d
}

// program compiles a bare expression. An empty one is nil.
func (p *parser) program(pointer, source string, scope *expr.Scope) *expr.Program {
	if source == "" {
		return nil
	}
	p.noteBare(pointer, source)
	compiled, err := scope.Compile(source)
	if err != nil {
		p.invalid(pointer, source, err)
	}
	return compiled
}

func (p *parser) condition(pointer, source string, scope *expr.Scope) Condition {
	return Condition{p.program(pointer, source, scope)}
}

func (p *parser) callHeaders(pointer string, source any, scope *expr.Scope) *Value {
	texts := map[string]string{}
	given, _ := source.(map[string]any)
	for name, value := range given {
		texts[name], _ = value.(string)
	}
	for name, problem := range headerProblems(texts) {
		p.failf(at(pointer, name), "%s", problem)
	}
	return p.object(pointer, source, scope)
}

// callURL compiles the URL of a call. Without the credential it can only be what an
// answer has given.
func (p *parser) callURL(pointer string, c *manifestCall, where place) Template {
	if c.Auth == "" {
		return p.anyURL(pointer, c.URL, where.scope())
	}
	out := p.template(pointer, c.URL, where.scope(), nil)
	if expressionLength(c.URL) != len(c.URL) || !out.Reads("results") {
		p.failf(pointer, "without the credential, it must be one expression that reads results: the address that an earlier call has got")
	}
	return out
}

func (p *parser) errorRule(pointer string, r manifestErrorRule, scope *expr.Scope) ErrorRule {
	out := ErrorRule{
		When: p.condition(at(pointer, "when"), r.When, scope), Kind: r.Kind,
		Code:       p.template(at(pointer, "code"), r.Code, scope, nil),
		Message:    p.template(at(pointer, "message"), r.Message, scope, nil),
		RetryAfter: p.template(at(pointer, "retry_after"), r.RetryAfter, scope, nil),
	}
	p.require(at(pointer, "when"), r.When)
	if r.Kind != "" {
		p.oneOf(at(pointer, "kind"), r.Kind, errorKinds())
	}
	return out
}

// anyURL compiles a URL of the API. It can start with an expression, because calls
// go to the hosts of the connection only.
func (p *parser) anyURL(pointer, source string, scope *expr.Scope) Template {
	if strings.HasPrefix(source, "${{") {
		return p.template(pointer, source, scope, expr.EscapeURL)
	}
	out := p.httpsURL(pointer, source, scope)
	if host := authority(source); host != "" && !slices.Contains(p.hosts, host) {
		p.failf(pointer, "its host %s is not in the hosts of the connection: add it", host)
	}
	return out
}

// serverURL compiles a URL of the authorization server, which receives the client
// secret. Its host must be built from literals and checked fields.
func (p *parser) serverURL(pointer, source string, names variables) Template {
	out := p.httpsURL(pointer, source, names.scope(nil))
	if out.IsZero() {
		return out
	}
	host := p.template(pointer, authority(source), names.scope(nil), nil)
	for _, name := range host.Variables() {
		if slices.Contains(names.unchecked, name) {
			p.failf(pointer, "its host reads connection.%s, which can have any value: give the field an enum, a pattern or the format host or host_label", name)
		}
	}
	return out
}

// httpsURL compiles a URL that starts with https://.
func (p *parser) httpsURL(pointer, source string, scope *expr.Scope) Template {
	if source == "" {
		return Template{}
	}
	if !isHost(withoutExpressions(authority(source))) {
		p.failf(pointer, "must be an https URL with a host in lower case")
		return Template{}
	}
	return p.template(pointer, source, scope, expr.EscapeURL)
}

func (p *parser) host(pointer string, h manifestHost) Host {
	out := Host{Name: p.template(pointer, h.Host, p.shared.scope(nil), nil), Within: h.Within}
	if !isHost(withoutExpressions(h.Host)) {
		p.failf(pointer, "%q is not a host name in lower case", h.Host)
	}
	for i, domain := range h.Within {
		if !isHostName(domain) || !strings.Contains(domain, ".") {
			p.failf(at(pointer, "within", strconv.Itoa(i)), "%q is not a domain in lower case", domain)
		}
	}
	for _, name := range out.Name.Variables() {
		if h.Within == nil && slices.Contains(p.shared.unchecked, name) {
			p.failf(pointer, "connection.%s can have any value: write {host: …, within: [domain]}", name)
		}
	}
	return out
}

// withoutExpressions replaces every expression in a text by a letter.
func withoutExpressions(text string) string {
	return replaceExpressions(text, func(string) string { return "x" })
}
