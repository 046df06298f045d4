package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

const (
	// maxConcurrent limits the subscriptions that a node works on at a time.
	maxConcurrent = 16
	// claimDuration is how long a node owns a subscription, unless it dies. It is longer than
	// timeout, so that no other node sends the same requests meanwhile.
	claimDuration = 2 * time.Minute
	// timeout is that of all requests for a subscription together.
	timeout = time.Minute
	// firstDelay and maxDelay bound the backoff after failures.
	firstDelay, maxDelay = 10 * time.Second, time.Hour
	// maxRemovals is how often the service is asked to forget a URL that nobody needs.
	maxRemovals = 8
	maxNote     = 1000
)

// Deps is what a reconciler uses.
type Deps struct {
	Store       Store
	Vault       Vault
	Operations  *operation.Actions
	Connections trigger.Connections
	Apps        Apps
	Programs    trigger.Programs
	Triggers    trigger.Store
	Values      trigger.Values
	Node        string
	// BaseURL returns the public URL of the installation.
	BaseURL func() string
	Log     *slog.Logger
}

// Reconciler makes services know the URLs that triggers need, and no others. It compares
// what is needed with what was done whenever a subscription is due, so nothing has to
// remember why: a step that was interrupted is found and taken again.
type Reconciler struct {
	*trigger.Ticker[Subscription]
	Deps
	slots chan struct{}
	work  sync.WaitGroup
}

// NewReconciler returns a reconciler.
func NewReconciler(d Deps) *Reconciler {
	r := &Reconciler{Deps: d, slots: make(chan struct{}, maxConcurrent)}
	r.Ticker = trigger.NewTicker(trigger.DueWork[Subscription]{
		Name: "subscriptions", Clock: clock.Steady, Handle: r.claim,
		Next: func(ctx context.Context) (*time.Time, error) {
			return d.Store.NextSubscription(ctx, d.Node, clock.Steady())
		},
		Due: func(ctx context.Context, now time.Time, limit int) ([]Subscription, error) {
			return d.Store.DueSubscriptions(ctx, d.Node, now, limit)
		},
	}, d.Log)
	return r
}

// Run reconciles until the context ends, then waits for what is in progress.
func (r *Reconciler) Run(ctx context.Context) error {
	defer r.work.Wait()
	if err := r.Store.RecheckSubscriptions(ctx, r.BaseURL(), clock.Steady()); err != nil && ctx.Err() == nil {
		r.Log.Warn("cannot look for subscriptions with another public URL", "error", err)
	}
	return r.Ticker.Run(ctx)
}

// claim takes a subscription that is due, and works on it in the background.
func (r *Reconciler) claim(ctx context.Context, s Subscription, _ time.Time) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	now := clock.Steady()
	claimed, err := r.Store.ClaimSubscription(ctx, s, r.Node, now, now.Add(claimDuration))
	if err != nil || !claimed {
		<-r.slots
		return err
	}
	r.work.Go(func() {
		defer func() { <-r.slots }()
		if err := r.reconcile(ctx, s); err != nil && ctx.Err() == nil {
			r.Log.Error("cannot reconcile a subscription", "subscription", s.ID, "error", err)
		}
	})
	return nil
}

type task struct {
	*Reconciler
	Subscription
	was      time.Time // NextAt when it was claimed
	contents contents
	need     Need
	service  *integration.Integration
	hook     *integration.Hook
}

// reconcile does what there is to do for a claimed subscription, and ends the claim.
func (r *Reconciler) reconcile(ctx context.Context, s Subscription) error {
	t := &task{Reconciler: r, Subscription: s, was: *s.NextAt}
	t.NextAt = nil
	err := t.do(ctx)
	failure, failed := errors.AsType[*action.Failure](err)
	switch {
	case ctx.Err() != nil: // the service stops: the next node goes on at once
		t.NextAt = &t.was
		err = nil
	case err == nil:
		t.Failures, t.Error = 0, nil
	case !failed:
		t.Failures++
		next := clock.Steady().Add(t.backoff())
		t.NextAt = &next
	default:
		err = nil
		if done, stopErr := t.failed(ctx, failure); done || stopErr != nil {
			return stopErr
		}
	}
	return errors.Join(err, r.Store.SaveSubscription(context.WithoutCancel(ctx), t.Subscription, t.was, true))
}

func (t *task) do(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if t.need, err = t.Store.SubscriptionNeed(ctx, t.Subscription); err != nil {
		return err
	}
	if t.contents, err = open(ctx, t.Vault, t.Subscription); err != nil {
		return err
	}
	if t.service, t.hook, err = t.Operations.FindHook(ctx, t.WorkspaceID, t.Hook); err != nil {
		return err
	}
	switch {
	case len(t.need.Triggers) == 0:
		return t.remove(ctx)
	case t.hook == nil:
		return &action.Failure{Code: trigger.CodeCorrupt, Message: fmt.Sprintf("there is no hook %s any more", t.Hook)}
	case t.hook.Scope == integration.PerApp:
		return t.useApp(ctx)
	case t.hook.Register == nil:
		return t.prepare(ctx, nil)
	case t.Registered && !t.isElsewhere() && !t.isDue():
		t.planRenewal()
		return t.learnAccount(ctx)
	case t.Registered && !t.isElsewhere() && t.hook.Renew != nil:
		return t.renew(ctx)
	}
	return t.register(ctx)
}

// isElsewhere reports whether the service was told another URL, or with another account.
func (t *task) isElsewhere() bool {
	return t.BaseURL != t.Reconciler.BaseURL() || t.isOtherAccount()
}

// isOtherAccount reports whether the connection is known to have another account than it had.
func (t *task) isOtherAccount() bool {
	was, now := t.contents.Account, t.need.Account
	return was != "" && now != "" && was != now
}

func (t *task) isDue() bool {
	return t.contents.ExpiresAt != nil && !clock.Now().Before(t.contents.renewAt())
}

// learnAccount keeps the account if it was not known at the registration.
func (t *task) learnAccount(ctx context.Context) error {
	if t.contents.Account != "" || t.need.Account == "" {
		return nil
	}
	t.contents.Account = t.need.Account
	return t.seal(ctx, t.Vault, t.contents)
}

func (t *task) planRenewal() {
	if t.contents.ExpiresAt == nil {
		return
	}
	next := clock.Steady().Add(max(t.contents.renewAt().Sub(clock.Now()), firstDelay))
	t.NextAt = &next
}

// prepare gives the subscription a URL and secrets unless it has them, or new ones if the
// service knows them for another account.
func (t *task) prepare(ctx context.Context, with map[string]any) error {
	c := &t.contents
	if c.Token == "" || t.isOtherAccount() && t.hook.Register != nil {
		c.Token, c.Secret = trigger.NewToken(), trigger.NewToken()
	}
	c.Account, t.BaseURL = t.need.Account, t.Reconciler.BaseURL()
	t.Registered = t.hook.Register == nil
	var err error
	if c.With, err = json.Marshal(with); err != nil {
		return err
	}
	return t.seal(ctx, t.Vault, *c)
}

// register tells the service the URL. If it knows one already, that ends first: for some
// services, removing the old one would remove the new one too.
func (t *task) register(ctx context.Context) error {
	with, err := t.settings(ctx)
	if err != nil {
		return err
	}
	if t.Registered {
		if err := t.unregister(ctx); err != nil {
			t.Log.Info("a service was not told to forget a URL that is replaced", "subscription", t.ID, "error", err)
		}
		t.Registered, t.contents.Attempted = false, false
	}
	again := t.contents.Attempted && !t.isElsewhere()
	if !again {
		t.contents.RegistrationID, t.contents.Answer = newUUID(), nil
	}
	t.contents.Attempted = true
	if err := t.prepare(ctx, with); err != nil {
		return err
	}
	if err := t.Store.SaveSubscription(ctx, t.Subscription, t.was, false); err != nil {
		return err
	}
	failpoint.Hit(failpoint.BeforeRegistration, t.ID)
	err = t.request(ctx, again, (*operation.Actions).Register)
	failpoint.Hit(failpoint.AfterRegistration, t.ID)
	return err
}

// renew extends the registration. If the service has forgotten it, there is a new one.
func (t *task) renew(ctx context.Context) error {
	err := t.request(ctx, false, (*operation.Actions).Renew)
	if failure, ok := errors.AsType[*action.Failure](err); ok && failure.Code == integration.NotFound {
		t.Registered, t.contents.Attempted = false, false
		return t.register(ctx)
	}
	return err
}

// request sends requests about the registration, and keeps what the service has answered.
func (t *task) request(ctx context.Context, again bool, send func(*operation.Actions, context.Context, operation.Registration, action.Connection) (operation.Registered, error)) error {
	about, err := t.contents.registration(t.Subscription, t.service, t.hook, clock.Now())
	if err != nil {
		return err
	}
	about.Repeated = again
	var made operation.Registered
	err = t.Connections.Use(ctx, t.WorkspaceID, t.need.Connection, timeout, func(ctx context.Context, c action.Connection) (err error) {
		made, err = send(t.Operations, ctx, about, c)
		return err
	})
	if err != nil {
		t.contents.Attempted = mayHaveArrived(err)
		return errors.Join(err, t.seal(ctx, t.Vault, t.contents))
	}
	t.Registered, t.ExpiresAt = true, made.ExpiresAt
	t.contents.RegisteredAt, t.contents.ExpiresAt = about.Now, made.ExpiresAt
	if t.contents.Answer, err = encode(made.Subscription); err != nil {
		return err
	}
	t.planRenewal()
	return t.seal(ctx, t.Vault, t.contents)
}

// mayHaveArrived reports whether a request that has failed may have had its effect.
func mayHaveArrived(err error) bool {
	failure, ok := errors.AsType[*action.Failure](err)
	return !ok || failure.Retryable || failure.Code == operation.OutcomeUnknown
}

// remove tells the service to forget the URL, and forgets the subscription.
func (t *task) remove(ctx context.Context) error {
	if t.Registered && t.hook != nil && t.hook.Unregister != nil && t.need.Connection != "" {
		if err := t.unregister(ctx); err != nil {
			return err
		}
		t.Registered, t.contents.Attempted = false, false
		if err := t.seal(ctx, t.Vault, t.contents); err != nil {
			return err
		}
	}
	_, err := t.Store.DeleteSubscription(ctx, t.Subscription, t.was)
	return err // if it is needed again, it is due
}

func (t *task) unregister(ctx context.Context) error {
	about, err := t.contents.registration(t.Subscription, t.service, t.hook, clock.Now())
	if err != nil {
		return err
	}
	about.Repeated = false
	return t.Connections.Use(ctx, t.WorkspaceID, t.need.Connection, timeout, func(ctx context.Context, c action.Connection) error {
		return t.Operations.Unregister(ctx, about, c)
	})
}

// failed records a failure and when to try again. It returns true if the subscription is
// given up: nobody needs it, and the service cannot be told.
func (t *task) failed(ctx context.Context, failure *action.Failure) (bool, error) {
	t.Failures++
	if len(t.need.Triggers) == 0 && t.Failures >= maxRemovals {
		t.Log.Warn("a service was not told to forget a URL that is no longer used", "subscription", t.ID, "hook", t.Hook, "error", failure.Message)
		return t.Store.DeleteSubscription(ctx, t.Subscription, t.was)
	}
	next := clock.Steady().Add(max(t.backoff(), min(failure.RetryAfter, maxDelay)))
	t.NextAt = &next
	message := failure.Message
	if base := t.Reconciler.BaseURL(); !isPublic(base) {
		message += fmt.Sprintf(" (services cannot call %s: set --public-url to an https URL that they can reach)", base)
	}
	t.Error = &trigger.Note{At: clock.Now(), Code: failure.Code, Message: run.Clip(message, maxNote)}
	return false, nil
}

// backoff returns the pause after the last of consecutive failures.
func (t *task) backoff() time.Duration {
	delay := firstDelay
	for n := 1; n < t.Failures && delay < maxDelay; n++ {
		delay *= 2
	}
	return min(delay, maxDelay)
}

// isPublic reports whether a public URL looks like one that services can reach.
func isPublic(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" {
		return false
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return ip.IsGlobalUnicast() && !ip.IsPrivate()
	}
	return strings.Contains(u.Hostname(), ".")
}
