package integration

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/suggest"
)

// MaxManifest is the maximum size of a manifest in bytes.
const MaxManifest = 256 << 10

var (
	idPattern  = regexp.MustCompile(`^[a-z][a-z0-9_]{1,40}$`)
	identifier = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)
)

// Categories returns the categories that an integration can have.
func Categories() []string {
	return []string{
		"ai", "commerce", "communication", "crm", "data", "development", "files", "finance",
		"marketing", "productivity", "social", "support",
	}
}

// Parse reads a manifest and compiles its templates. The error is an [Errors]. If the
// manifest uses the connections of another integration, find returns that one.
func Parse(data []byte, find func(id string) (*Integration, bool)) (*Integration, error) {
	d, err := decode(data)
	if err != nil {
		return nil, err
	}
	return d.compile(find)
}

func (d *decoded) compile(find func(id string) (*Integration, bool)) (*Integration, error) {
	p := &parser{document: d.document, text: d.text, outline: d.outline}
	out := p.compile(&d.manifest, find)
	if p.errs != nil {
		return nil, p.errs
	}
	return out, nil
}

// parser checks a manifest and compiles it.
type parser struct {
	document *strictyaml.Document
	outline  bool              // only the outline of the operations is known
	text     []byte            // of the manifest
	bare     map[string]string // bare expressions by their pointer
	errs     Errors
	fields   []Field // of the connection
	shared   variables
	hosts    []string // the sources of the hosts
	base     bool     // there is a base URL
	// answers are what can be read where an answer of the last call of an operation is
	// looked at, by the name of the operation.
	answers map[string]place
}

func (p *parser) compile(m *manifest, find func(id string) (*Integration, bool)) *Integration {
	var of *Integration
	if m.Connection.Of != "" && IsOwn(m.ID) {
		p.failf("/connection/of", "cannot be used: an integration of a workspace has connections of its own. Describe them with auth and hosts")
		return nil
	}
	if id := m.Connection.Of; id != "" {
		if of, _ = find(id); of == nil || of.Of != "" {
			p.failf("/connection/of", "there is no integration %q with connections of its own", id)
			return nil
		}
	}
	return p.integration(m, of)
}

func at(parent string, members ...string) string { return parent + jsonpointer.Of(members...) }

func (p *parser) failf(pointer, format string, args ...any) {
	line, column := 0, 0
	if p.document != nil {
		line, column, _ = p.document.At(pointer)
	}
	p.errs = append(p.errs, &Error{Line: line, Column: column, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

// invalid reports an expression, or a text with some, that is not valid.
func (p *parser) invalid(pointer, source string, err error) {
	p.failf(pointer, "%s%s", message(err), p.cutOff(pointer, source))
}

func (p *parser) require(pointer, value string) {
	if strings.TrimSpace(value) == "" {
		p.failf(pointer, "is required")
	}
}

// oneOf reports a text that is none of the allowed ones.
func (p *parser) oneOf(pointer, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		p.failf(pointer, "%q is unknown%s: use one of %s", value, suggest.Hint(value, allowed), strings.Join(allowed, ", "))
	}
}

func (p *parser) integration(m *manifest, of *Integration) *Integration {
	if !idPattern.MatchString(m.ID) {
		p.failf("/id", "must be the name of the folder: 2 to 41 lower-case letters, digits and underscores, starting with a letter")
	}
	if IsOwn(m.ID) {
		p.checkOwn(m)
	}
	p.require("/name", m.Name)
	p.oneOf("/category", m.Category, Categories())
	if u, err := parseURL(m.Docs); err != nil || u.Host != strings.ToLower(u.Host) {
		p.failf("/docs", "must be the https URL of the service's documentation")
	}
	for i, word := range m.Keywords {
		p.require(at("/keywords", strconv.Itoa(i)), word)
	}
	out := &Integration{ID: m.ID, Name: m.Name, Category: m.Category, Docs: m.Docs, Keywords: m.Keywords}
	p.base = m.BaseURL != ""
	for _, h := range m.Connection.Hosts {
		p.hosts = append(p.hosts, h.Host)
	}
	p.fields = p.parseFields("/connection/fields", m.Connection.Fields)
	auth := p.authFields(m)
	p.shared = p.sharedVariables(m, auth)

	switch {
	case of != nil:
		p.share(m, of, out)
	case m.Connection.Scopes != nil:
		p.failf("/connection/scopes", "belongs to shared connections: without of, the scopes are those of the entries of auth")
	}
	out.BaseURL = p.anyURL("/base_url", m.BaseURL, p.shared.scope(nil))
	if strings.ContainsAny(m.BaseURL, "?#") && !strings.HasPrefix(m.BaseURL, "${{") {
		p.failf("/base_url", "must not have a query or a fragment")
	}
	out.Headers = p.headers("/headers", m.Headers, p.shared.scope(nil))
	if of == nil {
		out.Connection = p.connection(m, auth)
	}
	out.Errors = append(p.integrationErrors(m), out.Errors...)
	for _, r := range p.rates("/rate", m.Rate, place{names: p.shared}) {
		r.Of = m.ID
		out.Rates = append(out.Rates, r)
	}
	out.outline(m)
	if !p.outline {
		operations, hooks := p.operations(m), p.hooks(m)
		for n := range hooks {
			p.checkAccount(&hooks[n], out)
		}
		found := detail{operations, p.triggers(m, operations, hooks), hooks}
		out.detail = func() detail { return found }
	}
	out.variables = p.shared
	return out
}

func (p *parser) connection(m *manifest, fields [][]Field) Connection {
	c := &m.Connection
	out := Connection{Fields: p.fields}
	if len(c.Hosts) == 0 {
		p.failf("/connection/hosts", "is required: the hosts that may receive the credential")
	}
	for i, h := range c.Hosts {
		out.Hosts = append(out.Hosts, p.host(at("/connection/hosts", strconv.Itoa(i)), h))
	}
	if c.Test != nil {
		out.Test = p.call("/connection/test", c.Test, place{names: p.shared})
	}
	out.Learn = p.learn("/connection/learn", c.Learn, p.shared)
	if len(c.Auth) == 0 {
		p.failf("/connection/auth", "is required: at least one way to authenticate")
	}
	ids := map[string]bool{}
	for i := range c.Auth {
		pointer := at("/connection/auth", strconv.Itoa(i))
		a := p.auth(pointer, m, &c.Auth[i], fields[i], out)
		if ids[a.ID] {
			p.failf(pointer, "the id %q is already in use: give the entry an id of its own", a.ID)
		}
		ids[a.ID] = true
		out.Auth = append(out.Auth, a)
	}
	return out
}

// template compiles a text. An empty one is a zero Template.
func (p *parser) template(pointer, source string, scope *expr.Scope, escape expr.Escape) Template {
	if source == "" {
		return Template{}
	}
	compiled, err := scope.CompileTemplate(source, escape)
	if err != nil {
		p.invalid(pointer, source, err)
	}
	return Template{compiled: compiled}
}

func (p *parser) templates(pointer string, sources map[string]string, scope *expr.Scope) map[string]Template {
	if len(sources) == 0 {
		return nil
	}
	out := make(map[string]Template, len(sources))
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		compiled, err := scope.CompileTemplate(sources[name], nil)
		if err != nil {
			p.invalid(at(pointer, name), sources[name], err)
		}
		out[name] = Template{compiled: compiled}
	}
	return out
}

func (p *parser) headers(pointer string, sources map[string]string, scope *expr.Scope) map[string]Template {
	for name, problem := range headerProblems(sources) {
		p.failf(at(pointer, name), "%s", problem)
	}
	return p.templates(pointer, sources, scope)
}

// ownHeaders is the beginning of the names of headers that only Stepmill sets, such as
// the one that ends loops of runs.
const ownHeaders = "X-Service-"

// headerProblems returns the names of headers that a request cannot have, and why. The
// same ones are rejected or left out in an http.request.
func headerProblems(sources map[string]string) iter.Seq2[string, string] {
	return func(yield func(name, problem string) bool) {
		seen := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(sources)) {
			canonical, problem := http.CanonicalHeaderKey(name), ""
			switch err := egress.CheckHeader(name); {
			case err != nil:
				problem = err.Error()
			case strings.HasPrefix(canonical, ownHeaders):
				problem = "cannot be set: headers that begin with " + ownHeaders + " are set by Stepmill"
			case seen[canonical]:
				problem = "is there twice, in other letters"
			case strings.ContainsFunc(withoutExpressions(sources[name]), unicode.IsControl):
				problem = "contains a line break or another control character"
			}
			seen[canonical] = true
			if problem != "" && !yield(name, problem) {
				return
			}
		}
	}
}

// message returns the text of an expression's error without its position, which
// refers to the template.
func message(err error) string {
	if e, ok := errors.AsType[*expr.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
