package integration

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
)

// errorKinds are what an answer can mean. See docs/integrations.md.
func errorKinds() []string {
	return []string{
		"rate_limited", "unavailable", "reconnect", "none",
		"invalid", "denied", "not_found", "conflict", "failed",
	}
}

// call compiles a request to the service.
func (p *parser) call(pointer string, c *manifestCall, names variables) *Call {
	scope := names.scope(nil)
	out := &Call{
		Method: c.Method, GraphQL: c.GraphQL,
		Path:    p.template(at(pointer, "path"), c.Path, scope, escapePath),
		URL:     p.anyURL(at(pointer, "url"), c.URL, names),
		Query:   p.templates(at(pointer, "query"), c.Query, scope),
		Headers: p.headers(at(pointer, "headers"), c.Headers, scope),
	}
	switch {
	case (c.Path == "") == (c.URL == ""):
		p.failf(pointer, "needs either a path or a url")
	case c.Path != "" && !p.base:
		p.failf(at(pointer, "path"), "needs a base_url: add one, or use url")
	case c.Path != "" && !strings.HasPrefix(c.Path, "/"):
		p.failf(at(pointer, "path"), "must start with a slash")
	}
	if c.JSON != nil {
		compiled, err := scope.CompileValue(c.JSON)
		if err != nil {
			p.failf(at(pointer, "json"), "%s", message(err))
		}
		out.JSON = &Value{compiled}
	}
	if c.JSON != nil && c.GraphQL != "" {
		p.failf(pointer, "has json and graphql: remove one of them")
	}
	if out.Method == "" {
		out.Method = http.MethodGet
		if c.JSON != nil || c.GraphQL != "" {
			out.Method = http.MethodPost
		}
	}
	p.oneOf(at(pointer, "method"), out.Method, []string{"GET", "POST", "PUT", "PATCH", "DELETE"})
	for i, rule := range c.Errors {
		out.Errors = append(out.Errors, p.errorRule(at(pointer, "errors", strconv.Itoa(i)), rule, names))
	}
	return out
}

func (p *parser) errorRule(pointer string, r manifestErrorRule, names variables) ErrorRule {
	scope := names.scope(map[string][]string{"status": nil, "headers": nil, "body": nil})
	out := ErrorRule{
		Kind:    r.Kind,
		Code:    p.template(at(pointer, "code"), r.Code, scope, nil),
		Message: p.template(at(pointer, "message"), r.Message, scope, nil),
	}
	condition, err := scope.Compile(r.When)
	if err != nil {
		p.failf(at(pointer, "when"), "%s", message(err))
	}
	out.When = Condition{condition}
	p.oneOf(at(pointer, "kind"), r.Kind, errorKinds())
	return out
}

// escapePath escapes text inserted into a path, which stays one segment.
func escapePath(before, text string) string { return expr.EscapeURL("/"+before, text) }

// anyURL compiles a URL of the API. It can start with an expression, because calls
// go to the hosts of the connection only.
func (p *parser) anyURL(pointer, source string, names variables) Template {
	if strings.HasPrefix(source, "${{") {
		return p.template(pointer, source, names.scope(nil), expr.EscapeURL)
	}
	out := p.httpsURL(pointer, source, names)
	if host := authority(source); host != "" && !slices.Contains(p.hosts, host) {
		p.failf(pointer, "its host %s is not in the hosts of the connection: add it", host)
	}
	return out
}

// serverURL compiles a URL of the authorization server, which receives the client
// secret. Its host must be built from literals and checked fields.
func (p *parser) serverURL(pointer, source string, names variables) Template {
	out := p.httpsURL(pointer, source, names)
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
func (p *parser) httpsURL(pointer, source string, names variables) Template {
	if source == "" {
		return Template{}
	}
	if !isHost(withoutExpressions(authority(source))) {
		p.failf(pointer, "must be an https URL with a host in lower case")
		return Template{}
	}
	return p.template(pointer, source, names.scope(nil), expr.EscapeURL)
}

// host compiles a host of the connection.
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
