package connection

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/vault"
)

// Consent is a consent that a person was asked for at a service.
type Consent struct {
	StateHash   []byte // of the state, which the service or the dialog sends back
	WorkspaceID string
	UserID      string // of the person who was asked; nobody else can complete it
	Pending     []byte // sealed
	ExpiresAt   time.Time
}

// ConsentStore stores consents until they are completed.
type ConsentStore interface {
	InsertConsent(ctx context.Context, c Consent) error
	// Consent returns a consent that has not expired.
	Consent(ctx context.Context, stateHash []byte, userID string, now time.Time) (*Consent, error)
	// UpdateConsent replaces what is pending, if that is still what it was.
	UpdateConsent(ctx context.Context, c Consent, was []byte) (updated bool, err error)
	// TakeConsent deletes and returns a consent that has not expired.
	TakeConsent(ctx context.Context, stateHash []byte, userID string, now time.Time) (*Consent, error)
}

func (cs *Consents) storeConsent(ctx context.Context, actor auth.Actor, state string, wait pending, life time.Duration) error {
	consent := Consent{StateHash: hashState(state), WorkspaceID: wait.Connection.WorkspaceID, UserID: actor.ID, ExpiresAt: clock.Now().Add(life)}
	if err := cs.sealConsent(ctx, &consent, wait); err != nil {
		return err
	}
	return cs.store.InsertConsent(ctx, consent)
}

func (cs *Consents) sealConsent(ctx context.Context, consent *Consent, wait pending) error {
	plain, err := json.Marshal(wait) //nolint:gosec // it is sealed
	if err != nil {
		return err
	}
	consent.Pending, err = cs.repo.vault.Seal(ctx, consentRef(*consent), plain)
	return err
}

func hashState(state string) []byte {
	sum := sha256.Sum256([]byte(state))
	return sum[:]
}

func consentRef(c Consent) vault.Ref {
	return vault.Ref{Workspace: c.WorkspaceID, Table: "consents", ID: fmt.Sprintf("%x", c.StateHash)}
}

// takeConsent deletes and returns the consent with a state, and the connection as it was when
// the person was asked.
func (cs *Consents) takeConsent(ctx context.Context, actor auth.Actor, state string) (wait pending, c *opened, err error) {
	consent, err := cs.store.TakeConsent(ctx, hashState(state), actor.ID, clock.Now())
	if err != nil {
		return pending{}, nil, err
	}
	if consent == nil || consent.WorkspaceID != actor.Workspace.ID {
		return pending{}, nil, consentExpired()
	}
	return cs.openConsent(ctx, consent)
}

// openConsent opens a consent, and the connection as it was when the person was asked.
func (cs *Consents) openConsent(ctx context.Context, consent *Consent) (wait pending, c *opened, err error) {
	plain, err := cs.repo.vault.Open(ctx, consentRef(*consent), consent.Pending)
	if err != nil {
		return pending{}, nil, err
	}
	if err := json.Unmarshal(plain, &wait); err != nil {
		return pending{}, nil, err
	}
	c = &opened{Connection: wait.Connection, secrets: secrets{Fields: wait.Secrets, ClientID: wait.Client, ClientSecret: wait.Secret, Confirmed: wait.Confirmed}}
	if c.service, c.auth, err = cs.repo.integrations.describe(ctx, c.Connection); err == nil {
		err = c.mustConfirm()
	}
	return wait, c, err
}

// storeGiven returns a function that stores the connection that results from a consent. It can
// be repeated until the store works.
func (cs *Consents) storeGiven(actor auth.Actor, c *opened, wait pending) func(context.Context) error {
	return func(ctx context.Context) error {
		err := cs.saveConsent(ctx, actor, c, wait)
		// The token will never be stored, for example because the name is taken by now. Do not
		// revoke it if the connection has changed: its own token may belong to the same grant.
		if _, rejected := fault.As(err); rejected && !isTemporary(err) && !fault.Is(err, fault.ConsentExpired) {
			cs.servers.revoke(ctx, c)
		}
		return err
	}
}

// saveConsent stores a connection that a person has consented to, unless an earlier attempt
// has. Steps that wait for the connection continue.
func (cs *Consents) saveConsent(ctx context.Context, actor auth.Actor, c *opened, wait pending) error {
	if wait.Reconnect == 0 {
		return cs.insertConsented(ctx, actor, c)
	}
	entry := auditEntry(actor, "connection.reconnected", c.Connection)
	for {
		was, err := cs.repo.reopen(ctx, c.Connection)
		if err != nil {
			return err
		}
		if err := checkChange(actor, was.Connection); err != nil {
			return err
		}
		if was.keepsToken(c) { // an earlier attempt stored it and then failed
			return cs.repo.wakeSteps(ctx, was.Connection)
		}
		// A later epoch may come from a renewal, or from marking the connection as broken: the
		// new consent replaces both. But if somebody has changed or reconnected the connection,
		// the person has consented to something else.
		if was.Epoch != wait.Reconnect && (wait.isChanged(was) || was.UpdatedAt.After(c.UpdatedAt)) {
			return fault.New(fault.ConsentExpired, "the connection %q was changed while you were at the service: reconnect it once more", c.Name)
		}
		c.Epoch = was.Epoch + 1
		c.keepReplaced(was, clock.Now())
		sealed, err := cs.repo.seal(ctx, c)
		if err != nil {
			return err
		}
		updated, err := cs.repo.store.UpdateConnection(ctx, sealed, was.Epoch, &entry)
		if err != nil {
			return err
		}
		if updated {
			return cs.repo.wakeSteps(ctx, c.Connection)
		}
	}
}

// insertConsented stores a new connection that a person has consented to, unless an earlier
// attempt has.
func (cs *Consents) insertConsented(ctx context.Context, actor auth.Actor, c *opened) error {
	found, err := cs.repo.store.Connection(ctx, c.WorkspaceID, c.ID)
	if err != nil || found != nil { // an earlier attempt stored it and then failed
		return err
	}
	c.Epoch = 1
	sealed, err := cs.repo.seal(ctx, c)
	if err != nil {
		return err
	}
	return cs.connections.insert(ctx, actor, sealed)
}
