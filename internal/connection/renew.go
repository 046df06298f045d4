package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/integration"
)

const (
	// renewAhead is how long before its expiry a token is renewed: at most this, and at
	// most half of its life.
	renewAhead = 15 * time.Minute
	// renewalTime bounds one renewal. A claim is valid for longer, so that two nodes
	// never use a refresh token at the same time.
	renewalTime = 45 * time.Second
	claimTime   = 60 * time.Second
	// usableFor is how long a token that is used must still be valid: at most this, and
	// at most a quarter of its life.
	usableFor = 30 * time.Second
	// claimCheck is how often others look whether a renewal is done.
	claimCheck = 100 * time.Millisecond
	// quickRenewal is shorter than the lease of a node: a renewal that takes no longer has
	// kept its claim all the time.
	quickRenewal = time.Second
)

// isDue reports whether a token should be renewed before it is used.
func (t *Token) isDue(now time.Time) bool {
	if t == nil {
		return true
	}
	if t.ExpiresAt == nil {
		return false
	}
	ahead := min(renewAhead, t.ExpiresAt.Sub(t.IssuedAt)/2)
	return !now.Before(t.ExpiresAt.Add(-ahead))
}

// isUsable reports whether a token will not expire while it is on its way.
func (t *Token) isUsable(now time.Time) bool {
	if t == nil || t.ExpiresAt == nil {
		return t != nil
	}
	return now.Before(t.ExpiresAt.Add(-min(usableFor, t.ExpiresAt.Sub(t.IssuedAt)/4)))
}

// renew returns the connection with a token of a later epoch than the given one, or the
// connection that has its name by now. One caller at a time renews it, on all nodes
// together; the others wait for the result. A caller that gives up does not interrupt it.
func (s *Service) renew(ctx context.Context, old *opened) (*opened, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case result := <-s.startRenewal(ctx, old):
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
func (s *Service) startRenewal(ctx context.Context, old *opened) <-chan singleflight.Result {
	return s.renewals.DoChan(old.ID, func() (any, error) {
		s.renewing.Add(1)
		defer s.renewing.Done()
		return s.renewOnce(context.WithoutCancel(ctx), old)
	})
}

// AwaitRenewals waits for the renewals that are under way when the process stops: a token
// that was issued but not stored would be lost. Then the service no longer repeats what
// the store failed to do.
func (s *Service) AwaitRenewals(ctx context.Context) {
	defer s.end()
	done := make(chan struct{})
	go func() {
		s.renewing.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.log.Warn("the process stops while a token is renewed; its connection may have to be reconnected")
	}
}

// renewOnce claims the renewal and does it, or waits until another node has done it.
func (s *Service) renewOnce(ctx context.Context, old *opened) (*opened, error) {
	if _, kept := s.kept.Load(old.ID); kept {
		return nil, &StoreError{old.Name, errKept}
	}
	if left, cause := s.failed.left(old, clock.Steady()); left > 0 {
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
			Node: s.node, At: now, Until: now.Add(claimTime),
		}
		claimed, current, err := s.claim(ctx, old, claim)
		switch {
		case err != nil:
			return nil, err
		case claimed:
			return s.renewClaimed(ctx, old, claim)
		case current.ID != old.ID || current.Epoch > old.Epoch:
			return current, nil
		case !clock.Sleep(waiting, claimCheck):
			return nil, unavailable(old.Name, waiting.Err())
		}
	}
}

// claim claims a renewal. If somebody else has done so, it returns the connection.
func (s *Service) claim(ctx context.Context, old *opened, claim Claim) (claimed bool, current *opened, err error) {
	defer s.useStore(old.ID)()
	claimed, err = s.store.ClaimRenewal(ctx, claim)
	if err != nil {
		s.release(ctx, claim) // it may be written
		return false, nil, storeFailed(ctx, old.Name, err)
	}
	if !claimed {
		current, err = s.read(ctx, old.WorkspaceID, old.Name)
	}
	return claimed, current, err
}

// useStore notes that a renewal waits for the store, until the returned function is
// called.
func (s *Service) useStore(id string) (end func()) {
	s.storing.Store(id, true)
	return func() { s.storing.Delete(id) }
}

// renewClaimed requests a new token and stores it before anyone uses it: a refresh
// token is often valid only once, and this one may have been the last use of it.
func (s *Service) renewClaimed(ctx context.Context, old *opened, claim Claim) (*opened, error) {
	failpoint.Hit(failpoint.BeforeRenewal, old.ID)
	answer, err := s.issue(ctx, old)
	failpoint.Hit(failpoint.AfterRenewal, old.ID)
	if err != nil {
		return s.failRenewal(ctx, old, claim, err)
	}
	s.failed.end(old.ID)
	i := issuedToken{old, answer, claim}
	renewed, err := s.storeIssued(ctx, i)
	if _, failed := errors.AsType[*StoreError](err); failed {
		s.log.Error("a new token of a connection could not be stored; it is kept in memory until it can", "connection", old.ID, "error", err)
		s.storeLater(i)
	}
	return renewed, err
}

// storeIssued stores a token that was issued for a connection, and returns what the
// connection is then. A connection that was renewed by another node or changed by a person
// meanwhile stays as it is, unless it still has the token that this one replaces. So a
// token repairs a connection that another node found to be broken, because it tried the
// same refresh token.
func (s *Service) storeIssued(ctx context.Context, i issuedToken) (*opened, error) {
	old := i.old
	defer s.useStore(old.ID)()
	for was := old; ; {
		next, stored, err := s.storeToken(ctx, was, i.answer)
		if err != nil {
			return nil, storeFailed(ctx, old.Name, err)
		}
		failpoint.Hit(failpoint.AfterRenewalStored, old.ID)
		if stored {
			s.wakeAfter(ctx, next, i.claim)
			return next, nil
		}
		now, err := s.store.Connection(ctx, old.WorkspaceID, old.ID)
		if err != nil {
			return nil, storeFailed(ctx, old.Name, err)
		}
		if now == nil { // it was deleted in the meantime, and its old token revoked
			s.revoke(ctx, next)
		}
		// A person has changed it. If the change keeps the token, the new one replaces it:
		// the old one may be used up.
		if was, err = s.readAny(ctx, old.WorkspaceID, old.Name); err != nil {
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
func (s *Service) wakeAfter(ctx context.Context, c *opened, claim Claim) {
	if clock.Steady().Sub(claim.At) < quickRenewal && claim.Extends.IsZero() {
		return
	}
	if err := s.wakeSteps(ctx, c.Connection); err != nil { // they find out by themselves
		s.log.Warn("cannot wake the steps that wait for a connection", "connection", c.ID, "error", err)
	}
}

// storeToken stores a new token of a connection, unless it has been changed since it was
// read.
func (s *Service) storeToken(ctx context.Context, was *opened, answer tokenAnswer) (next *opened, stored bool, err error) {
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
	s.learnFromToken(&renewed, answer)
	sealed, err := s.seal(ctx, &renewed)
	if err != nil {
		return nil, false, err
	}
	stored, err = s.store.UpdateConnection(ctx, sealed, was.Epoch, nil)
	return &renewed, stored, err
}

// learnFromToken sets the variables that a token tells, and the hosts that depend on them,
// of a connection that nobody consents to. Otherwise they are learned with the consent.
func (s *Service) learnFromToken(c *opened, answer tokenAnswer) {
	if c.auth.NeedsConsent() || len(c.auth.Learned(integration.AtToken)) == 0 {
		return
	}
	learned, env := *c, c.env()
	env.Token = answer.members
	err := s.learn(&learned, integration.AtToken, env)
	if err == nil {
		err = s.setHosts(&learned)
	}
	if err != nil {
		s.log.Warn("cannot learn from the token of a connection", "connection", c.ID, "error", err)
		return
	}
	*c = learned
}

// keepsToken reports whether a connection still has the token that it had before it was
// changed.
func (c *opened) keepsToken(before *opened) bool {
	is, was := c.secrets.Token, before.secrets.Token
	return c.ID == before.ID && is != nil && was != nil && is.Access == was.Access && is.IssuedAt.Equal(was.IssuedAt)
}

// failRenewal ends a renewal that got no token. If a person has changed the connection
// meanwhile, that says nothing about what it is now, and it returns the changed one.
func (s *Service) failRenewal(ctx context.Context, old *opened, claim Claim, cause error) (*opened, error) {
	defer s.useStore(old.ID)()
	var failed error
	if refusal, ok := errors.AsType[*tokenError](cause); ok && refusal.refuses(old.auth) {
		failed = s.markBroken(ctx, old, refusal.Error()+": "+refusal.advice(old))
	} else {
		s.failed.begin(old, cause, clock.Steady())
		failed = unavailable(old.Name, cause)
	}
	s.release(ctx, claim)
	now, err := s.store.Connection(ctx, old.WorkspaceID, old.ID)
	if err != nil || now != nil && now.Epoch == old.Epoch {
		return nil, failed
	}
	return s.read(ctx, old.WorkspaceID, old.Name)
}

// issue requests a token in the way of the connection.
func (s *Service) issue(ctx context.Context, c *opened) (tokenAnswer, error) {
	env, params := c.env(), url.Values{}
	switch {
	case c.auth.Kind == integration.ServiceAccount:
		endpoint, err := c.auth.TokenURL.URL(env)
		if err != nil {
			return tokenAnswer{}, err
		}
		assertion, err := signAssertion(c.secrets.Fields, c.Fields["subject"], c.scopes(), endpoint.String())
		if err != nil {
			return tokenAnswer{}, err
		}
		params.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		params.Set("assertion", assertion)
	case !c.auth.NeedsConsent():
		params.Set("grant_type", "client_credentials")
		c.setScopes(params)
		if err := setParams(params, c.auth.TokenParams, env); err != nil {
			return tokenAnswer{}, err
		}
	case c.auth.Exchange != nil && c.secrets.Token != nil:
		return s.exchangeToken(ctx, c)
	case c.secrets.Token == nil:
		return tokenAnswer{}, &tokenError{status: http.StatusBadRequest, code: "invalid_grant", description: "nobody has consented since it was changed"}
	case c.secrets.Token.Refresh == "":
		return tokenAnswer{}, &tokenError{status: http.StatusBadRequest, code: "invalid_grant", description: "the token is no longer accepted, and there is no refresh token"}
	default:
		params.Set("grant_type", "refresh_token")
		params.Set("refresh_token", c.secrets.Token.Refresh)
	}
	return s.requestToken(ctx, c, c.auth.TokenURL, params)
}

func setParams(params url.Values, templates map[string]integration.Template, env integration.Env) error {
	for name, template := range templates {
		value, ok, err := template.Text(env)
		if err != nil {
			return fmt.Errorf("the parameter %s: %w", name, err)
		}
		if ok {
			params.Set(name, value)
		}
	}
	return nil
}

// markBroken records that a connection has to be reconnected.
func (s *Service) markBroken(ctx context.Context, c *opened, problem string) error {
	e, err := brokenEvent(c.Connection, problem, clock.Now())
	if err != nil {
		return err
	}
	if _, err := s.store.SetConnectionStatus(ctx, c.WorkspaceID, c.ID, c.Epoch, NeedsReconnect, problem, e); err != nil {
		return storeFailed(ctx, c.Name, err)
	}
	return &BrokenError{Name: c.Name, Problem: problem}
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
