package connection

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/vault"
)

// Consent is a consent that a person was asked for at a service.
type Consent struct {
	StateHash   []byte // of the state parameter, which the service sends back
	WorkspaceID string
	UserID      string // who was asked; nobody else can complete it
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

// storeConsent stores a consent until it is completed.
func (s *Service) storeConsent(ctx context.Context, actor auth.Actor, state string, wait pending, life time.Duration) error {
	consent := Consent{StateHash: hashState(state), WorkspaceID: wait.Connection.WorkspaceID, UserID: actor.ID, ExpiresAt: clock.Now().Add(life)}
	if err := s.sealConsent(ctx, &consent, wait); err != nil {
		return err
	}
	return s.consents.InsertConsent(ctx, consent)
}

func (s *Service) sealConsent(ctx context.Context, consent *Consent, wait pending) error {
	plain, err := json.Marshal(wait) //nolint:gosec // it is sealed
	if err != nil {
		return err
	}
	consent.Pending, err = s.vault.Seal(ctx, consentRef(*consent), plain)
	return err
}

func hashState(state string) []byte {
	sum := sha256.Sum256([]byte(state))
	return sum[:]
}

func consentRef(c Consent) vault.Ref {
	return vault.Ref{Workspace: c.WorkspaceID, Table: "consents", ID: fmt.Sprintf("%x", c.StateHash)}
}

// takeConsent returns the consent with a state, which cannot be used again, and the
// connection as it was when the person was asked.
func (s *Service) takeConsent(ctx context.Context, actor auth.Actor, state string) (wait pending, c *opened, err error) {
	consent, err := s.consents.TakeConsent(ctx, hashState(state), actor.ID, clock.Now())
	if err != nil {
		return pending{}, nil, err
	}
	if consent == nil || consent.WorkspaceID != actor.Workspace.ID {
		return pending{}, nil, consentExpired()
	}
	return s.openConsent(ctx, consent)
}

// openConsent opens what the completion of a consent needs, and the connection as it was
// when the person was asked.
func (s *Service) openConsent(ctx context.Context, consent *Consent) (wait pending, c *opened, err error) {
	plain, err := s.vault.Open(ctx, consentRef(*consent), consent.Pending)
	if err != nil {
		return pending{}, nil, err
	}
	if err := json.Unmarshal(plain, &wait); err != nil {
		return pending{}, nil, err
	}
	c = &opened{Connection: wait.Connection, secrets: secrets{Fields: wait.Secrets, ClientID: wait.Client, ClientSecret: wait.Secret, Confirmed: wait.Confirmed}}
	if c.service, c.auth, err = s.describe(ctx, c.Connection); err == nil {
		err = c.mustConfirm()
	}
	return wait, c, err
}
