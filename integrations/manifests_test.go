package integrations_test

import (
	"cmp"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/authoring"
)

func catalog(t *testing.T) *integration.Catalog {
	t.Helper()
	out, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// learned has samples of variables that services tell.
var learned = map[string]string{
	"pipedrive.api_domain":    "https://acme.pipedrive.com",
	"quickbooks.realm_id":     "9341453474484455",
	"salesforce.instance_url": "https://acme.my.salesforce.com",
	"zoho.api_domain":         "https://www.zohoapis.eu",
	"mailchimp.dc":            "us6",
}

// samples returns values for a connection.
func samples(i *integration.Integration, a *integration.Auth) map[string]string {
	vars := map[string]string{}
	for _, f := range i.Fields(a) {
		if !f.Secret {
			vars[f.Name] = cmp.Or(f.Default, f.Example, "acme")
		}
	}
	for name := range a.Learn {
		if value, ok := learned[i.ID+"."+name]; ok {
			vars[name] = value
		}
	}
	return vars
}

// Every URL of every manifest renders, and the test goes to a host that may receive
// the credential.
func TestURLs(t *testing.T) {
	t.Parallel()
	for _, i := range catalog(t).List() {
		for _, a := range i.Connection.Auth {
			env := integration.Env{Connection: samples(i, &a)}
			for name, template := range map[string]integration.Template{"authorize": a.AuthorizeURL, "token": a.TokenURL, "revoke": a.RevokeURL} {
				if template.IsZero() {
					continue
				}
				if _, err := template.URL(env); err != nil {
					t.Errorf("%s, %s: the %s URL: %v", i.ID, a.ID, name, err)
				}
			}
			hosts, err := i.Hosts(env.Connection)
			if err != nil {
				t.Errorf("%s, %s: %v", i.ID, a.ID, err)
			}
			test, err := i.Render(a.Test, env)
			if err != nil {
				t.Fatalf("%s, %s: %v", i.ID, a.ID, err)
			}
			if u, err := url.Parse(test.URL); err != nil || !slices.Contains(hosts, u.Host) {
				t.Errorf("%s, %s: the test calls %s, not one of %q", i.ID, a.ID, test.URL, hosts)
			}
		}
	}
}

// Texts that people see have no expressions, and say where to get the credential.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, i := range catalog(t).List() {
		for _, a := range i.Connection.Auth {
			for _, text := range []string{i.Name, a.Label, a.Help} {
				if strings.Contains(text, "${{") || strings.TrimSpace(text) != text {
					t.Errorf("%s, %s: %q is not a text for people", i.ID, a.ID, text)
				}
			}
			if a.Help == "" {
				t.Errorf("%s, %s: help is missing: where does one get the credential?", i.ID, a.ID)
			}
		}
	}
}

// Every integration has an icon with simple shapes only, and no two look the same.
func TestIcons(t *testing.T) {
	t.Parallel()
	set, err := authoring.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	problems, _ := set.Lint()
	for _, problem := range problems {
		t.Error(problem)
	}
	seen := map[string]string{}
	for _, i := range catalog(t).List() {
		_, shapes, _ := strings.Cut(string(i.Icon()), "<rect width=\"24\" height=\"24\" rx=\"6\" fill=\"")
		if len(shapes) < len("#000000") {
			t.Errorf("%s/icon.svg has no background: it would not be seen on all pages", i.ID)
			continue
		}
		if other, ok := seen[shapes[len("#000000"):]]; ok {
			t.Errorf("%s and %s have icons with the same shapes", i.ID, other)
		}
		seen[shapes[len("#000000"):]] = i.ID
	}
}

// The example in the documentation is an icon that is allowed.
func TestDocumentedIcon(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/integrations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```xml\n")
	example, _, _ := strings.Cut(rest, "```")
	if problems := integration.CheckIcon([]byte(example)); problems != nil {
		t.Error(problems)
	}
}

// Each folder says where its facts come from.
func TestSources(t *testing.T) {
	t.Parallel()
	for _, i := range catalog(t).List() {
		text, err := os.ReadFile(i.ID + "/sources.md")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# Sources of "+i.Name+"\n") || !strings.Contains(string(text), "\n- ") {
			t.Errorf("%s/sources.md needs the heading %q and a list of sources", i.ID, "# Sources of "+i.Name)
		}
	}
}
