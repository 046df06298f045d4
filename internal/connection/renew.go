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

	renewals singleflight.Group // in flight on this node, by connection id
	storing  sync.Map           // ids of connections whose renewal is waiting for the store
	kept     sync.Map           // ids of connections whose new token is only in memory so far
	failed   pauses             // after a renewal failed for a reason that may pass
}

const (
	// renewalTime limits one renewal. A claim outlives it, so that no second node claims the
	// renewal and uses the same refresh token while the first one still waits for a response.
	renewalTime = 45 * time.Second
	claimTime   = 60 * time.Second
	// claimCheck is the interval at which nodes without the claim check for the new token.
	claimCheck = 100 * time.Millisecond
	// quickRenewal is shorter than the lease of a node. A renewal that takes longer may have
	// lost its claim: a claim ends with the lease of its node.
	quickRenewal = time.Second
)

// refresh returns the connection with a usable token. It renews a token that is about to
// expire in the background, and waits only for the renewal of one that has expired.
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

// within calls refresh or renew with a time limit. When the limit is reached, it returns an
// error that says whether the store or the service was too slow.
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
// connection that has taken its name. At any time at most one caller in the cluster renews
// it, and the others wait for the result. A caller that gives up does not cancel the renewal:
// the service may already have used up the refresh token.
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
			case now.ID == old.ID && now.Epoch <= old.Epoch: // we joined a renewal that was in flight for an older epoch
			case now.hasToken() && now.secrets.Token == nil, now.keepsToken(old): // somebody has changed the connection in the meantime
				old = now
			default:
				return now, nil
			}
		}
	}
}

// startRenewal renews a token in the background, or joins the renewal that is in flight.
func (r *Renewer) startRenewal(ctx context.Context, old *opened) <-chan singleflight.Result {
	return r.renewals.DoChan(old.ID, func() (any, error) {
		r.persister.running.Add(1)
		defer r.persister.running.Done()
		return r.renewOnce(context.WithoutCancel(ctx), old)
	})
}

// renewOnce claims the renewal and carries it out, or waits until another node has.
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

// claim claims a renewal. If another node holds the claim, it returns the connection as it
// is now.
func (r *Renewer) claim(ctx context.Context, old *opened, claim Claim) (claimed bool, current *opened, err error) {
	defer r.useStore(old.ID)()
	claimed, err = r.repo.store.ClaimRenewal(ctx, claim)
	if err != nil {
		r.release(ctx, claim) // it may have been stored nevertheless
		return false, nil, storeFailed(ctx, old.Name, err)
	}
	if !claimed {
		current, err = r.repo.read(ctx, old.WorkspaceID, old.Name)
	}
	return claimed, current, err
}

// useStore records that the renewal of a connection is waiting for the store, until the
// returned function is called.
func (r *Renewer) useStore(id string) (end func()) {
	r.storing.Store(id, true)
	return func() { r.storing.Delete(id) }
}

// renewClaimed requests a new token and stores it before anyone uses it. Many services
// accept a refresh token only once, so a new token that is lost cannot be requested again.
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

// storeIssued stores a token that was issued for a connection, and returns the connection
// as it is afterwards. If another node has renewed it in the meantime, or somebody has changed
// it, it stays as it is, unless it still has the token that the new one replaces. That is also
// the case if another node tried the same refresh token and marked the connection as broken:
// the new token repairs it.
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
		if now == nil { // whoever deleted it could only revoke the old token
			r.servers.revoke(ctx, next)
		}
		// Somebody has changed it. If it still has the old token, store the new one again: the
		// service may no longer accept the old one.
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

// wakeAfter wakes the steps that wait for a connection if its renewal took so long that
// another node may have marked it as broken.
func (r *Renewer) wakeAfter(ctx context.Context, c *opened, claim Claim) {
	if clock.Steady().Sub(claim.At) < quickRenewal && claim.Extends.IsZero() {
		return
	}
	if err := r.repo.wakeSteps(ctx, c.Connection); err != nil { // they retry on their own, only later
		r.log.Warn("cannot wake the steps that wait for a connection", "connection", c.ID, "error", err)
	}
}

// storeToken stores a new token of a connection, unless the connection has changed since it
// was read.
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

// learnFromToken sets the variables that the response with the token contains, and the hosts
// that depend on them. Connections with consent learn them from the consent instead.
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

// failRenewal ends a renewal that got no token. If somebody has changed the connection in the
// meantime, the failure says nothing about the new credential, so it returns the changed
// connection instead of an error.
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

// unavailable returns the failure of a step whose connection could not be renewed, which a
// retry may fix.
func unavailable(name string, cause error) error {
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	return &action.Failure{
		Code: CodeUnavailable, Retryable: true, Message: fmt.Sprintf("the token of the connection %q could not be renewed: %v", name, cause),
	}
}
