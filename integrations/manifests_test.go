// Package integrations_test checks the manifests of the integrations, one per
// folder. So far they describe how to connect to a service.
package integrations_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

type manifest struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Category   string         `json:"category"`
	Docs       string         `json:"docs"`
	BaseURL    string         `json:"base_url"`
	Headers    map[string]any `json:"headers"`
	Connection connection     `json:"connection"`
	Operations map[string]any `json:"operations"`
}

type connection struct {
	Fields map[string]field  `json:"fields"`
	Auth   []auth            `json:"auth"`
	Hosts  []any             `json:"hosts"`
	Test   map[string]any    `json:"test"`
	Learn  map[string]string `json:"learn"`
}

type field struct {
	Title   string `json:"title"`
	Help    string `json:"help"`
	Secret  bool   `json:"secret"`
	Default string `json:"default"`
	Enum    []any  `json:"enum"`
	Format  string `json:"format"`
	Pattern string `json:"pattern"`
	Options string `json:"options"`
	Example string `json:"example"`
}

type auth struct {
	Kind           string           `json:"kind"`
	Label          string           `json:"label"`
	Help           string           `json:"help"`
	Fields         map[string]field `json:"fields"`
	AppFields      map[string]field `json:"app_fields"`
	Apply          map[string]any   `json:"apply"`
	AuthorizeURL   string           `json:"authorize_url"`
	TokenURL       string           `json:"token_url"`
	RevokeURL      string           `json:"revoke_url"`
	Scopes         []string         `json:"scopes"`
	ScopeSeparator string           `json:"scope_separator"`
	Params         map[string]any   `json:"params"`
	ClientAuth     string           `json:"client_auth"`
	TokenBody      string           `json:"token_body"`
}

var (
	kinds      = []string{"api_key", "bearer", "basic", "oauth2", "service_account", "aws_sigv4"}
	expression = regexp.MustCompile(`\$\{\{(.*?)\}\}`)
	variable   = regexp.MustCompile(`^connection\.([a-z][a-z0-9_]*)$`)
	used       = regexp.MustCompile(`\bconnection\.([a-z][a-z0-9_]*)`)
	literalURL = regexp.MustCompile(`'([a-z]+:[^']*)'`)
	hostName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

func TestManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/integration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no manifests")
	}
	for _, file := range files {
		t.Run(filepath.Dir(file), func(t *testing.T) {
			t.Parallel()
			m := read(t, file)
			if m.ID != filepath.Dir(file) {
				t.Errorf("id is %q, want the name of the folder", m.ID)
			}
			if m.Name == "" || m.Category == "" {
				t.Error("name and category must not be empty")
			}
			m.checkURL(t, "docs", m.Docs)
			if m.BaseURL != "" {
				m.checkURL(t, "base_url", m.BaseURL)
			}
			if len(m.Connection.Test) == 0 || m.Connection.Learn["label"] == "" {
				t.Error("connection needs a test and a label")
			}
			if address, ok := m.Connection.Test["url"].(string); ok {
				m.checkURL(t, "test.url", address)
			}
			m.checkAuth(t)
			m.checkHosts(t)
		})
	}
}

func read(t *testing.T, file string) manifest {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	document, err := strictyaml.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := strictjson.Decode(document.JSON, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m manifest) checkAuth(t *testing.T) {
	t.Helper()
	if len(m.Connection.Auth) == 0 {
		t.Error("connection.auth is empty")
	}
	for _, a := range m.Connection.Auth {
		if !slices.Contains(kinds, a.Kind) {
			t.Errorf("unknown kind %q", a.Kind)
		}
		// Without authorize_url, an oauth2 entry uses client credentials.
		if (a.Kind == "oauth2" || a.Kind == "service_account") != (a.TokenURL != "") {
			t.Errorf("%s: token_url is %q", a.Kind, a.TokenURL)
		}
		if a.Kind != "oauth2" && a.AuthorizeURL+a.RevokeURL+a.ClientAuth != "" {
			t.Errorf("%s has members of oauth2", a.Kind)
		}
		if a.Kind == "oauth2" && !slices.Contains([]string{"basic", "body"}, a.ClientAuth) {
			t.Errorf("client_auth is %q, want basic or body", a.ClientAuth)
		}
		for name, address := range map[string]string{"authorize_url": a.AuthorizeURL, "token_url": a.TokenURL, "revoke_url": a.RevokeURL} {
			if address != "" {
				m.checkURL(t, name, address)
			}
		}
		scopes := slices.Sorted(slices.Values(a.Scopes))
		if slices.Contains(scopes, "") || len(slices.Compact(scopes)) != len(a.Scopes) {
			t.Errorf("scopes are empty or repeated: %q", a.Scopes)
		}
	}
}

func (m manifest) checkHosts(t *testing.T) {
	t.Helper()
	if len(m.Connection.Hosts) == 0 {
		t.Error("connection.hosts is empty")
	}
	for _, entry := range m.Connection.Hosts {
		switch entry := entry.(type) {
		case string:
			m.checkHost(t, entry)
		case map[string]any:
			host, _ := entry["host"].(string)
			m.checkHost(t, host)
			within, _ := entry["within"].([]any)
			if len(within) == 0 || len(entry) != 2 {
				t.Errorf("host %q needs the domains that it lies within", host)
			}
			for _, domain := range within {
				if name, ok := domain.(string); !ok || !hostName.MatchString(name) {
					t.Errorf("within %v is not a domain", domain)
				}
			}
		default:
			t.Errorf("host %v is neither a name nor a learned host", entry)
		}
	}
}

// checkHost checks a host name, which may contain variables but no other
// expressions.
func (m manifest) checkHost(t *testing.T, host string) {
	t.Helper()
	m.checkVariables(t, host)
	for _, match := range expression.FindAllStringSubmatch(host, -1) {
		if !variable.MatchString(strings.TrimSpace(match[1])) {
			t.Errorf("host %q must be built from variables only", host)
		}
	}
	if !hostName.MatchString(expression.ReplaceAllString(host, "x")) {
		t.Errorf("host %q is not a host name", host)
	}
}

// checkURL checks an https URL, which may contain expressions. One that starts
// with an expression takes its scheme and host from there.
func (m manifest) checkURL(t *testing.T, name, text string) {
	t.Helper()
	m.checkVariables(t, text)
	addresses := []string{expression.ReplaceAllString(text, "x")}
	if strings.HasPrefix(text, "${{") {
		addresses[0] = "https://" + addresses[0]
	}
	for _, match := range expression.FindAllString(text, -1) {
		for _, literal := range literalURL.FindAllStringSubmatch(match, -1) {
			addresses = append(addresses, strings.Replace(literal[1]+"/", ":///", "://x/", 1)) // 'https://' + a variable
		}
	}
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "https" || u.User != nil || !hostName.MatchString(u.Host) {
			t.Errorf("%s: %q is not an https URL with a lower-case host", name, text)
		}
	}
}

// checkVariables checks that expressions use only variables that the connection
// declares or learns.
func (m manifest) checkVariables(t *testing.T, text string) {
	t.Helper()
	for _, match := range expression.FindAllString(text, -1) {
		for _, name := range used.FindAllStringSubmatch(match, -1) {
			if !m.declares(name[1]) {
				t.Errorf("%q uses %s, which the connection does not declare", text, name[0])
			}
		}
	}
}

func (m manifest) declares(name string) bool {
	if _, ok := m.Connection.Fields[name]; ok {
		return true
	}
	if _, ok := m.Connection.Learn[name]; ok {
		return true
	}
	return slices.ContainsFunc(m.Connection.Auth, func(a auth) bool {
		_, ok := a.Fields[name]
		return ok
	})
}
