package integration

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// maxApplied is how many headers and parameters a custom connection can set, so that all of their
// values can be masked.
const maxApplied = 64

const customName = "a custom connection"

// custom is the definition of a custom connection: one to a service without an
// integration. Unlike a manifest it is written by whoever connects, so its hosts may
// have ports and its URLs may use http.
type custom struct {
	Hosts []string       `json:"hosts"`
	Apply *manifestApply `json:"apply"`
	// TestURL is requested to test the connection.
	TestURL string `json:"test_url"`
	// CA is what the connection trusts beside the certificate authorities of the machine.
	CA string `json:"ca"`

	// Issuer publishes the members that are left out. See ServerMetadata.
	Issuer string `json:"issuer"`
	// Grant is how tokens are issued: by the consent of a person, which is the default
	// if there is an issuer or an authorize URL, with client credentials, or by the
	// consent of a person who enters a code (RFC 8628).
	Grant          string            `json:"grant"`
	AuthorizeURL   string            `json:"authorize_url"`
	DeviceURL      string            `json:"device_url"`
	TokenURL       string            `json:"token_url"`
	RevokeURL      string            `json:"revoke_url"`
	Scopes         []string          `json:"scopes"`
	ScopeSeparator string            `json:"scope_separator"`
	Params         map[string]string `json:"params"`
	TokenParams    map[string]string `json:"token_params"`
	ClientAuth     string            `json:"client_auth"`
	TokenBody      string            `json:"token_body"`
	PKCE           *bool             `json:"pkce"`
	// IssRequired reports whether the provider names itself in each answer to a request
	// for consent (RFC 9207).
	IssRequired *bool  `json:"iss_required"`
	Service     string `json:"service"`
}

// The grants.
const (
	grantCode   = "authorization_code"
	grantClient = "client_credentials"
	grantDevice = "device_code"
)

// ParseCustom reads the definition of a custom connection of a kind. The error is an
// [Errors]; its pointers start at the definition.
func ParseCustom(kindName string, definition json.RawMessage) (*Integration, error) {
	k, ok := findKind(kindName)
	if !ok {
		return nil, Errors{{Pointer: "/auth", Message: "must be one of " + strings.Join(Kinds(), ", ")}}
	}
	var c custom
	if err := strictjson.Decode(definition, &c); err != nil {
		return nil, decodeErrors(err, nil)
	}
	p := &customParser{custom: c, kind: k}
	out := p.parse()
	if p.errs != nil {
		return nil, p.errs
	}
	return out, nil
}

// SameUse reports whether two definitions of custom connections differ only in their
// hosts and scopes.
func SameUse(a, b json.RawMessage) bool {
	var defs [2]custom
	for i, text := range []json.RawMessage{a, b} {
		if strictjson.Decode(text, &defs[i]) != nil {
			return false
		}
		defs[i].Hosts, defs[i].Scopes = nil, nil
	}
	return reflect.DeepEqual(defs[0], defs[1])
}

type customParser struct {
	custom
	kind kind
	errs Errors
}

func (p *customParser) fail(pointer, message string) {
	p.errs = append(p.errs, &Error{Pointer: pointer, Message: message})
}

func (p *customParser) parse() *Integration {
	if len(p.Hosts) == 0 {
		p.fail("/hosts", "is required: the hosts that may receive the credential")
	}
	p.checkMembers()
	body := cmp.Or(p.TokenBody, "form")
	a := Auth{
		ID: p.kind.name, Kind: p.kind.name, Label: p.kind.name, Fields: slices.Clone(p.kind.fields), Service: p.Service,
		Scopes: p.Scopes, ScopeSeparator: cmp.Or(p.ScopeSeparator, " "), ScopeParam: "scope",
		ClientAuth: cmp.Or(p.ClientAuth, "basic"), TokenBody: body, RevokeBody: body, RevokeParam: "token", PKCE: p.PKCE == nil || *p.PKCE,
		Issuer: p.Issuer, IssRequired: p.IssRequired != nil && *p.IssRequired, CA: p.CA,
	}
	p.parseApply(&a)
	p.parseURLs(&a)
	p.addCertificate(&a)
	if p.TestURL != "" {
		a.Test = &Call{Method: "GET", URL: p.url("/test_url", p.TestURL)}
	}
	return &Integration{Name: customName, Connection: Connection{Auth: []Auth{a}}, hosts: p.Hosts}
}

// checkMembers rejects members that have no effect on a connection of the kind.
func (p *customParser) checkMembers() {
	given := []struct {
		name  string
		isSet bool
	}{
		{"apply", p.Apply != nil},
		{"issuer", p.Issuer != ""},
		{"grant", p.Grant != ""},
		{"authorize_url", p.AuthorizeURL != ""},
		{"device_url", p.DeviceURL != ""},
		{"token_url", p.TokenURL != ""},
		{"revoke_url", p.RevokeURL != ""},
		{"scopes", p.Scopes != nil},
		{"scope_separator", p.ScopeSeparator != ""},
		{"params", p.Params != nil},
		{"token_params", p.TokenParams != nil},
		{"client_auth", p.ClientAuth != ""},
		{"token_body", p.TokenBody != ""},
		{"pkce", p.PKCE != nil},
		{"iss_required", p.IssRequired != nil},
		{"service", p.Service != ""},
	}
	for _, member := range given {
		isCustom := p.kind.name == OAuth2 && slices.Contains([]string{"issuer", "grant", "device_url", "iss_required"}, member.name) // a manifest has none of them
		if member.isSet && !isCustom && !slices.Contains(p.kind.members, member.name) {
			p.fail("/"+member.name, "does not belong to a connection of the kind "+p.kind.name)
		}
	}
	if methods := []string{"basic", "body", PrivateKeyJWT, ClientAuthTLS}; p.ClientAuth != "" && !slices.Contains(methods, p.ClientAuth) {
		p.fail("/client_auth", "must be one of "+strings.Join(methods, ", "))
	}
	if p.TokenBody != "" && p.TokenBody != "form" && p.TokenBody != "json" {
		p.fail("/token_body", "must be form or json")
	}
	if p.kind.name == OAuth2 {
		p.checkGrant()
	}
	if p.IssRequired != nil && p.Issuer == "" {
		p.fail("/iss_required", "needs the issuer that answers are compared with")
	}
	if p.Apply != nil && p.Apply.Path != "" {
		p.fail("/apply/path", "works only in integrations: use headers or query")
	}
}

// parseApply compiles where the credential goes. The secrets that it reads are the
// fields of an API key.
func (p *customParser) parseApply(a *Auth) {
	apply := p.Apply
	switch {
	case apply == nil && p.kind.apply != nil:
		apply = p.kind.apply
	case apply == nil && !slices.Contains(p.kind.members, "apply"):
		return // it signs requests, or is part of the TLS connection
	case apply == nil:
		p.fail("/apply", `is required: where the credential goes, such as {"headers": {"X-Api-Key": "${{ secret.key }}"}}`)
		return
	}
	scope := p.applyScope(a, apply)
	compile := func(pointer, source string) Template {
		t, err := scope.CompileTemplate(source, nil)
		if err != nil {
			p.fail(pointer, message(err))
		}
		return Template{compiled: t}
	}
	if len(apply.Headers)+len(apply.Query) > maxApplied {
		p.fail("/apply", fmt.Sprintf("has at most %d headers and parameters", maxApplied))
	}
	for name, problem := range headerProblems(apply.Headers) {
		p.fail(at("/apply/headers", name), problem)
	}
	a.Apply = Apply{Headers: map[string]Template{}, Query: map[string]Template{}}
	for name, source := range apply.Headers {
		a.Apply.Headers[name] = compile(at("/apply/headers", name), source)
	}
	for name, source := range apply.Query {
		a.Apply.Query[name] = compile(at("/apply/query", name), source)
	}
	if apply.Basic != nil {
		if problem := userProblem(apply.Basic.User); problem != "" {
			p.fail("/apply/basic/user", problem)
		}
		a.Apply.Basic = &Basic{User: compile("/apply/basic/user", apply.Basic.User), Password: compile("/apply/basic/password", apply.Basic.Password)}
	}
}

var secretName = regexp.MustCompile(`\bsecret\.([a-z][a-z0-9_]*)`)

// applyScope returns the names that apply can read. Each secret that an API key reads
// becomes one of its fields.
func (p *customParser) applyScope(a *Auth, apply *manifestApply) *expr.Scope {
	if p.kind.name == APIKey {
		var sources []string
		for _, part := range []map[string]string{apply.Headers, apply.Query} {
			sources = slices.AppendSeq(sources, maps.Values(part))
		}
		if apply.Basic != nil {
			sources = append(sources, apply.Basic.User, apply.Basic.Password)
		}
		seen := map[string]bool{}
		for _, match := range secretName.FindAllStringSubmatch(strings.Join(sources, " "), -1) {
			seen[match[1]] = true
		}
		for _, name := range slices.Sorted(maps.Keys(seen)) {
			if name == CertificateField || name == KeyField {
				p.fail("/apply", "must not use secret."+name+": that is the client certificate, which is not part of a request. Use another name")
			}
			a.Fields = append(a.Fields, Field{Name: name, Title: name, Secret: true})
		}
		if len(seen) == 0 {
			p.fail("/apply", "uses no secret: write ${{ secret.key }} where the key goes")
		}
	}
	names := variables{hasToken: p.kind.hasToken}
	names.add(a.Fields, nil)
	return names.applyScope()
}

func (p *customParser) parseURLs(a *Auth) {
	for _, one := range []struct {
		pointer, text string
		into          *Template
	}{
		{"/authorize_url", p.AuthorizeURL, &a.AuthorizeURL}, {"/device_url", p.DeviceURL, &a.DeviceURL}, {"/token_url", p.TokenURL, &a.TokenURL}, {"/revoke_url", p.RevokeURL, &a.RevokeURL},
	} {
		switch {
		case one.text != "":
			*one.into = p.url(one.pointer, one.text)
		case one.pointer == "/token_url" && p.kind.hasToken:
			p.fail(one.pointer, "is required: where tokens are issued")
		}
	}
	a.Params, a.TokenParams = p.params("params", p.Params), p.params("token_params", p.TokenParams)
	switch {
	case p.kind.name == OAuth2 && p.ClientAuth == PrivateKeyJWT:
		a.Fields = signingClientFields()
	case p.kind.name == OAuth2:
		a.Fields = clientFields(p.AuthorizeURL != "" || p.Grant == grantDevice)
	}
}

// ClientAuthTLS authenticates the client at the token endpoint with its certificate, in
// place of a secret (RFC 8705).
const ClientAuthTLS = "tls"

func (p *customParser) addCertificate(a *Auth) {
	switch {
	case p.kind.name == ClientCertificate: // it has them
	case p.kind.name == OAuth2 && p.ClientAuth == ClientAuthTLS:
		a.Fields = append(a.Fields[:1], certificateFields(false)...) // the client id, without a secret
		if strings.HasPrefix(strings.ToLower(p.TokenURL), "http:") {
			p.fail("/token_url", "must use https: the client certificate is part of a TLS connection")
		}
	default:
		a.Fields = append(a.Fields, certificateFields(true)...)
	}
}

// url compiles an absolute URL without expressions.
func (p *customParser) url(pointer, text string) Template {
	if err := checkCustomURL(text); err != nil {
		p.fail(pointer, err.Error())
		return Template{}
	}
	return p.constant(pointer, text)
}

// constant compiles text without expressions.
func (p *customParser) constant(pointer, text string) Template {
	t, err := expr.NewScope(nil).CompileTemplate(text, nil)
	if err != nil {
		p.fail(pointer, message(err))
	}
	return Template{compiled: t, custom: true}
}

func checkCustomURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.Contains(text, "${{") {
		return errors.New("must be an absolute https URL, without a user or a fragment")
	}
	return nil
}
