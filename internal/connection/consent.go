package connection

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/uid"
)

// consentLife is how long a person may take to consent.
const consentLife = 10 * time.Minute

// pending is what the completion of a consent needs.
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
	// Device is the code of a person who consents on another device; nil for a person who
	// is sent to the service and back.
	Device *deviceCode `json:"device,omitempty"`
	// Given is what the consent has given, if the person still has to confirm it.
	Given *given `json:"given,omitempty"`
}

// given is the connection that a consent makes.
type given struct {
	Connection Connection `json:"connection"`
	Token      Token      `json:"token"`
}

// Completed is the outcome of a consent.
type Completed struct {
	Connection
	// Replaces is the account that the connection had until now, if the person consented
	// with another one. Nothing has changed then, until they confirm it.
	Replaces string
}

// isChanged reports whether a person has changed the connection since the consent began.
func (p pending) isChanged(now *opened) bool {
	return !bytes.Equal(compact(now.Definition), compact(p.Connection.Definition)) || !maps.Equal(now.Fields, p.Connection.Fields) || !maps.Equal(now.secrets.Fields, p.Secrets)
}

// compact returns JSON without spaces, as it is in a pending consent.
func compact(text json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// Connect begins to make a connection that needs the consent of a person. It returns
// the URL at the service where the person consents. The service sends the browser back
// to the redirect URL.
func (s *Service) Connect(ctx context.Context, actor auth.Actor, in New, redirect string) (string, error) {
	c, err := s.prepare(ctx, actor, in)
	if err != nil {
		return "", err
	}
	return s.askConsent(ctx, actor, c, redirect, 0)
}

// prepare returns a connection that needs the consent of a person, as it will be made.
func (s *Service) prepare(ctx context.Context, actor auth.Actor, in New) (*opened, error) {
	if !namePattern.MatchString(in.Name) {
		return nil, fault.Field("/name", nameRule)
	}
	existing, err := s.store.SealedConnection(ctx, actor.Workspace.ID, in.Name)
	if err != nil {
		return nil, err
	}
	if existing != nil {
		return nil, nameTaken(in.Name)
	}
	if in, err = s.Discover(ctx, actor, s.forService(in)); err != nil {
		return nil, err
	}
	now := clock.Now()
	c := &opened{Connection: Connection{
		ID: uid.New(uid.Connection), WorkspaceID: actor.Workspace.ID, Name: in.Name, Integration: in.Integration, Definition: in.Definition, Auth: in.Auth,
		Access: Everyone, CreatedAt: now, CreatedBy: actor.Name(),
	}}
	if err := s.setAccess(ctx, &c.Connection, in.Access, in.Members); err != nil {
		return nil, err
	}
	return c, s.configure(ctx, c, in)
}

// Reconnect begins to renew the consent for a connection. Until it is completed, the
// connection stays as it is. The hosts confirm where the credential may be sent if its own
// integration has changed.
func (s *Service) Reconnect(ctx context.Context, actor auth.Actor, id, redirect string, hosts []string) (string, error) {
	now, err := s.readForConsent(ctx, actor, id)
	if err == nil && !now.isConfirmed() && len(now.secrets.Fields) > 0 {
		err = fault.New(fault.InvalidRequest, "the integration of the connection was changed: change the connection with its hosts and its secret fields first, then reconnect it")
	}
	if err == nil {
		err = now.reconfirm(hosts)
	}
	if err != nil {
		return "", err
	}
	return s.askConsent(ctx, actor, now, redirect, now.Epoch)
}

// readForConsent reads a connection whose consent is renewed.
func (s *Service) readForConsent(ctx context.Context, actor auth.Actor, id string) (*opened, error) {
	c, err := s.Get(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	if err := checkChange(actor, c); err != nil {
		return nil, err
	}
	return s.readSealed(ctx, c)
}

func (s *Service) askConsent(ctx context.Context, actor auth.Actor, c *opened, redirect string, epoch int64) (string, error) {
	if !c.auth.NeedsConsent() {
		return "", fault.Field("/auth", "%s is not connected by consent: create the connection with its fields", c.service.Name)
	}
	if c.auth.UsesDeviceCode() {
		return "", fault.Field("/definition/grant", "is device_code: connect with a code instead of a redirect")
	}
	client, err := s.clientFor(ctx, c)
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
	return address, s.storeConsent(ctx, actor, state, wait, consentLife)
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

// Complete completes a consent with the parameters that the service sent back. The
// state in them can be used once, and only by the person who was asked.
func (s *Service) Complete(ctx context.Context, actor auth.Actor, callback url.Values) (Completed, error) {
	state := callback.Get("state")
	wait, c, err := s.takeConsent(ctx, actor, state)
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
	// A browser that goes away does not lose the token.
	ctx = context.WithoutCancel(ctx)
	if err := s.obtain(ctx, actor, c, wait, callback); err != nil {
		return Completed{}, err
	}
	done, store := Completed{}, s.storeGiven(actor, c, wait)
	if before := wait.Connection.Account; wait.Reconnect != 0 && before != "" && before != c.Account {
		done.Replaces, wait.Given = before, &given{c.Connection, *c.secrets.Token}
		store = func(ctx context.Context) error { return s.storeConsent(ctx, actor, state, wait, consentLife) }
	}
	if err := s.persist("store a consent", c.ID, store).await(ctx); err != nil {
		return Completed{}, err
	}
	done.Connection = c.Connection
	return done, nil
}

// Confirm reconnects a connection with another account than before.
func (s *Service) Confirm(ctx context.Context, actor auth.Actor, state string) (Connection, error) {
	wait, c, err := s.takeConsent(ctx, actor, state)
	if err != nil {
		return Connection{}, err
	}
	if wait.Given == nil {
		return Connection{}, consentExpired()
	}
	c.Connection, c.secrets.Token = wait.Given.Connection, &wait.Given.Token
	if err := s.persist("store a consent", c.ID, s.storeGiven(actor, c, wait)).await(ctx); err != nil {
		return Connection{}, err
	}
	return c.Connection, nil
}

func consentExpired() error {
	return fault.New(fault.ConsentExpired,
		"this consent can no longer be completed: it took longer than 10 minutes, was completed before, or was started by another person or in another workspace. Connect again")
}

// checkIssuer checks which authorization server has sent the browser back (RFC 9207):
// the code of another one must not be sent to the token endpoint of this one. If the
// issuer of a custom connection is not known, it must be where the person was sent.
func checkIssuer(c *opened, callback url.Values) error {
	issuer := callback.Get("iss")
	switch {
	case issuer == "" && !c.auth.IssRequired, issuer != "" && issuer == c.auth.Issuer:
		return nil
	case issuer == "":
		return fault.New(fault.ConsentRefused, "the browser was sent back without the name of the authorization server (iss), which %s always sends: connect again", c.auth.Issuer)
	case c.auth.Issuer != "":
		return fault.New(fault.ConsentRefused, "the browser was sent back by %q instead of %s: connect again", shorten(issuer), c.auth.Issuer)
	case c.Integration != "": // the endpoints of a manifest belong together
		return nil
	}
	from, err := url.Parse(issuer)
	asked, askedErr := c.auth.AuthorizeURL.URL(c.env())
	if err != nil || askedErr != nil || from.Scheme != asked.Scheme || from.Host != asked.Host {
		return fault.New(fault.ConsentRefused, "the browser was sent back by %q, which is not where authorize_url is. If it belongs to the same provider, set issuer in the definition to it, and connect again", shorten(issuer))
	}
	return nil
}

// refused returns the problem of a consent that ended with an error of RFC 6749, section
// 4.1.2.1, or of the service.
func refused(code, description string) error {
	advice := "check the OAuth app at the service, its redirect URL and its scopes, and connect again"
	switch code {
	case "access_denied", "user_cancelled_login", "user_cancelled_authorize":
		advice = "connect again and allow it; some services require an administrator to allow the app first"
	case "server_error", "temporarily_unavailable":
		advice = "the service has a problem; connect again later"
	case "invalid_scope":
		advice = "the OAuth app at the service may not ask for these scopes; allow them there and connect again"
	case "unauthorized_client", "unsupported_response_type":
		advice = "allow the authorization code grant in the OAuth app at the service, and connect again"
	}
	return fault.New(fault.ConsentRefused, "the access was not allowed at the service: %s. To fix it: %s", describeError(code, description), advice)
}

// describeError describes an error that a service reported.
func describeError(code, description string) string {
	if description == "" {
		return shorten(code)
	}
	return shorten(code) + " (" + shorten(description) + ")"
}

// maxReported is how much of a text of a service is shown.
const maxReported = 300

// shorten returns the beginning of a text on one line.
func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if runes := []rune(text); len(runes) > maxReported {
		text = string(runes[:maxReported]) + "…"
	}
	return text
}

// obtain gets a token for the code of a consent, and learns what the service tells.
func (s *Service) obtain(ctx context.Context, actor auth.Actor, c *opened, wait pending, callback url.Values) error {
	env := c.env()
	env.Callback = map[string]string{}
	for name := range callback {
		env.Callback[name] = callback.Get(name)
	}
	c.forgetAccount()
	if err := s.learn(c, integration.AtCallback, env); err != nil {
		return err
	}
	answer, err := s.exchangeCode(ctx, c, wait, callback.Get("code"))
	if err != nil {
		return fault.New(fault.ConsentRefused, "%v. Check the client ID and %s and the token URL, and connect again", err, c.clientCredential())
	}
	return s.accept(ctx, actor, c, answer)
}

// accept sets the first token of a connection, learns what the service tells, and tests
// the connection.
func (s *Service) accept(ctx context.Context, actor auth.Actor, c *opened, answer tokenAnswer) error {
	c.setToken(&answer.token)
	env := c.env()
	env.Token = answer.members
	if err := s.learn(c, integration.AtToken, env); err != nil {
		return err
	}
	if err := s.setHosts(c); err != nil {
		return err
	}
	c.Status, c.Problem, c.UpdatedAt, c.UpdatedBy = Connected, "", clock.Now(), actor.Name()
	if err := s.learnFromTest(ctx, c); err != nil {
		c.Status, c.Problem = Failing, err.Error()
	}
	return nil
}

// storeGiven returns a function that stores what a consent has given.
func (s *Service) storeGiven(actor auth.Actor, c *opened, wait pending) func(context.Context) error {
	return func(ctx context.Context) error {
		err := s.saveConsent(ctx, actor, c, wait)
		// Such as a name that is taken by now. If the connection still exists, its own token
		// may be part of the same grant.
		if _, rejected := fault.As(err); rejected && !isTemporary(err) && !fault.Is(err, fault.ConsentExpired) {
			s.revoke(ctx, c)
		}
		return err
	}
}

// saveConsent stores a connection that a person has consented to, unless that is done.
// Steps that wait for it continue.
func (s *Service) saveConsent(ctx context.Context, actor auth.Actor, c *opened, wait pending) error {
	if wait.Reconnect == 0 {
		return s.insertConsented(ctx, actor, c)
	}
	entry := s.entry(actor, "connection.reconnected", c.Connection)
	for {
		was, err := s.readSealed(ctx, c.Connection)
		if err != nil {
			return err
		}
		if err := checkChange(actor, was.Connection); err != nil {
			return err
		}
		if was.keepsToken(c) { // the store has failed after it was written
			return s.wakeSteps(ctx, was.Connection)
		}
		// It may have been renewed or marked as broken in the meantime, which the new
		// consent replaces, or changed, which the person has not consented to, or
		// reconnected once more.
		if was.Epoch != wait.Reconnect && (wait.isChanged(was) || was.UpdatedAt.After(c.UpdatedAt)) {
			return fault.New(fault.ConsentExpired, "the connection %q was changed while you were at the service: reconnect it once more", c.Name)
		}
		c.Epoch = was.Epoch + 1
		c.keepReplaced(was, clock.Now())
		sealed, err := s.seal(ctx, c)
		if err != nil {
			return err
		}
		updated, err := s.store.UpdateConnection(ctx, sealed, was.Epoch, &entry)
		if err != nil {
			return err
		}
		if updated {
			return s.wakeSteps(ctx, c.Connection)
		}
	}
}

// insertConsented stores a new connection that a person has consented to, unless that is
// done.
func (s *Service) insertConsented(ctx context.Context, actor auth.Actor, c *opened) error {
	found, err := s.store.Connection(ctx, c.WorkspaceID, c.ID)
	if err != nil || found != nil { // the store has failed after it was written
		return err
	}
	c.Epoch = 1
	sealed, err := s.seal(ctx, c)
	if err != nil {
		return err
	}
	return s.insert(ctx, actor, sealed)
}

// wakeSteps wakes the steps that wait for a connection. If it fails, they find out by
// themselves.
func (s *Service) wakeSteps(ctx context.Context, c Connection) error {
	ctx = context.WithoutCancel(ctx)
	for more := true; more; {
		var err error
		if more, err = s.store.WakeSteps(ctx, c.WorkspaceID, c.Name, clock.Steady()); err != nil {
			return err
		}
	}
	return nil
}

// exchangeCode exchanges the code of a consent for a token.
func (s *Service) exchangeCode(ctx context.Context, c *opened, wait pending, code string) (tokenAnswer, error) {
	params := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {wait.Redirect}}
	if c.auth.PKCE {
		params.Set("code_verifier", wait.Verifier)
	}
	if err := setParams(params, c.auth.TokenParams, c.env()); err != nil {
		return tokenAnswer{}, err
	}
	answer, err := s.requestToken(ctx, c, c.auth.TokenURL, params)
	if err != nil || c.auth.Exchange == nil {
		return answer, err
	}
	c.secrets.Token = &answer.token
	return s.exchangeToken(ctx, c)
}

// exchangeToken trades the token of a connection for one that lives longer.
func (s *Service) exchangeToken(ctx context.Context, c *opened) (tokenAnswer, error) {
	params := url.Values{}
	if err := setParams(params, c.auth.Exchange.Params, c.env()); err != nil {
		return tokenAnswer{}, err
	}
	return s.requestToken(ctx, c, c.auth.Exchange.URL, params)
}

// learn sets the variables that a stage of connecting gives.
func (s *Service) learn(c *opened, stage integration.Stage, env integration.Env) error {
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
