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
func (r *Renewer) storeLater(i issuedToken) {
	id := i.old.ID
	r.kept.Store(id, true)
	r.persister.persist("store a new token", id, func(ctx context.Context) error {
		r.extendClaim(ctx, &i)
		_, err := r.storeIssued(ctx, i)
		if err == nil || !isTemporary(err) {
			r.kept.Delete(id)
		}
		return err
	})
}

// extendClaim keeps other nodes from renewing a connection whose new token is here.
func (r *Renewer) extendClaim(ctx context.Context, i *issuedToken) {
	now := clock.Steady()
	if i.claim.Until.Sub(now) > claimTime/2 {
		return
	}
	next := i.claim
	next.Extends, next.Broken, next.At, next.Until = i.claim.Until, true, now, now.Add(claimTime)
	if extended, err := r.repo.store.ClaimRenewal(ctx, next); err == nil && extended {
		i.claim = next
	}
}

// release ends a claim, in the background if the store fails.
func (r *Renewer) release(ctx context.Context, claim Claim) {
	if r.repo.store.ReleaseRenewal(ctx, claim) == nil {
		return
	}
	r.persister.persist("release a renewal", claim.ID, func(ctx context.Context) error {
		if clock.Steady().After(claim.Until) { // it has ended by itself
			return nil
		}
		return r.repo.store.ReleaseRenewal(ctx, claim)
	})
}
