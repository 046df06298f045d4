package connection

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

// Consents creates and reconnects connections with the consent of a person, who gives it in the
// browser or, with a code, on another device.
type Consents struct {
	repo        *repository
	store       ConsentStore
	connections *Service
	apps        *Apps
	tester      *Tester
	servers     *authServers
	persister   *persister
	// accepted has the *acceptedDevice of consents on other devices that are not stored yet, by
	// acceptedKey.
	accepted sync.Map
}

// consentLife is how long a person may take to consent in the browser.
const consentLife = 10 * time.Minute

// pending is what the completion of a consent needs. It is stored sealed, because any node may
// get the request that completes it.
type pending struct {
	Verifier   string            `json:"verifier"`
	Redirect   string            `json:"redirect"`
	Connection Connection        `json:"connection"`
	Secrets    map[string]string `json:"secrets"`
	Client     string            `json:"client"`
	Secret     string            `json:"secret"`
	// Reconnect is the epoch of the connection that is reconnected; 0 for a new one.
	Reconnect int64 `json:"reconnect"`
	// Confirmed is the Use of an own integration that the person has confirmed.
	Confirmed string `json:"confirmed,omitempty"`
	// Device is the code of a consent on another device; nil if the browser is sent to the
	// service and back.
	Device *deviceCode `json:"device,omitempty"`
	// Given is the outcome of the consent if the person still has to confirm it.
	Given *given `json:"given,omitempty"`
}

// given is the connection that results from a consent.
type given struct {
	Connection Connection `json:"connection"`
	Token      Token      `json:"token"`
}

// Completed is the outcome of a consent.
type Completed struct {
	Connection
	// Replaces is the account that the connection had before, if the person consented with
	// another one. Then nothing changes until they confirm it.
	Replaces string
}

// isChanged reports whether somebody has changed the connection since the consent began.
func (p pending) isChanged(now *opened) bool {
	return !bytes.Equal(compact(now.Definition), compact(p.Connection.Definition)) || !maps.Equal(now.Fields, p.Connection.Fields) || !maps.Equal(now.secrets.Fields, p.Secrets)
}

// compact returns JSON without spaces. That of a pending consent has lost them.
func compact(text json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// Connect asks for the consent that a new connection needs. It returns the URL at the service
// where the person consents. The service then sends the browser back to the redirect URL.
func (cs *Consents) Connect(ctx context.Context, actor auth.Actor, in New, redirect string) (string, error) {
	c, err := cs.prepare(ctx, actor, in)
	if err != nil {
		return "", err
	}
	return cs.askConsent(ctx, actor, c, redirect, 0)
}

// prepare returns a new connection that lacks only the consent. It rejects a name that is taken
// now rather than after the consent.
func (cs *Consents) prepare(ctx context.Context, actor auth.Actor, in New) (*opened, error) {
	if err := checkName(in.Name); err != nil {
		return nil, err
	}
	existing, err := cs.repo.store.SealedConnection(ctx, actor.Workspace.ID, in.Name)
	if err != nil {
		return nil, err
	}
	if existing != nil {
		return nil, nameTaken(in.Name)
	}
	if in, err = cs.connections.Discover(ctx, actor, in); err != nil {
		return nil, err
	}
	return cs.connections.draft(ctx, actor, in)
}

// Reconnect asks for another consent to a connection, which stays as it is until that is
// completed. The hosts confirm where the credential may be sent if the workspace's own
// integration has changed.
func (cs *Consents) Reconnect(ctx context.Context, actor auth.Actor, id, redirect string, hosts []string) (string, error) {
	now, err := cs.connections.openChangeable(ctx, actor, id)
	if err == nil && !now.isConfirmed() && len(now.secrets.Fields) > 0 {
		err = fault.New(fault.InvalidRequest, "the integration of the connection was changed: change the connection with its hosts and its secret fields first, then reconnect it")
	}
	if err == nil {
		err = now.reconfirm(hosts)
	}
	if err != nil {
		return "", err
	}
	return cs.askConsent(ctx, actor, now, redirect, now.Epoch)
}

func (cs *Consents) askConsent(ctx context.Context, actor auth.Actor, c *opened, redirect string, epoch int64) (string, error) {
	if !c.auth.NeedsConsent() {
		return "", fault.Field("/auth", "%s is not connected by consent: create the connection with its fields", c.service.Name)
	}
	if c.auth.UsesDeviceCode() {
		return "", fault.Field("/definition/grant", "is device_code: connect with a code instead of a redirect")
	}
	client, err := cs.apps.clientFor(ctx, c)
	if err != nil {
		return "", err
	}
	state := rand.Text()
	wait := pending{
		Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Connection: c.Connection, Secrets: c.secrets.Fields,
		Client: client.id, Secret: client.secret, Reconnect: epoch, Confirmed: c.secrets.Confirmed,
	}
	address, err := authorizeURL(c, client, wait, state)
	if err != nil {
		return "", err
	}
	return address, cs.storeConsent(ctx, actor, state, wait, consentLife)
}

// authorizeURL returns the URL where a person consents.
func authorizeURL(c *opened, client oauthClient, wait pending, state string) (string, error) {
	env := c.env()
	u, err := c.auth.AuthorizeURL.URL(env)
	if err != nil {
		return "", fault.Field("/fields", "%v", err)
	}
	params := u.Query()
	if err := setParams(params, c.auth.Params, env); err != nil {
		return "", err
	}
	params.Set("response_type", "code")
	params.Set("client_id", client.id)
	params.Set("redirect_uri", wait.Redirect)
	params.Set("state", state)
	c.setScopes(params)
	if c.auth.PKCE {
		params.Set("code_challenge", oauth2.S256ChallengeFromVerifier(wait.Verifier))
		params.Set("code_challenge_method", "S256")
	}
	u.RawQuery = params.Encode()
	return u.String(), nil
}

// Complete completes a consent with the parameters with which the service sent the browser
// back. The state in them can be used once, and only by the person who was asked.
func (cs *Consents) Complete(ctx context.Context, actor auth.Actor, callback url.Values) (Completed, error) {
	state := callback.Get("state")
	wait, c, err := cs.takeConsent(ctx, actor, state)
	if err != nil {
		return Completed{}, err
	}
	if wait.Given != nil || wait.Device != nil {
		return Completed{}, consentExpired()
	}
	if err := checkIssuer(c, callback); err != nil {
		return Completed{}, err
	}
	if code := callback.Get("error"); code != "" {
		return Completed{}, refused(code, callback.Get("error_description"))
	}
	if callback.Get("code") == "" {
		return Completed{}, fault.New(fault.ConsentRefused, "the service sent the browser back without a code: connect again")
	}
	// Go on if the browser disconnects: the service issues the token once.
	ctx = context.WithoutCancel(ctx)
	if err := cs.obtain(ctx, actor, c, wait, callback); err != nil {
		return Completed{}, err
	}
	done, store := Completed{}, cs.storeGiven(actor, c, wait)
	if before := wait.Connection.Account; wait.Reconnect != 0 && before != "" && before != c.Account {
		done.Replaces, wait.Given = before, &given{c.Connection, *c.secrets.Token}
		store = func(ctx context.Context) error { return cs.storeConsent(ctx, actor, state, wait, consentLife) }
	}
	if err := cs.persister.persist("store a consent", c.ID, store).await(ctx); err != nil {
		return Completed{}, err
	}
	done.Connection = c.Connection
	return done, nil
}

// Confirm completes a consent that was given with another account than before.
func (cs *Consents) Confirm(ctx context.Context, actor auth.Actor, state string) (Connection, error) {
	wait, c, err := cs.takeConsent(ctx, actor, state)
	if err != nil {
		return Connection{}, err
	}
	if wait.Given == nil {
		return Connection{}, consentExpired()
	}
	c.Connection, c.secrets.Token = wait.Given.Connection, &wait.Given.Token
	if err := cs.persister.persist("store a consent", c.ID, cs.storeGiven(actor, c, wait)).await(ctx); err != nil {
		return Connection{}, err
	}
	return c.Connection, nil
}

// obtain exchanges the code of a consent for a token and accepts it.
func (cs *Consents) obtain(ctx context.Context, actor auth.Actor, c *opened, wait pending, callback url.Values) error {
	env := c.env()
	env.Callback = map[string]string{}
	for name := range callback {
		env.Callback[name] = callback.Get(name)
	}
	c.Learned = maps.Clone(c.Learned)
	delete(c.Learned, integration.Account) // only the service can say whose token the new one is
	if err := c.learn(integration.AtCallback, env); err != nil {
		return err
	}
	answer, err := cs.servers.exchangeCode(ctx, c, wait, callback.Get("code"))
	if err != nil {
		return fault.New(fault.ConsentRefused, "%v. Check the client ID and %s and the token URL, and connect again", err, c.clientCredential())
	}
	return cs.accept(ctx, actor, c, answer)
}

// accept sets the first token of a connection, learns from the response with the token, and
// tests the connection.
func (cs *Consents) accept(ctx context.Context, actor auth.Actor, c *opened, answer tokenAnswer) error {
	c.setToken(&answer.token)
	env := c.env()
	env.Token = answer.members
	if err := c.learn(integration.AtToken, env); err != nil {
		return err
	}
	if err := c.setHosts(); err != nil {
		return err
	}
	c.Status, c.Problem, c.UpdatedAt, c.UpdatedBy = Connected, "", clock.Now(), actor.Name()
	if err := cs.tester.testUnstored(ctx, c); err != nil {
		c.Status, c.Problem = Failing, err.Error()
	}
	return nil
}
