package openapi

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
)

// setAuth adds a way to authenticate for each set of schemes that an operation accepts.
func (c *converter) setAuth() {
	var found []requirement
	added := map[*node]bool{}
	add := func(list []*node) {
		for _, one := range list {
			if added[one] {
				continue
			}
			added[one] = true
			r := c.requirement(one)
			if r.problem != "" {
				c.note(one, r.problem)
				continue
			}
			i := slices.IndexFunc(found, func(f requirement) bool { return slices.Equal(f.schemes, r.schemes) })
			if i < 0 && len(found) < maxAlternatives {
				found = append(found, r)
			}
			if i < 0 {
				continue
			}
			for _, scope := range r.scopes {
				if len(found[i].scopes) < maxAlternatives && !slices.Contains(found[i].scopes, scope) {
					found[i].scopes = append(found[i].scopes, scope)
				}
			}
		}
	}
	for _, o := range c.operations {
		add(c.security(o.Operation))
	}
	found = slices.DeleteFunc(found, func(r requirement) bool { return len(r.schemes) == 0 })
	if len(found) == 0 {
		found = c.undemanded()
	}
	used := names{}
	for _, r := range found {
		if len(c.auth) >= maxAuth {
			c.note(r.at, fmt.Sprintf("a way to authenticate is left out: the manifest has %d already", maxAuth))
			continue
		}
		c.addAuth(r, used)
	}
	if len(c.auth) > 1 {
		c.note(c.document.root.get("components").get("securitySchemes"), "a connection authenticates in one way, and some operations may not accept it: see the document")
	}
	if len(c.auth) == 0 {
		c.auth = []object{withoutCredential()}
		c.note(c.document.root.get("components").get("securitySchemes"), "no operation requires a credential that a connection can have: the manifest has an API key that can be left empty")
	}
}

// undemanded returns the schemes of a document that has some, but whose operations require
// none of them.
func (c *converter) undemanded() []requirement {
	var out []requirement
	for _, one := range c.document.root.get("components").get("securitySchemes").members() {
		s := c.schemes[one.name]
		if s.kind == "" {
			c.note(one, "the security scheme is left out: "+s.problem)
			continue
		}
		out = append(out, requirement{at: one, schemes: []*scheme{s}})
		c.note(one, "no operation requires this security scheme: it is offered all the same")
	}
	return out
}

// withoutCredential is the way to authenticate at a service that requires nothing.
func withoutCredential() object {
	return object{
		{"kind", "api_key"},
		{"label", "API key, if there is one"},
		{"fields", object{{"key", object{{"title", "API key"}, {"help", "Leave this empty: the API is described as one that needs no key. What you enter is sent in the header X-Api-Key."}, {"secret", true}, {"optional", true}}}}},
		{"apply", object{{"headers", object{{"X-Api-Key", "${{ secret.key }}"}}}}},
	}
}

func (c *converter) addAuth(r requirement, used names) {
	first := r.schemes[0]
	if first.kind == "oauth2" {
		c.addOAuth(r, used)
		return
	}
	kind := first.kind
	if len(r.schemes) > 1 {
		kind = "api_key"
	}
	var labels []string
	for _, s := range r.schemes {
		labels = append(labels, cmp.Or(title(s.name), "Credential"))
	}
	entry := object{{"id", used.unique(identifier(first.name, "auth"))}, {"kind", kind}, {"label", plain(strings.Join(labels, " and "), maxTitle)}}
	entry.set("help", first.help)
	if kind == "api_key" {
		fields, apply := c.applied(r.schemes)
		entry.set("fields", fields)
		entry.set("apply", apply)
	}
	c.auth = append(c.auth, entry)
}

// applied returns the fields of schemes, and where their values go.
func (c *converter) applied(schemes []*scheme) (fields, apply object) {
	var headers, query, basic object
	used := names{}
	for _, taken := range c.base.fields {
		used[taken.name] = 1
	}
	field := func(name, label, help string, secret bool) string {
		if name == integration.Label || name == integration.Account {
			name += "_key" // those are what a connection learns
		}
		name = used.unique(name)
		described := object{{"title", label}}
		described.set("help", help)
		described.set("secret", secret)
		fields.set(name, described)
		return name
	}
	for _, s := range schemes {
		name, help := "key", ""
		if len(schemes) > 1 {
			name, help = identifier(s.name, "key"), s.help
		}
		label := cmp.Or(title(s.name), "API key")
		switch {
		case s.kind == "basic":
			user, password := field("username", "User name", help, false), field("password", "Password", "", true)
			basic = object{{"user", "${{ connection." + user + " }}"}, {"password", "${{ secret." + password + " }}"}}
		case s.kind == "bearer":
			headers.set("Authorization", "Bearer ${{ secret."+field(name, label, help, true)+" }}")
		case s.in == "header":
			headers.set(s.key, "${{ secret."+field(name, label, help, true)+" }}")
		default:
			query.set(s.key, "${{ secret."+field(name, label, help, true)+" }}")
		}
	}
	apply.set("headers", headers)
	apply.set("query", query)
	apply.set("basic", basic)
	return fields, apply
}

// maxAllScopes is the most scopes that are asked for if no operation requires any.
const maxAllScopes = 10

func (c *converter) addOAuth(r requirement, used names) {
	s := r.schemes[0]
	for _, name := range []string{"authorizationCode", "clientCredentials"} {
		flow := s.at.get("flows").get(name)
		if flow == nil {
			continue
		}
		authorize, isURL := c.endpoint(flow.get("authorizationUrl"))
		token, hasToken := c.endpoint(flow.get("tokenUrl"))
		if !hasToken || name == "authorizationCode" && !isURL {
			c.note(flow, "this flow is left out: its endpoints must be https URLs without variables")
			continue
		}
		entry := object{{"id", used.unique(identifier(s.name, "oauth"))}, {"kind", "oauth2"}}
		if name == "authorizationCode" {
			entry = append(entry, member{"label", "Sign in with " + c.name}, member{"help", cmp.Or(s.help, "Register an OAuth app at the service.")}, member{"authorize_url", authorize})
		} else {
			entry.set("label", "Client credentials")
			entry.set("help", s.help)
		}
		entry.set("token_url", token)
		entry.set("client_auth", "basic")
		c.note(flow, "a document does not say where the client id and secret go: they are sent in a header (client_auth: basic). Use body if the service wants them there")
		entry.set("scopes", c.scopes(r, flow))
		c.auth = append(c.auth, entry)
	}
	for _, flow := range s.at.get("flows").members() {
		if flow.name != "authorizationCode" && flow.name != "clientCredentials" && !strings.HasPrefix(flow.name, "x-") {
			c.note(flow, "this flow is left out: connections have authorizationCode and clientCredentials only")
		}
	}
}

func (c *converter) scopes(r requirement, flow *node) []string {
	var known []string
	for _, scope := range flow.get("scopes").members() {
		if isScope(scope.name) {
			known = append(known, scope.name)
		}
	}
	out := slices.DeleteFunc(slices.Clone(r.scopes), func(scope string) bool { return len(known) > 0 && !slices.Contains(known, scope) })
	if len(out) == 0 && len(known) <= maxAllScopes {
		return known
	}
	if len(out) == 0 {
		c.note(flow, "no operation says which scopes it requires: add the ones that you need to scopes")
	}
	if slices.Contains(known, "offline_access") && !slices.Contains(out, "offline_access") {
		out = append(out, "offline_access")
	}
	return out
}

// endpoint returns the URL of an endpoint, which can be relative to the server.
func (c *converter) endpoint(at *node) (string, bool) {
	text := at.string()
	if text == "" || len(text) > 500 || !isClean(text) || strings.ContainsAny(text, "{}\\ ") {
		return "", false
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", false
	}
	if base, err := url.Parse(c.base.text); u.Host == "" && err == nil && c.base.first == "" {
		u = base.ResolveReference(u)
	}
	u.Host = strings.ToLower(u.Host)
	if u.Scheme != "https" || u.User != nil || u.Fragment != "" || !isHostName(u.Host) {
		return "", false
	}
	return u.String(), true
}
