// Package subscription owns the URLs at which services call when something happens there.
// It tells a service the URL as soon as an active workflow has a trigger that needs it,
// renews that and takes it back, and starts runs for the calls. It does not own how a
// service is told (package integration), nor who sends the requests (package operation).
package subscription

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/vault"
)

// Path is the path of the URLs below the public URL of the installation.
const Path = "/service-hooks/"

// Subscription is a URL at which a service calls. It is for one trigger, or for all
// triggers with the same connection.
type Subscription struct {
	ID          string
	WorkspaceID string
	// Target is what it is for: triggers that need it have the same.
	Target       string
	ConnectionID string
	// Hook is the hook of the integration, such as github.events.
	Hook string
	// TokenHash is that of the secret part of the URL, and Sealed has the contents. Both are
	// nil until there is a URL.
	TokenHash []byte
	Sealed    []byte
	// BaseURL is the public URL of the installation that the service was told.
	BaseURL string
	// Registered means that the service was told, or that people have to tell it.
	Registered bool
	// ExpiresAt is when the service forgets the URL; nil if it does not.
	ExpiresAt *time.Time
	// NextAt is the steady time at which there is something to do; nil if there is nothing.
	NextAt *time.Time
	// Failures is the number of consecutive failures, and Error the last of them.
	Failures  int
	Error     *trigger.Note
	CreatedAt time.Time
}

// Need is what needs a subscription.
type Need struct {
	// Connection is the present name of the connection, "" if it was deleted. Account is
	// its account at the service.
	Connection string
	Account    string
	// Triggers are the triggers that need it. If there are none, it can go.
	Triggers []trigger.Trigger
}

// Store stores subscriptions. Each method is one transaction. A false result means that
// nothing was changed. Workflows create subscriptions and make them due as they are saved.
type Store interface {
	// DueSubscriptions returns due subscriptions that no node works on, earliest first. Nodes
	// work on a few of each workspace at a time.
	DueSubscriptions(ctx context.Context, node string, now time.Time, limit int) ([]Subscription, error)
	// NextSubscription returns the earliest time at which there is one to work on, unless
	// another one has to be finished first.
	NextSubscription(ctx context.Context, node string, now time.Time) (*time.Time, error)
	// ClaimSubscription makes a node own a due subscription, unless it has changed. A claim
	// ends with its time, and with its node.
	ClaimSubscription(ctx context.Context, s Subscription, node string, now, until time.Time) (claimed bool, err error)
	// SubscriptionNeed returns what needs a subscription.
	SubscriptionNeed(ctx context.Context, s Subscription) (Need, error)
	// SaveSubscription stores a claimed subscription. If ends is set, the claim ends, and the
	// subscription is due at its NextAt, unless it has become due again: was is what NextAt
	// was when it was claimed. Otherwise it stays due, so that a crash leaves it so.
	SaveSubscription(ctx context.Context, s Subscription, was time.Time, ends bool) error
	// DeleteSubscription deletes a claimed subscription that no trigger needs, unless it has
	// become due again.
	DeleteSubscription(ctx context.Context, s Subscription, was time.Time) (deleted bool, err error)
	// SubscriptionByToken returns the subscription whose token has the hash, and what needs
	// it, with active triggers only; nil if there is none.
	SubscriptionByToken(ctx context.Context, hash []byte) (*Subscription, Need, error)
	// SubscriptionsFor returns the subscriptions for these targets in a workspace.
	SubscriptionsFor(ctx context.Context, workspaceID string, targets []string) ([]Subscription, error)
	// RecheckSubscriptions makes those due of which services know another public URL.
	RecheckSubscriptions(ctx context.Context, baseURL string, at time.Time) error
	// PollNow makes the poll of a trigger due.
	PollNow(ctx context.Context, of trigger.Trigger, at time.Time) error
}

// contents is what is sealed of a subscription.
type contents struct {
	Token  string `json:"token"`
	Secret string `json:"secret"`
	// With has the settings of the trigger as they were registered, if it is for one.
	With json.RawMessage `json:"with,omitempty"`
	// Account is that of the connection with which it was registered.
	Account string `json:"account,omitempty"`
	// RegistrationID is the id that our request has had, a new one for each registration.
	RegistrationID string `json:"registration_id,omitempty"`
	// Attempted is set before the request, so that its repetition after a crash is known to
	// be one.
	Attempted bool            `json:"attempted,omitempty"`
	Answer    json.RawMessage `json:"answer,omitempty"`
	// RegisteredAt and ExpiresAt say for how long the service knows the URL.
	RegisteredAt time.Time  `json:"registered_at,omitzero"`
	ExpiresAt    *time.Time `json:"expires_at,omitempty"`
}

// renewAt returns when a registration that expires is renewed: after half of its time, so
// that it does not end if the service cannot be reached for a while.
func (c contents) renewAt() time.Time {
	return c.RegisteredAt.Add(c.ExpiresAt.Sub(c.RegisteredAt) / 2)
}

func sealedAt(s Subscription) vault.Ref {
	return vault.Ref{Workspace: s.WorkspaceID, Table: "subscriptions", ID: s.ID}
}

// open opens the contents; they are empty if there are none yet.
func open(ctx context.Context, v trigger.Sealer, s Subscription) (contents, error) {
	var out contents
	if s.Sealed == nil {
		return out, nil
	}
	plain, err := v.Open(ctx, sealedAt(s), s.Sealed)
	if err != nil {
		return out, fmt.Errorf("open the subscription %s: %w", s.ID, err)
	}
	if err := json.Unmarshal(plain, &out); err != nil {
		return out, fmt.Errorf("read the subscription %s: %w", s.ID, err)
	}
	return out, nil
}

func (s *Subscription) seal(ctx context.Context, v trigger.Sealer, c contents) error {
	plain, err := json.Marshal(c) //nolint:gosec // it is sealed
	if err != nil {
		return err
	}
	s.TokenHash = trigger.HashToken(c.Token)
	s.Sealed, err = v.Seal(ctx, sealedAt(*s), plain)
	return err
}

// registration returns what requests and calls are about.
func (c contents) registration(s Subscription, i *integration.Integration, h *integration.Hook, now time.Time) (operation.Registration, error) {
	out := operation.Registration{
		Service: i, Hook: h, Workspace: s.WorkspaceID, Key: s.ID + "/" + c.RegistrationID, Now: now,
		URL: s.BaseURL + Path + c.Token, ID: c.RegistrationID, Secret: c.Secret, Repeated: c.Attempted,
	}
	var err error
	if out.Subscription, err = decode(c.Answer); err != nil {
		return out, err
	}
	with, err := decode(c.With)
	out.With, _ = with.(map[string]any)
	return out, err
}
