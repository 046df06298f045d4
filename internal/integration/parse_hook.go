package integration

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/signature"
)

// hookNames are the names that requests about a hook read as hook, and subscriptionRoots
// the one under which they read what register has returned.
func hookNames() []string { return []string{"url", "id", "secret"} }

const subscriptionRoot = "subscription"

func (p *parser) hooks(m *manifest) []Hook {
	var out []Hook
	for _, h := range m.Hooks {
		pointer := at("/hooks", h.name)
		if !operationName.MatchString(h.name) {
			p.failf(pointer, "the name of a hook has lower-case letters, digits and underscores, and starts with a letter")
		}
		if !slices.ContainsFunc(m.Triggers, func(t namedMember[manifestTrigger]) bool { return t.value.Hook == h.name }) {
			p.failf(pointer, "no trigger has this hook: name it in one, or remove it")
		}
		out = append(out, p.hook(pointer, h.name, &h.value, m.inputsOfHook(h.name, h.value.Scope)))
	}
	return out
}

// inputsOfHook returns the names of the settings that requests about a hook can read: those
// that every trigger with the hook has. A URL that triggers share has none.
func (m *manifest) inputsOfHook(name, scope string) []string {
	out := []string{}
	first := true
	for _, t := range m.Triggers {
		if t.value.Hook != name || scope != PerTrigger {
			continue
		}
		var names []string
		for _, in := range t.value.Input {
			names = append(names, in.name)
		}
		if first {
			out, first = append(out, names...), false
			continue
		}
		out = slices.DeleteFunc(out, func(n string) bool { return !slices.Contains(names, n) })
	}
	return out
}

func (p *parser) hook(pointer, name string, h *manifestHook, inputs []string) Hook {
	out := Hook{Name: name, Scope: h.Scope}
	p.oneOf(at(pointer, "scope"), h.Scope, hookScopes())
	about := func() place { return p.aboutHook(inputs) }
	known := func() place {
		where := about()
		where.roots[subscriptionRoot] = nil
		return where
	}
	out.Setup = p.template(at(pointer, "setup"), h.Setup, p.shared.scope(map[string][]string{"hook": hookNames()}), nil)
	out.Register = p.hookCalls(at(pointer, "register"), "register", h.Register, about())
	out.Renew = p.hookCalls(at(pointer, "renew"), "renew", h.Renew, known())
	out.Unregister = p.hookCalls(at(pointer, "unregister"), "unregister", h.Unregister, known())
	out.Expires = p.program(at(pointer, "expires"), h.Expires, known().scope())
	p.checkLife(pointer, h)
	if h.Verify == nil {
		p.failf(at(pointer, "verify"), "is required: how a call proves that it comes from the service")
	} else {
		out.Verification = p.verification(at(pointer, "verify"), h)
	}
	call := p.callPlace()
	if c := h.Challenge; c != nil {
		challenge := at(pointer, "challenge")
		p.require(at(challenge, "when"), c.When)
		scope := p.callPlace()
		scope.roots["hook"] = hookNames()
		scope.roots["method"] = nil
		out.Challenge = &Challenge{p.condition(at(challenge, "when"), c.When, scope.scope()), p.optionalValue(at(challenge, "reply"), c.Reply, scope.scope())}
		if c.Reply == nil {
			p.failf(at(challenge, "reply"), "is required: what the service wants to read")
		}
	}
	out.Items = p.program(at(pointer, "items"), h.Items, call.scope())
	event := place{p.shared, map[string][]string{"item": nil, "headers": nil}}
	out.Key = p.program(at(pointer, "key"), h.Key, event.scope())
	// The variables of connections are not known before the account is.
	out.Account = p.program(at(pointer, "account"), h.Account, place{variables{connection: []string{}}, event.roots}.scope())
	out.Reply = p.optionalValue(at(pointer, "reply"), h.Reply, call.scope())
	return out
}

// checkLife reports what is missing for registering a hook, or contradicts itself.
func (p *parser) checkLife(pointer string, h *manifestHook) {
	switch {
	case h.Scope == PerApp && h.Register != nil:
		p.failf(at(pointer, "register"), "does not belong to the scope app: people enter the URL where the app is registered, as setup tells them")
	case (h.Register == nil) == (h.Setup == ""):
		p.failf(pointer, "needs either register, a request that tells the service the URL, or setup, which tells people how to enter it")
	case h.Register == nil && (h.Renew != nil || h.Unregister != nil || h.Expires != ""):
		p.failf(pointer, "renew, unregister and expires need register")
	case h.Renew != nil && h.Expires == "":
		p.failf(at(pointer, "expires"), "is required with renew: when a registration ends")
	case h.Register != nil && h.Unregister == nil && h.Expires == "":
		p.failf(at(pointer, "unregister"), "is required for a registration that does not expire")
	}
}

// checkAccount reports why calls for all connections of an app could not be told apart, or
// could come to a connection that they are not meant for. That the account was learned from
// the service is what keeps workspaces apart: nothing that people enter may decide it.
func (p *parser) checkAccount(h *Hook, of *Integration) {
	pointer := at("/hooks", h.Name)
	switch {
	case h.Scope != PerApp && h.Account != nil:
		p.failf(at(pointer, "account"), "belongs to the scope app: a URL of one connection has the events of its account")
		return
	case h.Scope != PerApp:
		return
	case h.Account == nil:
		p.failf(at(pointer, "account"), "is required with the scope app: the account that an event is for, such as item.team_id")
	}
	if !h.Verification.Secret.Reads("secret") {
		p.failf(at(pointer, "verify", "secret"), "must be a secret of the app, such as ${{ secret.client_secret }}: all connections share the URL")
	}
	for _, host := range of.Connection.Hosts {
		if strings.Contains(host.Name.Source(), "${{") {
			p.failf(at(pointer, "scope"), "cannot be app: whoever connects chooses the host %s, and so which account the service has", host.Name.Source())
		}
	}
	for _, way := range of.Connection.Auth {
		account := way.Learn[Account]
		if stageOf(account) == AtCallback || account.Reads("connection") || account.Reads("callback") {
			p.failf(at(pointer, "scope"), "cannot be app: with %s, a connection learns no account. Add account to learn, from test or token alone", way.Label)
		}
	}
}

func (p *parser) aboutHook(inputs []string) place {
	where := p.operationPlace(inputs)
	where.roots["hook"] = hookNames()
	return where
}

// callPlace returns the place of what reads a call of the service.
func (p *parser) callPlace() place {
	return place{p.shared, map[string][]string{"headers": nil, "query": nil, "body": nil}}
}

// hookCalls compiles the requests that register a hook, renew or remove it.
func (p *parser) hookCalls(pointer, name string, c *manifestCalls, where place) *Operation {
	if c == nil {
		return nil
	}
	out := &Operation{Name: name}
	if out.Calls = p.calls(pointer, pointer, c.call, c.Do, where); len(out.Calls) == 0 {
		p.failf(at(pointer, "do"), "needs at least one call")
		return nil
	}
	out.Output = p.optionalValue(at(pointer, "output"), c.Output, where.answerScope("items"))
	for _, call := range out.Calls {
		if call.Response == ResponseFile || call.Blobs != nil || call.Chunk != nil || call.Page != nil || call.Batch != nil {
			p.failf(pointer, "a request about a hook has no files, pages, batches and chunks")
		}
	}
	return out
}

// verifySchemes are the schemes with which calls of hooks are verified.
func verifySchemes() []string {
	var out []string
	for _, scheme := range append(signature.Schemes(), signature.Equals, signature.Twilio, signature.Ed25519) {
		if scheme != signature.Basic {
			out = append(out, string(scheme))
		}
	}
	return out
}

// secretEncodings are the ways in which the key of a signature is written.
func secretEncodings() []string { return []string{"text", "base64"} }

func (p *parser) verification(pointer string, h *manifestHook) Verification {
	v := h.Verify
	p.oneOf(at(pointer, "scheme"), v.Scheme, verifySchemes())
	p.require(at(pointer, "secret"), v.Secret)
	secrets := slices.Clone(p.shared.secrets)
	if p.shared.consent {
		secrets = append(secrets, ClientSecret)
	}
	scope := p.shared.scope(map[string][]string{"hook": {"secret"}, subscriptionRoot: nil, "secret": secrets})
	if h.Scope == PerApp { // a call is verified before it is known whom it is for
		scope = expr.NewScope(map[string][]string{"secret": append(secrets, p.shared.appSecrets...)})
	}
	out := Verification{
		Scheme: v.Scheme, Secret: p.template(at(pointer, "secret"), v.Secret, scope, nil), SecretEncoding: v.SecretEncoding,
		Given:  p.program(at(pointer, "given"), v.Given, p.callPlace().scope()),
		Header: v.Header, Algorithm: v.Algorithm, Encoding: v.Encoding, Prefix: v.Prefix, Timestamp: v.Timestamp, Signed: v.Signed,
	}
	if v.Tolerance != "" {
		out.Tolerance = p.duration(at(pointer, "tolerance"), v.Tolerance)
	}
	if !strings.Contains(v.Secret, "${{") {
		p.failf(at(pointer, "secret"), "must come from an expression, such as ${{ hook.secret }}: what is written here is known to everybody")
	}
	p.oneOf(at(pointer, "secret_encoding"), cmp.Or(v.SecretEncoding, "text"), secretEncodings())
	if (v.Scheme == string(signature.Equals)) != (v.Given != "") {
		p.failf(at(pointer, "given"), "belongs to the scheme equals, which needs it: what the call proves itself with")
	}
	p.checkHMAC(pointer, v)
	return out
}

// checkHMAC reports members that contradict the scheme.
func (p *parser) checkHMAC(pointer string, v *manifestVerify) {
	isHMAC := v.Scheme == string(signature.HMAC)
	if v.Scheme == string(signature.Ed25519) {
		p.require(at(pointer, "header"), v.Header)
		p.require(at(pointer, "timestamp"), v.Timestamp)
	} else if v.Timestamp != "" && !isHMAC {
		p.failf(at(pointer, "timestamp"), "belongs to the schemes hmac and ed25519")
	}
	for name, value := range map[string]string{
		"algorithm": v.Algorithm, "encoding": v.Encoding, "prefix": v.Prefix, "signed": v.Signed, "secret_encoding": v.SecretEncoding,
	} {
		if value != "" && !isHMAC {
			p.failf(at(pointer, name), "belongs to the scheme hmac")
		}
	}
	if !isHMAC {
		return
	}
	p.require(at(pointer, "header"), v.Header)
	p.oneOf(at(pointer, "algorithm"), cmp.Or(v.Algorithm, "sha256"), signature.Algorithms())
	p.oneOf(at(pointer, "encoding"), cmp.Or(v.Encoding, "hex"), signature.Encodings())
	if v.Signed != "" && strings.Count(v.Signed, "{body}") != 1 {
		p.failf(at(pointer, "signed"), "must contain {body} exactly once")
	}
}
