package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/integration"
)

// Renewer renews tokens before they expire, and stores what services issue.
type Renewer struct {
	repo      *repository
	ending    EndingStore
	servers   *authServers
	persister *persister
	node      string // this one
	log       *slog.Logger

	renewals singleflight.Group // by connection id
	storing  sync.Map           // ids of connections whose renewal waits for the store
	kept     sync.Map           // ids of connections whose new token is not stored yet
	failed   pauses             // after a renewal that failed for now
}

const (
	// renewalTime bounds one renewal. A claim is valid for longer, so that two nodes
	// never use a refresh token at the same time.
	renewalTime = 45 * time.Second
	claimTime   = 60 * time.Second
	// claimCheck is how often others look whether a renewal is done.
	claimCheck = 100 * time.Millisecond
	// quickRenewal is shorter than the lease of a node: a renewal that takes no longer has
	// kept its claim all the time.
	quickRenewal = time.Second
)

// refresh returns a connection with a token that can be used. One that is about to expire
// is renewed in the background; only one that has expired is waited for.
func (r *Renewer) refresh(ctx context.Context, c *opened) (*opened, error) {
	switch now := clock.Now(); {
	case !c.hasToken() || !c.secrets.Token.isDue(now):
		return c, nil
	case c.secrets.Token.isUsable(now):
		r.startRenewal(ctx, c)
		return c, nil
	}
	return r.renew(ctx, c)
}

// within waits for the token of a connection no longer than the limit.
func (r *Renewer) within(ctx context.Context, c *opened, limit time.Duration, get func(context.Context, *opened) (*opened, error)) (*opened, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ready, err := get(limited, c)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return ready, err
	}
	if _, storing := r.storing.Load(c.ID); storing {
		return nil, &StoreError{c.Name, err}
	}
	return nil, &action.Failure{
		Code: action.TimedOut, Retryable: true,
		Message: fmt.Sprintf("the token of the connection %q was not renewed within %s", c.Name, clock.FormatDuration(limit)),
	}
}

// renew returns the connection with a token of a later epoch than the given one, or the
// connection that has its name by now. One caller at a time renews it, on all nodes
// together; the others wait for the result. A caller that gives up does not interrupt it.
func (r *Renewer) renew(ctx context.Context, old *opened) (*opened, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case result := <-r.startRenewal(ctx, old):
			if result.Err != nil {
				return nil, result.Err
			}
			now := result.Val.(*opened)
			switch {
			case now.ID == old.ID && now.Epoch <= old.Epoch: // it was under way for an older epoch
			case now.hasToken() && now.secrets.Token == nil, now.keepsToken(old): // a person has changed the connection meanwhile
				old = now
			default:
				return now, nil
			}
		}
	}
}

// startRenewal renews a token in the background, unless that is under way.
func (r *Renewer) startRenewal(ctx context.Context, old *opened) <-chan singleflight.Result {
	return r.renewals.DoChan(old.ID, func() (any, error) {
		r.persister.running.Add(1)
		defer r.persister.running.Done()
		return r.renewOnce(context.WithoutCancel(ctx), old)
	})
}

// renewOnce claims the renewal and does it, or waits until another node has done it.
func (r *Renewer) renewOnce(ctx context.Context, old *opened) (*opened, error) {
	if _, kept := r.kept.Load(old.ID); kept {
		return nil, &StoreError{old.Name, errKept}
	}
	if left, cause := r.failed.left(old, clock.Steady()); left > 0 {
		return nil, &action.Failure{
			Code: CodeUnavailable, Retryable: true, RetryAfter: left,
			Message: fmt.Sprintf("the token of the connection %q could not be renewed, and is not requested again for a moment: %v", old.Name, cause),
		}
	}
	waiting, cancel := context.WithTimeout(ctx, claimTime+renewalTime)
	defer cancel()
	for {
		now := clock.Steady()
		claim := Claim{
			WorkspaceID: old.WorkspaceID, ID: old.ID, Epoch: old.Epoch, Broken: old.Status == NeedsReconnect,
			Node: r.node, At: now, Until: now.Add(claimTime),
		}
		claimed, current, err := r.claim(ctx, old, claim)
		switch {
		case err != nil:
			return nil, err
		case claimed:
			return r.renewClaimed(ctx, old, claim)
		case current.ID != old.ID || current.Epoch > old.Epoch:
			return current, nil
		case !clock.Sleep(waiting, claimCheck):
			return nil, unavailable(old.Name, waiting.Err())
		}
	}
}

// claim claims a renewal. If somebody else has done so, it returns the connection.
func (r *Renewer) claim(ctx context.Context, old *opened, claim Claim) (claimed bool, current *opened, err error) {
	defer r.useStore(old.ID)()
	claimed, err = r.repo.store.ClaimRenewal(ctx, claim)
	if err != nil {
		r.release(ctx, claim) // it may be written
		return false, nil, storeFailed(ctx, old.Name, err)
	}
	if !claimed {
		current, err = r.repo.read(ctx, old.WorkspaceID, old.Name)
	}
	return claimed, current, err
}

// useStore notes that a renewal waits for the store, until the returned function is
// called.
func (r *Renewer) useStore(id string) (end func()) {
	r.storing.Store(id, true)
	return func() { r.storing.Delete(id) }
}

// renewClaimed requests a new token and stores it before anyone uses it: a refresh
// token is often valid only once, and this one may have been the last use of it.
func (r *Renewer) renewClaimed(ctx context.Context, old *opened, claim Claim) (*opened, error) {
	failpoint.Hit(failpoint.BeforeRenewal, old.ID)
	answer, err := r.servers.issue(ctx, old)
	failpoint.Hit(failpoint.AfterRenewal, old.ID)
	if err != nil {
		return r.failRenewal(ctx, old, claim, err)
	}
	r.failed.end(old.ID)
	i := issuedToken{old, answer, claim}
	renewed, err := r.storeIssued(ctx, i)
	if _, failed := errors.AsType[*StoreError](err); failed {
		r.log.Error("a new token of a connection could not be stored; it is kept in memory until it can", "connection", old.ID, "error", err)
		r.storeLater(i)
	}
	return renewed, err
}

// storeIssued stores a token that was issued for a connection, and returns what the
// connection is then. A connection that was renewed by another node or changed by a person
// meanwhile stays as it is, unless it still has the token that this one replaces. So a
// token repairs a connection that another node found to be broken, because it tried the
// same refresh token.
func (r *Renewer) storeIssued(ctx context.Context, i issuedToken) (*opened, error) {
	old := i.old
	defer r.useStore(old.ID)()
	for was := old; ; {
		next, stored, err := r.storeToken(ctx, was, i.answer)
		if err != nil {
			return nil, storeFailed(ctx, old.Name, err)
		}
		failpoint.Hit(failpoint.AfterRenewalStored, old.ID)
		if stored {
			r.wakeAfter(ctx, next, i.claim)
			return next, nil
		}
		now, err := r.repo.store.Connection(ctx, old.WorkspaceID, old.ID)
		if err != nil {
			return nil, storeFailed(ctx, old.Name, err)
		}
		if now == nil { // it was deleted in the meantime, and its old token revoked
			r.servers.revoke(ctx, next)
		}
		// A person has changed it. If the change keeps the token, the new one replaces it:
		// the old one may be used up.
		if was, err = r.repo.readAny(ctx, old.WorkspaceID, old.Name); err != nil {
			return nil, err
		}
		if was.keepsToken(old) {
			continue
		}
		if err := was.broken(old.Name); err != nil {
			return nil, err
		}
		return was, nil
	}
}

// wakeAfter wakes the steps that wait for a connection, if its renewal took so long that
// another node may have found it to be broken.
func (r *Renewer) wakeAfter(ctx context.Context, c *opened, claim Claim) {
	if clock.Steady().Sub(claim.At) < quickRenewal && claim.Extends.IsZero() {
		return
	}
	if err := r.repo.wakeSteps(ctx, c.Connection); err != nil { // they find out by themselves
		r.log.Warn("cannot wake the steps that wait for a connection", "connection", c.ID, "error", err)
	}
}

// storeToken stores a new token of a connection, unless it has been changed since it was
// read.
func (r *Renewer) storeToken(ctx context.Context, was *opened, answer tokenAnswer) (next *opened, stored bool, err error) {
	renewed, token := *was, answer.token
	if old := was.secrets.Token; old != nil && (token.Refresh == "" || token.Refresh == old.Refresh) {
		token.Refresh, token.RefreshEndsAt = old.Refresh, cmp.Or(token.RefreshEndsAt, old.RefreshEndsAt)
	}
	renewed.setToken(&token)
	renewed.Epoch, renewed.Problem = was.Epoch+1, ""
	renewed.keepReplaced(was, clock.Now())
	if renewed.Status == Failing || renewed.Status == NeedsReconnect {
		renewed.Status = Connected
	}
	r.learnFromToken(&renewed, answer)
	sealed, err := r.repo.seal(ctx, &renewed)
	if err != nil {
		return nil, false, err
	}
	stored, err = r.repo.store.UpdateConnection(ctx, sealed, was.Epoch, nil)
	return &renewed, stored, err
}

// learnFromToken sets the variables that a token tells, and the hosts that depend on them,
// of a connection that nobody consents to. Otherwise they are learned with the consent.
func (r *Renewer) learnFromToken(c *opened, answer tokenAnswer) {
	if c.auth.NeedsConsent() || len(c.auth.Learned(integration.AtToken)) == 0 {
		return
	}
	learned, env := *c, c.env()
	env.Token = answer.members
	err := learned.learn(integration.AtToken, env)
	if err == nil {
		err = learned.setHosts()
	}
	if err != nil {
		r.log.Warn("cannot learn from the token of a connection", "connection", c.ID, "error", err)
		return
	}
	*c = learned
}

// failRenewal ends a renewal that got no token. If a person has changed the connection
// meanwhile, that says nothing about what it is now, and it returns the changed one.
func (r *Renewer) failRenewal(ctx context.Context, old *opened, claim Claim, cause error) (*opened, error) {
	defer r.useStore(old.ID)()
	var failed error
	if refusal, ok := errors.AsType[*tokenError](cause); ok && refusal.refuses(old.auth) {
		failed = r.repo.markBroken(ctx, old, refusal.Error()+": "+refusal.advice(old))
	} else {
		r.failed.begin(old, cause, clock.Steady())
		failed = unavailable(old.Name, cause)
	}
	r.release(ctx, claim)
	now, err := r.repo.store.Connection(ctx, old.WorkspaceID, old.ID)
	if err != nil || now != nil && now.Epoch == old.Epoch {
		return nil, failed
	}
	return r.repo.read(ctx, old.WorkspaceID, old.Name)
}

// unavailable is the failure of a step whose connection could not be renewed for now.
func unavailable(name string, cause error) error {
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	return &action.Failure{
		Code: CodeUnavailable, Retryable: true, Message: fmt.Sprintf("the token of the connection %q could not be renewed: %v", name, cause),
	}
}
