package connection

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stepmill/stepmill/internal/digest"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

// opened is a connection with its secrets.
type opened struct {
	Connection
	secrets secrets
	service *integration.Integration
	auth    *integration.Auth
}

// scopes returns the OAuth scopes that the connection asks for.
func (c *opened) scopes() []string { return c.service.ScopesOf(c.auth, c.Fields) }

// setScopes adds the scopes to the parameters of a request, if there are any.
func (c *opened) setScopes(params url.Values) {
	if scopes := c.scopes(); len(scopes) > 0 {
		params.Set(c.auth.ScopeParam, strings.Join(scopes, c.auth.ScopeSeparator))
	}
}

// env returns the values that the templates of the integration can read.
func (c *opened) env() integration.Env {
	env := integration.Env{Connection: map[string]string{}, Secret: c.secrets.Fields}
	for _, values := range []map[string]string{c.Fields, c.Learned} {
		maps.Copy(env.Connection, values)
	}
	if c.secrets.Token != nil {
		env.Token = c.secrets.Token.Access
	}
	return env
}

// client returns the OAuth app of the connection: the one that was entered or, for an
// integration, the one that a person consented to.
func (c *opened) client() oauthClient {
	if c.Integration != "" && c.secrets.ClientID != "" {
		return oauthClient{c.secrets.ClientID, c.secrets.ClientSecret}
	}
	return oauthClient{c.Fields["client_id"], c.secrets.Fields["client_secret"]}
}

// hasToken reports whether the credential is a token that can be renewed.
func (c *opened) hasToken() bool {
	return c.auth.Kind == integration.OAuth2 || c.auth.Kind == integration.ServiceAccount
}

// credential returns what authenticates the requests of a connection.
func (c *opened) credential() egress.Credential {
	if !c.isConfirmed() {
		return credential{apply: func(*http.Request) error { return errUnconfirmed(c) }}
	}
	out := credential{hosts: c.Hosts, apply: applyTemplates(c.auth.Apply, c.env()), tls: c.tls()}
	switch c.auth.Kind {
	case integration.AWSSigV4:
		out.apply = c.signAWS
	case integration.Digest:
		return digestCredential{out, digest.Credentials{Username: c.Fields["username"], Password: c.secrets.Fields["password"]}}
	}
	return out
}

func (c *opened) signAWS(r *http.Request) error {
	service := c.auth.Service
	if service == "" {
		service = awsService(r.URL.Hostname(), c.Fields["region"])
	}
	return signAWS(service, c.Fields["region"], aws.Credentials{
		AccessKeyID: c.Fields["access_key_id"], SecretAccessKey: c.secrets.Fields["secret_access_key"], SessionToken: c.secrets.Fields["session_token"],
	})(r)
}

// broken returns a BrokenError if the connection, which was asked for by a name that it
// has or had before, has to be reconnected.
func (c *opened) broken(name string) error {
	if c.Status != NeedsReconnect {
		return nil
	}
	return &BrokenError{Name: name, Problem: c.Problem}
}

// learn sets the variables that a stage of connecting gives.
func (c *opened) learn(stage integration.Stage, env integration.Env) error {
	learned := maps.Clone(c.Learned)
	if learned == nil {
		learned = map[string]string{}
	}
	for name, template := range c.auth.Learned(stage) {
		value, ok, err := template.Text(env)
		switch {
		case err != nil || !ok: // the service does not tell
		case name == integration.Label:
			c.Account = value
		default:
			learned[name] = value
		}
	}
	for _, field := range c.service.Fields(c.auth) {
		if value, ok := learned[field.Name]; ok {
			if err := field.Check(value); err != nil {
				return fault.New(fault.ConsentRefused, "the service sent an unexpected value for %s, which %v", field.Name, err)
			}
		}
	}
	c.Learned = learned
	return nil
}

// learnFromTest sets the variables that the response to a test tells, and the hosts that
// depend on them.
func (c *opened) learnFromTest(body any) error {
	env := c.env()
	env.Test = body
	if err := c.learn(integration.AtTest, env); err != nil {
		return err
	}
	return c.setHosts()
}

// isLike reports whether two connections have been entered in the same way.
func (c *opened) isLike(other *opened) bool {
	return c.ID == other.ID && bytes.Equal(c.Definition, other.Definition) && maps.Equal(c.Fields, other.Fields) && maps.Equal(c.secrets.Fields, other.secrets.Fields)
}

// keepsToken reports whether a connection still has the token that it had before it was
// changed.
func (c *opened) keepsToken(before *opened) bool {
	is, was := c.secrets.Token, before.secrets.Token
	return c.ID == before.ID && is != nil && was != nil && is.Access == was.Access && is.IssuedAt.Equal(was.IssuedAt)
}

// forgetAccount forgets which account the connection had, so that only the service can say
// which one its new token is for.
func (c *opened) forgetAccount() {
	learned := map[string]string{}
	for name, value := range c.Learned {
		if name != integration.Account {
			learned[name] = value
		}
	}
	c.Learned = learned
}
