package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/vault"
)

// A service issues a token once. Between its answer and our commit, the token exists only
// in the memory of this process, which therefore keeps it, and repeats the commit until it
// succeeds.

// StoreError is returned if the store failed while a connection was used. That says
// nothing about the connection: the caller tries again, as it does after other errors of
// the store.
type StoreError struct {
	Name  string // of the connection
	Cause error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("the store failed while the connection %q was used: %v", e.Name, e.Cause)
}

func (e *StoreError) Unwrap() error { return e.Cause }

// storeFailed returns an error of the store or the vault as a StoreError, unless the
// caller has given up or trying again would not help.
func storeFailed(ctx context.Context, name string, err error) error {
	if err == nil || ctx.Err() != nil || !isTemporary(err) {
		return err
	}
	return &StoreError{name, err}
}

// isTemporary reports whether an error of the store or the vault can pass.
func isTemporary(err error) bool {
	if _, outcome := errors.AsType[*action.Failure](err); outcome || errors.Is(err, vault.ErrSealed) {
		return false
	}
	problem, known := fault.As(err)
	if !known {
		return true
	}
	switch problem.Code {
	case fault.Unavailable, fault.StorageFull, fault.StorageReadOnly:
		return true
	}
	return false
}

const (
	minStorePause = 50 * time.Millisecond
	maxStorePause = 5 * time.Second
)

// retryStore calls do until the store works, with backoff. It returns the last error if
// that will not pass, or if the process stops.
func (s *Service) retryStore(operation, id string, do func(context.Context) error) error {
	ctx := context.Background() // the store limits each operation
	for pause := minStorePause; ; pause = min(2*pause, maxStorePause) {
		err := do(ctx)
		if err == nil || !isTemporary(err) {
			return err
		}
		s.log.Error("the store failed; retrying", "operation", operation, "connection", id, "error", err)
		if !clock.Sleep(s.life, pause) {
			s.log.Error("the process stops before the store works", "operation", operation, "connection", id)
			return err
		}
	}
}

// commit is something that is written until the store works.
type commit struct {
	done chan struct{}
	err  error // after done is closed
}

// persist calls do in the background until the store works.
func (s *Service) persist(operation, id string, do func(context.Context) error) *commit {
	c := &commit{done: make(chan struct{})}
	s.renewing.Go(func() {
		defer close(c.done)
		c.err = s.retryStore(operation, id, do)
	})
	return c
}

// storePatience is how long a person waits for the store.
const storePatience = 10 * time.Second

// await waits a while for the commit of what a person has consented to.
func (c *commit) await(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	select {
	case <-c.done:
		return c.err
	case <-limited.Done():
		return fault.New(fault.Unavailable,
			"the service has allowed the access, but the database failed, so it is not stored yet. Stepmill keeps it and tries again: look at the connection in a few minutes, and connect again only if nothing has changed")
	}
}

// issuedToken is a token that a service has issued for a connection.
type issuedToken struct {
	old    *opened // the connection when the token was requested
	answer tokenAnswer
	claim  Claim
}

// errKept is the error of using a connection whose new token is not stored yet.
var errKept = fault.New(fault.Unavailable, "a new token of the connection is not stored yet, because the store fails; try again later").After(time.Second)

// storeLater keeps a token that could not be stored, and stores it as soon as that is
// possible. Until then nobody else in this process renews the connection. Other nodes do
// not either, as long as the claim can be extended.
func (s *Service) storeLater(i issuedToken) {
	id := i.old.ID
	s.kept.Store(id, true)
	s.persist("store a new token", id, func(ctx context.Context) error {
		s.extendClaim(ctx, &i)
		_, err := s.storeIssued(ctx, i)
		if err == nil || !isTemporary(err) {
			s.kept.Delete(id)
		}
		return err
	})
}

// extendClaim keeps other nodes from renewing a connection whose new token is here.
func (s *Service) extendClaim(ctx context.Context, i *issuedToken) {
	now := clock.Steady()
	if i.claim.Until.Sub(now) > claimTime/2 {
		return
	}
	next := i.claim
	next.Extends, next.Broken, next.At, next.Until = i.claim.Until, true, now, now.Add(claimTime)
	if extended, err := s.store.ClaimRenewal(ctx, next); err == nil && extended {
		i.claim = next
	}
}

// release ends a claim, in the background if the store fails.
func (s *Service) release(ctx context.Context, claim Claim) {
	if s.store.ReleaseRenewal(ctx, claim) == nil {
		return
	}
	s.persist("release a renewal", claim.ID, func(ctx context.Context) error {
		if clock.Steady().After(claim.Until) { // it has ended by itself
			return nil
		}
		return s.store.ReleaseRenewal(ctx, claim)
	})
}
