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

// opened is a connection with its secrets, its integration and its way to authenticate.
type opened struct {
	Connection
	secrets secrets
	service *integration.Integration
	auth    *integration.Auth
}

// scopes returns the OAuth scopes that the connection asks for.
func (c *opened) scopes() []string { return c.service.ScopesOf(c.auth, c.Fields) }

func (c *opened) setScopes(params url.Values) {
	if scopes := c.scopes(); len(scopes) > 0 {
		params.Set(c.auth.ScopeParam, strings.Join(scopes, c.auth.ScopeSeparator))
	}
}

// env returns the values that the templates of the integration can read.
func (c *opened) env() integration.Env {
	env := integration.Env{Connection: map[string]string{}, Secret: c.secrets.Fields}
	maps.Copy(env.Connection, c.Fields)
	maps.Copy(env.Connection, c.Learned)
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

// broken returns a BrokenError with the given name if the connection has to be reconnected. The
// name may be one that it had before: callers know the connection by it.
func (c *opened) broken(name string) error {
	if c.Status != NeedsReconnect {
		return nil
	}
	return &BrokenError{Name: name, Problem: c.Problem}
}

// learn sets the variables that the service provides at a stage of connecting.
func (c *opened) learn(stage integration.Stage, env integration.Env) error {
	learned := map[string]string{}
	maps.Copy(learned, c.Learned)
	for name, template := range c.auth.Learned(stage) {
		value, ok, err := template.Text(env)
		switch {
		case err != nil || !ok: // not part of the response
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

// learnFromTest sets the variables that the response to a test contains, and the hosts that
// depend on them.
func (c *opened) learnFromTest(body any) error {
	env := c.env()
	env.Test = body
	if err := c.learn(integration.AtTest, env); err != nil {
		return err
	}
	return c.setHosts()
}

// isLike reports whether two versions of a connection have the same definition, fields and
// secrets, so that a test of one is a test of the other.
func (c *opened) isLike(other *opened) bool {
	return c.ID == other.ID && bytes.Equal(c.Definition, other.Definition) && maps.Equal(c.Fields, other.Fields) && maps.Equal(c.secrets.Fields, other.secrets.Fields)
}

// keepsToken reports whether a connection still has the token of an earlier version.
func (c *opened) keepsToken(before *opened) bool {
	is, was := c.secrets.Token, before.secrets.Token
	return c.ID == before.ID && is != nil && was != nil && is.Access == was.Access && is.IssuedAt.Equal(was.IssuedAt)
}
