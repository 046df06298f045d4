package connection

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
)

// The device authorization grant (RFC 8628): the service issues a code, the person enters it at
// the service on any device, and meanwhile we poll the token endpoint. There is no redirect back.
//
// The client that shows the code drives the polling: each PollDevice sends at most one request,
// and none before the interval of the service has passed. So the person stays signed in, any
// node can go on after a restart, and nothing runs for a person who has left.

const (
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
	// maxDeviceLife limits how long a person may take, even if the service allows more.
	maxDeviceLife = 30 * time.Minute
	// deviceInterval is the interval between two polls if the service names none, and what is
	// added to it when the service asks to slow down or fails.
	deviceInterval = 5 * time.Second
	maxUserCode    = 100
)

// DeviceConsent is what a person needs to consent on any device.
type DeviceConsent struct {
	State    string // identifies it to PollDevice
	UserCode string
	// URL is where the person enters the code. CompleteURL contains the code; it is empty
	// if the service has no such URL.
	URL         string
	CompleteURL string
	ExpiresAt   time.Time
	Interval    time.Duration
}

// ConnectDevice asks for the consent that a new connection needs, with a code that the person
// enters at the service.
func (cs *Consents) ConnectDevice(ctx context.Context, actor auth.Actor, in New) (DeviceConsent, error) {
	c, err := cs.prepare(ctx, actor, in)
	if err != nil {
		return DeviceConsent{}, err
	}
	return cs.askDevice(ctx, actor, c, 0)
}

// ReconnectDevice asks for another such consent to a connection, which stays as it is until
// that is completed.
func (cs *Consents) ReconnectDevice(ctx context.Context, actor auth.Actor, id string) (DeviceConsent, error) {
	c, err := cs.connections.openChangeable(ctx, actor, id)
	if err != nil {
		return DeviceConsent{}, err
	}
	return cs.askDevice(ctx, actor, c, c.Epoch)
}

func (cs *Consents) askDevice(ctx context.Context, actor auth.Actor, c *opened, epoch int64) (DeviceConsent, error) {
	if !c.auth.UsesDeviceCode() {
		return DeviceConsent{}, fault.Field("/definition/grant", "must be device_code to connect with a code")
	}
	asked, code, err := cs.servers.requestDeviceCode(ctx, c)
	if err != nil {
		return DeviceConsent{}, err
	}
	asked.State = rand.Text()
	wait := pending{
		Connection: c.Connection, Secrets: c.secrets.Fields, Reconnect: epoch,
		Device: &deviceCode{Code: code, Interval: asked.Interval, NextAt: clock.Now().Add(asked.Interval)},
	}
	return asked, cs.storeConsent(ctx, actor, asked.State, wait, asked.ExpiresAt.Sub(clock.Now()))
}

// DeviceOutcome is what is known about a consent on another device.
type DeviceOutcome struct {
	// Connection is the connection that results from the consent; nil until the person has
	// consented.
	Connection *Connection
	// Wait is how long to wait before the next poll.
	Wait time.Duration
}

// PollDevice asks the service whether a person has consented, unless it is too early for that,
// and stores the connection if they have. Only the person who was asked may call it.
func (cs *Consents) PollDevice(ctx context.Context, actor auth.Actor, state string) (DeviceOutcome, error) {
	if stored, ok := cs.accepted.Load(acceptedKey(actor, state)); ok {
		return stored.(*acceptedDevice).outcome()
	}
	consent, err := cs.store.Consent(ctx, hashState(state), actor.ID, clock.Now())
	if err != nil {
		return DeviceOutcome{}, err
	}
	if consent == nil || consent.WorkspaceID != actor.Workspace.ID {
		return DeviceOutcome{}, deviceExpired()
	}
	wait, c, err := cs.openConsent(ctx, consent)
	if err != nil {
		return DeviceOutcome{}, err
	}
	if wait.Device == nil {
		return DeviceOutcome{}, deviceExpired()
	}
	now := clock.Now()
	if left := wait.Device.NextAt.Sub(now); left > 0 {
		return DeviceOutcome{Wait: left}, nil
	}
	// This claims the poll: nobody else sends one meanwhile. If the process dies, the claim
	// ends by itself.
	claimed, err := cs.delayPoll(ctx, consent, wait, now.Add(tokenTimeout+wait.Device.Interval))
	if err != nil || !claimed {
		return DeviceOutcome{Wait: wait.Device.Interval}, err
	}
	// Go on if the browser disconnects: the service issues the token once.
	ctx = context.WithoutCancel(ctx)
	answer, err := cs.servers.redeemDevice(ctx, c, *wait.Device)
	if longer, again := asksAgain(err); again {
		wait.Device.Interval = min(wait.Device.Interval+longer, maxDeviceLife)
		_, err := cs.delayPoll(ctx, consent, wait, clock.Now().Add(wait.Device.Interval))
		return DeviceOutcome{Wait: wait.Device.Interval}, err
	}
	take := func(ctx context.Context) error {
		_, err := cs.store.TakeConsent(ctx, consent.StateHash, actor.ID, now)
		return err
	}
	if err != nil {
		if err := take(ctx); err != nil {
			return DeviceOutcome{}, err
		}
		return DeviceOutcome{}, deviceRefused(c, err)
	}
	if err := cs.accept(ctx, actor, c, answer); err != nil {
		return DeviceOutcome{}, err
	}
	// A custom connection does not know its account, so there is no other one to confirm.
	store := cs.storeGiven(actor, c, wait)
	storing := cs.persister.persist("store a consent", c.ID, func(ctx context.Context) error {
		if err := take(ctx); err != nil {
			return err
		}
		return store(ctx)
	})
	return cs.acceptDevice(acceptedKey(actor, state), &acceptedDevice{c, storing})
}

// acceptedDevice is a consent on another device for which the service has issued a token.
type acceptedDevice struct {
	connection *opened // not to be read before storing is done
	storing    *commit
}

func (d *acceptedDevice) outcome() (DeviceOutcome, error) {
	select {
	case <-d.storing.done:
	default:
		return DeviceOutcome{Wait: deviceInterval}, nil
	}
	if d.storing.err != nil {
		return DeviceOutcome{}, d.storing.err
	}
	return DeviceOutcome{Connection: &d.connection.Connection}, nil
}

// acceptedKey identifies a consent of a person.
func acceptedKey(actor auth.Actor, state string) any {
	return [3]string{actor.Workspace.ID, actor.ID, string(hashState(state))}
}

// acceptDevice waits until a consent is stored. If that takes too long, later polls return the
// outcome.
func (cs *Consents) acceptDevice(key any, d *acceptedDevice) (DeviceOutcome, error) {
	select {
	case <-d.storing.done:
	case <-time.After(storePatience):
		cs.accepted.Store(key, d)
		time.AfterFunc(maxDeviceLife, func() { cs.accepted.Delete(key) })
	}
	return d.outcome()
}

// delayPoll stores when the service may be polled next, unless another request has just done
// so.
func (cs *Consents) delayPoll(ctx context.Context, consent *Consent, wait pending, until time.Time) (stored bool, err error) {
	was := consent.Pending
	wait.Device.NextAt = until
	if err := cs.sealConsent(ctx, consent, wait); err != nil {
		return false, err
	}
	return cs.store.UpdateConsent(ctx, *consent, was)
}

// deviceCode is a code that a person is asked to enter at a service.
type deviceCode struct {
	Code     string        `json:"code"`
	Interval time.Duration `json:"interval"`
	// NextAt is when the service may be polled next.
	NextAt time.Time `json:"next_at"`
}

// requestDeviceCode asks the service for a code.
func (a *authServers) requestDeviceCode(ctx context.Context, c *opened) (asked DeviceConsent, code string, err error) {
	params := url.Values{"client_id": {c.client().id}}
	c.setScopes(params)
	if err := setParams(params, c.auth.Params, c.env()); err != nil {
		return asked, "", err
	}
	now := clock.Now()
	resp, err := a.postAsClient(ctx, c, c.auth.DeviceURL, params, c.auth.TokenBody)
	if failure, ok := errors.AsType[*egress.Error](err); ok {
		return asked, "", fault.New(fault.ConsentRefused, "the service issued no code: %s. Check device_url, and connect again", failure.Message)
	}
	if err != nil {
		return asked, "", err
	}
	members := parseMembers(resp)
	text := func(names ...string) (value string) {
		for _, name := range names {
			member, _ := members[name].(string)
			value = cmp.Or(value, member)
		}
		return value
	}
	code, asked.UserCode = text("device_code"), text("user_code")
	if resp.Status >= http.StatusBadRequest || code == "" || !isShown(asked.UserCode) {
		return asked, "", fault.New(fault.ConsentRefused, "the service issued no code: %s. Check the client ID and %s, device_url and whether the client may use this grant, and connect again",
			describeDeviceError(c, resp, members, params), c.clientCredential())
	}
	endpoint, err := c.auth.DeviceURL.URL(c.env())
	if err != nil {
		return asked, "", err
	}
	// Some services still use the name of a draft.
	if asked.URL = verificationURL(text("verification_uri", "verification_url"), endpoint); asked.URL == "" {
		return asked, "", fault.New(fault.ConsentRefused, "the service did not say at which https address people enter the code (verification_uri)")
	}
	asked.CompleteURL = verificationURL(text("verification_uri_complete"), endpoint)
	life, interval := time.Duration(secondsOf(members["expires_in"]))*time.Second, time.Duration(secondsOf(members["interval"]))*time.Second
	asked.ExpiresAt = now.Add(min(cmp.Or(life, consentLife), maxDeviceLife))
	asked.Interval = min(cmp.Or(interval, deviceInterval), maxDeviceLife)
	return asked, code, nil
}

// isShown reports whether a code can be shown to a person.
func isShown(code string) bool {
	return code != "" && len(code) <= maxUserCode && !strings.ContainsFunc(code, unicode.IsControl)
}

func describeDeviceError(c *opened, resp *egress.Response, members map[string]any, params url.Values) string {
	failure := &tokenError{status: resp.Status}
	failure.code, failure.description = errorOf(members)
	failure.hide(c, params)
	return failure.what()
}

// verificationURL returns the URL where a person enters a code, or "" if it is not safe to send
// people there. Only a service without TLS itself may have one without TLS.
func verificationURL(text string, endpoint *url.URL) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || endpoint.Scheme != "http") {
		return ""
	}
	return u.String()
}
