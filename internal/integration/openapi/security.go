package openapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/egress"
)

type scheme struct {
	name    string
	order   int // in the document
	at      *node
	kind    string // api_key, bearer, basic, digest, oauth2 or client_certificate; "" if connections have none like it
	problem string // why
	in      string // header or query, of an API key
	key     string // the name of the header or parameter
	help    string
}

func (c *converter) readSchemes() {
	c.schemes, c.requirements = map[string]*scheme{}, map[*node]requirement{}
	for _, one := range c.document.root.get("components").get("securitySchemes").members() {
		at := c.document.resolve(one)
		s := &scheme{name: one.name, order: len(c.schemes), at: at, help: plain(at.get("description").string(), maxHelp)}
		s.kind, s.problem = s.classify()
		c.schemes[one.name] = s
	}
}

// findCredentials finds the headers and parameters that connections set: those of the
// schemes that operations require, or of all if none requires any.
func (c *converter) findCredentials(chosen []Operation) {
	required := map[*scheme]bool{}
	for _, o := range chosen {
		for _, one := range c.security(o) {
			if r := c.requirement(one); r.problem == "" {
				for _, s := range r.schemes {
					required[s] = true
				}
			}
		}
	}
	c.credentials = map[string]bool{}
	for _, s := range c.schemes {
		if s.kind == "api_key" && (required[s] || len(required) == 0) {
			c.credentials[s.in+" "+strings.ToLower(s.key)] = true
		}
	}
}

func (s *scheme) classify() (kind, problem string) {
	switch s.at.get("type").string() {
	case "apiKey":
		s.in, s.key = s.at.get("in").string(), s.at.get("name").string()
		switch {
		case s.in == "cookie":
			return "", "connections have no cookies"
		case s.key == "" || len(s.key) > 200 || !isClean(s.key) || isExpression(s.key), s.in != "header" && s.in != "query":
			return "", "it needs a name, and to be in a header or the query"
		case s.in == "header" && !isHeader(s.key):
			return "", fmt.Sprintf("a connection cannot set the header %q", s.key)
		}
		return "api_key", ""
	case "http":
		switch strings.ToLower(s.at.get("scheme").string()) {
		case "bearer":
			return "bearer", ""
		case "basic":
			return "basic", ""
		case "digest":
			return "digest", ""
		}
		return "", "connections do not have this scheme of HTTP authentication"
	case "oauth2":
		flows := s.at.get("flows")
		if flows.get("authorizationCode") == nil && flows.get("clientCredentials") == nil {
			return "", "connections have the flows authorizationCode and clientCredentials only"
		}
		return "oauth2", ""
	case "mutualTLS":
		return "client_certificate", ""
	case "openIdConnect":
		return "", "a manifest names the endpoints of OAuth 2, which OpenID Connect publishes elsewhere: add an entry of the kind oauth2 by hand"
	}
	return "", "its type is unknown"
}

// isHeader reports whether a manifest can set a header.
func isHeader(name string) bool {
	return egress.CheckHeader(name) == nil && !strings.HasPrefix(strings.ToLower(name), "x-service-") && len(name) <= 200
}

// maxAlternatives is the most alternatives, schemes, scopes and media types of an operation
// that count.
const maxAlternatives = 50

// security returns what an operation requires: alternatives of schemes that belong
// together. None means that it requires nothing.
func (c *converter) security(o Operation) []*node {
	own := o.at.get("security")
	if own == nil {
		own = c.document.root.get("security")
	}
	return firstOf(own.list())
}

// firstOf returns the elements of a list that count. Longer ones are made to cost time,
// because many operations can share them.
func firstOf(list []*node) []*node { return list[:min(len(list), maxAlternatives)] }

// requirement is a set of schemes that belong together, and their scopes.
type requirement struct {
	at      *node
	schemes []*scheme
	scopes  []string
	problem string // why no connection has it
}

// requirement reads a requirement. Many operations can share one.
func (c *converter) requirement(at *node) requirement {
	known, ok := c.requirements[at]
	if !ok {
		known.at = at
		known.problem = c.readRequirement(&known)
		c.requirements[at] = known
	}
	return known
}

func (c *converter) readRequirement(out *requirement) (problem string) {
	for _, member := range firstOf(out.at.members()) {
		s := c.schemes[member.name]
		switch {
		case s == nil:
			return fmt.Sprintf("there is no security scheme %q", clip(member.name, 60))
		case s.kind == "":
			return fmt.Sprintf("connections cannot have the security scheme %q: %s", clip(member.name, 60), s.problem)
		}
		out.schemes = append(out.schemes, s)
		for _, scope := range firstOf(member.list()) {
			if text := scope.string(); isScope(text) && len(out.scopes) < maxAlternatives && !slices.Contains(out.scopes, text) {
				out.scopes = append(out.scopes, text)
			}
		}
	}
	// The same schemes in another order are the same requirement.
	slices.SortFunc(out.schemes, func(x, y *scheme) int { return cmp.Compare(x.order, y.order) })
	seen := map[string]bool{}
	for _, s := range out.schemes {
		place := strings.ToLower(s.in + " " + s.key)
		if s.kind == "bearer" || s.kind == "basic" {
			place = "header authorization"
		}
		if seen[place] {
			return "these security schemes use the same header or parameter"
		}
		seen[place] = true
	}
	if len(out.schemes) > 1 && slices.ContainsFunc(out.schemes, func(s *scheme) bool { return !slices.Contains([]string{"api_key", "bearer", "basic"}, s.kind) }) {
		return "connections cannot combine these security schemes"
	}
	return ""
}

func isScope(text string) bool {
	return text != "" && len(text) <= 200 && isClean(text) && !strings.ContainsAny(text, " ") && !isExpression(text)
}

// checkSecurity returns why no connection can be used for an operation, or "".
func (c *converter) checkSecurity(o Operation) string {
	problem := ""
	for _, one := range c.security(o) {
		if problem = c.requirement(one).problem; problem == "" {
			return ""
		}
	}
	return problem
}
