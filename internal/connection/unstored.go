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

// A service issues a token once. Until our commit, it exists only in the memory of this
// process, which therefore keeps it and repeats the commit until it succeeds.

// StoreError is the error of a connection that could not be used because the store failed.
// It says nothing about the connection: the caller retries, as after other errors of the
// store.
type StoreError struct {
	Name  string // of the connection
	Cause error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("the store failed while the connection %q was used: %v", e.Name, e.Cause)
}

func (e *StoreError) Unwrap() error { return e.Cause }

// storeFailed wraps an error of the store or the vault in a StoreError, unless the caller has
// given up or a retry would not help.
func storeFailed(ctx context.Context, name string, err error) error {
	if err == nil || ctx.Err() != nil || !isTemporary(err) {
		return err
	}
	return &StoreError{name, err}
}

// isTemporary reports whether an operation of the store or the vault that failed can succeed
// later.
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

// errKept is the cause of a StoreError while a new token is kept in memory. The old token must
// not be renewed again: the service may have invalidated it.
var errKept = fault.New(fault.Unavailable, "a new token of the connection is not stored yet, because the store fails; try again later").After(time.Second)

// storeLater keeps a token that could not be stored in memory, and stores it as soon as the
// store works again. Until then nothing else in this process renews the connection, nor do
// other nodes as long as the claim can be extended.
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

// extendClaim keeps other nodes from renewing a connection whose new token only this node has.
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
