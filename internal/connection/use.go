package connection

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
)

// Opener opens connections for steps, triggers and everything else that calls services, and
// provides the masks that hide their secrets in records.
type Opener struct {
	repo    *repository
	renewer *Renewer
	client  Client // sends tests
	log     *slog.Logger
	// rejected has the connections whose new token was rejected. Some services respond with
	// 401 to everything that the account may not do; without a pause, every such call would
	// renew the token.
	rejected pauses
	masks    *mask.Cache
	recent   recentMasks

	mu   sync.Mutex
	used map[string]time.Time // since the last flush, by connection id
}

// Use calls a function with a connection. If the server rejects the credential, Use finds out
// with the test of the connection whether the credential is really the reason, renews it if it
// is and can be renewed, and calls the function once more. It waits at most the given time for
// a token. It returns a BrokenError if the connection has to be reconnected first.
func (o *Opener) Use(ctx context.Context, workspaceID, name string, wait time.Duration, call usage) error {
	c, err := o.repo.read(ctx, workspaceID, name)
	if err == nil {
		c, err = o.renewer.within(ctx, c, wait, o.renewer.refresh)
	}
	if err != nil {
		return err
	}
	return o.use(ctx, c, wait, call, o.accepts)
}

// connection returns a connection as actions use it.
func (o *Opener) connection(c *opened) action.Connection {
	return action.Connection{Name: c.Name, Integration: c.Integration, Variables: c.env().Connection, Credential: c.credential(), Mask: o.mask(c)}
}

// A usage calls a service with a connection. A judge finds out why the service rejected it.
type (
	usage = func(context.Context, action.Connection) error
	judge = func(context.Context, *opened) verdict
)

// verdict says whether a service accepts a credential after it has responded with 401.
type verdict int

const (
	rejected verdict = iota
	accepted         // the rejection was about the request
	unknown          // the test failed, and may succeed later
)

// use is Use for an open connection. If its credential is rejected, judge finds out whether
// the credential was the reason.
func (o *Opener) use(ctx context.Context, c *opened, wait time.Duration, call usage, judge judge) error {
	err := call(ctx, o.connection(c))
	if isRejected(err) {
		c, err = o.afterRejection(ctx, c, err, wait, call, judge)
	}
	if err == nil {
		o.markUsed(c.ID)
		o.setStatus(ctx, c, Connected, "")
	}
	return err
}

// afterRejection renews a rejected credential if that may help, and calls the function again.
// If the credential is not the reason for the 401, that call may treat the 401 as any other
// response.
func (o *Opener) afterRejection(ctx context.Context, c *opened, rejection error, wait time.Duration, call usage, judge judge) (*opened, error) {
	judged := judge(ctx, c)
	if pause, _ := o.rejected.left(c, clock.Steady()); judged == rejected && c.hasToken() && pause == 0 {
		renewed, err := o.renewer.within(ctx, c, wait, o.renewer.renew)
		if err != nil {
			return c, err
		}
		c = renewed
		if rejection = call(ctx, o.connection(c)); !isRejected(rejection) {
			return c, rejection
		}
		o.rejected.begin(c, rejection, clock.Steady())
		judged = judge(ctx, c)
	}
	switch judged {
	case rejected:
		o.setStatus(ctx, c, Failing, "the service rejected the credential (401)")
		return c, rejection
	case unknown:
		return c, retryable(rejection)
	default:
		known := o.connection(c)
		known.Accepted = true
		return c, call(ctx, known)
	}
}

// accepts sends the test of a connection to find out whether the service accepts the
// credential. Without a test, or if the test fails for a reason that a retry would not fix, the
// credential counts as rejected.
func (o *Opener) accepts(ctx context.Context, c *opened) verdict {
	if c.auth.Test == nil {
		return rejected
	}
	_, err := sendTest(ctx, o.client, c, o.connection(c))
	if err == nil {
		return accepted
	}
	if failure, ok := errors.AsType[*action.Failure](err); ok && !failure.Retryable {
		return rejected
	}
	return unknown
}

// retryable returns a copy of a failure that is retried and does not reject the credential.
func retryable(err error) error {
	failure, ok := errors.AsType[*action.Failure](err)
	if !ok {
		return err
	}
	again := *failure
	again.Rejected, again.Retryable = false, true
	return &again
}

func isRejected(err error) bool {
	failure, ok := errors.AsType[*action.Failure](err)
	return ok && failure.Rejected
}

// setStatus records whether a connection works, if its status changes. An error of the store is
// only logged: the call itself is done, and the next one records the status.
func (o *Opener) setStatus(ctx context.Context, c *opened, status Status, problem string) {
	if c.Status == status {
		return
	}
	if _, err := o.repo.store.SetConnectionStatus(context.WithoutCancel(ctx), c.WorkspaceID, c.ID, c.Epoch, status, problem); err != nil {
		o.log.Warn("cannot record whether a connection works", "connection", c.ID, "status", string(status), "error", err)
	}
}

// endPauses allows the token of a connection to be requested again at once.
func (o *Opener) endPauses(id string) {
	o.rejected.end(id)
	o.renewer.failed.end(id)
}

func (o *Opener) markUsed(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used[id] = clock.Now()
}

// Flush stores when connections were last used. A write for each use would be too many.
func (o *Opener) Flush(ctx context.Context) error {
	o.mu.Lock()
	used := o.used
	o.used = map[string]time.Time{}
	o.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	return o.repo.store.MarkConnectionsUsed(ctx, used)
}

// Verifying returns the secret with which the service signs its calls, rendered from a template
// of its manifest, and the variables of the connection. The secret is "" if the connection does
// not have it.
func (o *Opener) Verifying(ctx context.Context, workspaceID, name string, secret integration.Template) (text string, variables map[string]string, err error) {
	c, err := o.repo.readAny(ctx, workspaceID, name)
	if err == nil {
		err = o.repo.refuseUnconfirmed(ctx, c)
	}
	if err != nil {
		return "", nil, err
	}
	env := c.env()
	secrets := map[string]string{}
	maps.Copy(secrets, env.Secret)
	secrets[integration.ClientSecret] = c.client().secret
	env.Secret = secrets
	text, _, err = secret.Text(env)
	return text, env.Connection, err
}
