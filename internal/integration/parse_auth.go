package integration

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// auth compiles an entry of auth. The connection has what all entries share.
func (p *parser) auth(pointer string, m *manifest, a *manifestAuth, fields []Field, shared Connection) Auth {
	k, ok := findKind(a.Kind)
	if !ok {
		p.oneOf(at(pointer, "kind"), a.Kind, Kinds())
		return Auth{ID: cmp.Or(a.ID, pointer)}
	}
	p.members(pointer, k, a.members)
	if a.ID != "" && !identifier.MatchString(a.ID) {
		p.failf(at(pointer, "id"), "must have lower-case letters, digits and underscores and start with a letter")
	}
	if secrets := countSecrets(slices.Concat(p.fields, fields)); secrets > MaxSecrets {
		p.failf(at(pointer, "fields"), "a connection has at most %d secret fields, not %d", MaxSecrets, secrets)
	}
	names := p.authVariables(m, a, fields)
	out := Auth{
		ID: cmp.Or(a.ID, a.Kind), Kind: a.Kind, Label: a.Label, Help: a.Help, Service: a.Service,
		Fields: fields, AppFields: p.parseFields(at(pointer, "app_fields"), a.AppFields),
		Test: shared.Test, Learn: map[string]Template{},
	}
	out.Apply = p.apply(at(pointer, "apply"), cmp.Or(a.Apply, k.apply), names)
	if a.Test != nil {
		out.Test = p.call(at(pointer, "test"), a.Test, place{names: names})
	}
	if out.Test == nil {
		p.failf(pointer, "a connection needs a test: add one here or to the connection")
	}
	maps.Copy(out.Learn, shared.Learn)
	maps.Copy(out.Learn, p.learn(at(pointer, "learn"), a.Learn, names))
	p.stages(pointer, fields, out.Learn)
	if out.Learn[Label].IsZero() {
		p.failf(pointer, "a connection needs a label: add it to learn here or of the connection")
	}
	if k.hasToken {
		p.token(pointer, a, names, &out)
	}
	if out.Label == "" && out.NeedsConsent() {
		out.Label = "Sign in with " + m.Name
	}
	p.require(at(pointer, "label"), out.Label)
	return out
}

func countSecrets(fields []Field) int {
	count := 0
	for _, f := range fields {
		if f.Secret {
			count++
		}
	}
	return count
}

func (p *parser) members(pointer string, k kind, given []string) {
	allowed := k.allowed()
	for _, name := range given {
		if !slices.Contains(allowed, name) {
			p.failf(at(pointer, name), "does not belong to an entry of the kind %s: remove it", k.name)
		}
	}
	for _, name := range k.required {
		if !slices.Contains(given, name) {
			p.failf(at(pointer, name), "is required for the kind %s", k.name)
		}
	}
}

// apply compiles where a credential goes.
func (p *parser) apply(pointer string, a *manifestApply, names variables) Apply {
	if a == nil {
		return Apply{}
	}
	scope := names.applyScope()
	out := Apply{
		Headers: p.headers(at(pointer, "headers"), a.Headers, scope),
		Query:   p.templates(at(pointer, "query"), a.Query, scope),
		Path:    p.template(at(pointer, "path"), a.Path, scope, nil),
	}
	if a.Basic != nil {
		if problem := userProblem(a.Basic.User); problem != "" {
			p.failf(at(pointer, "basic", "user"), "%s", problem)
		}
		out.Basic = &Basic{
			User:     p.template(at(pointer, "basic", "user"), a.Basic.User, scope, nil),
			Password: p.template(at(pointer, "basic", "password"), a.Basic.Password, scope, nil),
		}
	}
	if len(a.Headers)+len(a.Query) == 0 && a.Basic == nil && a.Path == "" {
		p.failf(pointer, "says nothing: use headers, query, basic or path")
	}
	if a.Path != "" && !p.outline && !bytes.Contains(p.document.JSON, []byte(AuthSegment)) {
		p.failf(at(pointer, "path"), "needs %s in base_url or in paths, which it replaces", AuthSegment)
	}
	return out
}

// userProblem reports why a template cannot be the user of basic authentication, or "".
func userProblem(source string) string { return UserProblem(withoutExpressions(source)) }

// UserProblem reports why basic authentication cannot transmit a user name, or "".
func UserProblem(user string) string {
	if strings.Contains(user, ":") {
		return "must not contain a colon, which separates the user name from the password"
	}
	return ""
}

// token compiles the members about tokens.
func (p *parser) token(pointer string, a *manifestAuth, names variables, out *Auth) {
	out.TokenURL = p.serverURL(at(pointer, "token_url"), a.TokenURL, names)
	out.hostField = p.hostField(a.TokenURL, out.Fields)
	for i, scope := range a.Scopes {
		if scope == "" || slices.Contains(a.Scopes[:i], scope) {
			p.failf(at(pointer, "scopes", strconv.Itoa(i)), "is empty or repeated")
		}
	}
	out.Scopes, out.ScopeSeparator, out.ScopeParam = a.Scopes, cmp.Or(a.ScopeSeparator, " "), cmp.Or(a.ScopeParam, "scope")
	if a.Kind != OAuth2 {
		return
	}
	scope := names.scope(nil)
	out.AuthorizeURL = p.serverURL(at(pointer, "authorize_url"), a.AuthorizeURL, names)
	out.RevokeURL = p.serverURL(at(pointer, "revoke_url"), a.RevokeURL, names)
	p.sameHostField(at(pointer, "revoke_url"), a.RevokeURL, out)
	out.Params = p.templates(at(pointer, "params"), a.Params, scope)
	out.TokenParams = p.templates(at(pointer, "token_params"), a.TokenParams, scope)
	out.ClientAuth, out.TokenBody = a.ClientAuth, cmp.Or(a.TokenBody, "form")
	out.RevokeBody, out.RevokeParam = cmp.Or(a.RevokeBody, out.TokenBody), cmp.Or(a.RevokeParam, "token")
	out.PKCE = a.AuthorizeURL != "" && (a.PKCE == nil || *a.PKCE)
	out.TokenAt, out.Refusals = a.TokenAt, a.Refusals
	if a.ClientAuth != "" {
		p.oneOf(at(pointer, "client_auth"), a.ClientAuth, clientAuths())
	}
	p.oneOf(at(pointer, "token_body"), out.TokenBody, tokenBodies())
	p.oneOf(at(pointer, "revoke_body"), out.RevokeBody, tokenBodies())
	if a.AuthorizeURL == "" && (a.Params != nil || a.PKCE != nil || a.ScopeParam != "") {
		p.failf(pointer, "params, pkce and scope_param belong to an authorize_url: without one, use token_params")
	}
	if a.RevokeURL == "" && a.RevokeBody+a.RevokeParam != "" {
		p.failf(pointer, "revoke_body and revoke_param belong to a revoke_url")
	}
	if a.Exchange != nil {
		p.exchange(at(pointer, "exchange"), a.Exchange, names, out)
	}
}

// hostField returns the field that is the whole host of a URL, or "".
func (p *parser) hostField(source string, fields []Field) string {
	host := loneVariable(authority(source))
	if slices.ContainsFunc(slices.Concat(p.fields, fields), func(f Field) bool { return f.Name == host && f.Format == FormatHost }) {
		return host
	}
	return ""
}

// sameHostField checks a URL beside the token URL that receives the client secret: if
// whoever connects chooses its host, then by the same field.
func (p *parser) sameHostField(pointer, source string, out *Auth) {
	if field := p.hostField(source, out.Fields); field != "" && field != out.hostField {
		p.failf(pointer, "its host is chosen with connection.%s, unlike that of token_url: the client secret could be sent anywhere", field)
	}
}

func (p *parser) exchange(pointer string, e *manifestExchange, names variables, out *Auth) {
	out.Exchange = &Exchange{
		URL:    out.TokenURL,
		Params: p.templates(at(pointer, "params"), e.Params, names.scope(map[string][]string{"token": nil})),
	}
	if e.URL != "" {
		out.Exchange.URL = p.serverURL(at(pointer, "url"), e.URL, names)
		p.sameHostField(at(pointer, "url"), e.URL, out)
	}
	if e.Params["grant_type"] == "" {
		p.failf(at(pointer, "params"), "needs a grant_type")
	}
}

func (p *parser) learn(pointer string, sources map[string]string, names variables) map[string]Template {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if !identifier.MatchString(name) {
			p.failf(at(pointer, name), "a variable's name has lower-case letters, digits and underscores and starts with a letter")
		}
	}
	return p.templates(pointer, sources, names.learnScope())
}

// stages checks that no entry of learn reads a variable that is not yet known.
func (p *parser) stages(pointer string, fields []Field, learn map[string]Template) {
	for _, name := range slices.Sorted(maps.Keys(learn)) {
		for _, read := range learn[name].Variables() {
			isField := slices.ContainsFunc(slices.Concat(p.fields, fields), func(f Field) bool { return f.Name == read })
			if source, ok := learn[read]; ok && !isField && stageOf(source) >= stageOf(learn[name]) {
				p.failf(pointer, "learn: %s reads connection.%s, which is not known earlier: repeat its expression", name, read)
			}
		}
	}
}
