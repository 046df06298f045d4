package subscription

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/trigger"
)

// Status says whether a service calls.
type Status string

// The statuses.
const (
	Pending Status = "pending" // the service is about to be told the URL
	Active  Status = "active"  // it was told
	Failing Status = "failing" // it could not be told, or the registration cannot be renewed
	Manual  Status = "manual"  // people tell it
)

// Statuses lists the statuses.
func Statuses() []Status { return []Status{Pending, Active, Failing, Manual} }

// State is what people see of a subscription.
type State struct {
	Status Status
	// ExpiresAt is when the service forgets the URL, unless that is renewed before.
	ExpiresAt *time.Time
	Error     *trigger.Note
	// URL and Setup are set if people have to tell the service the URL: Setup says where.
	URL   string
	Setup string
}

// Service answers what the state of subscriptions is.
type Service struct {
	store      Store
	vault      trigger.Sealer
	operations *operation.Actions
	base       func() string
}

// NewService returns a service on a store. URLs start with base.
func NewService(store Store, vault trigger.Sealer, operations *operation.Actions, base func() string) *Service {
	return &Service{store: store, vault: vault, operations: operations, base: base}
}

// States returns the states of the subscriptions that triggers need, by their targets.
func (s *Service) States(ctx context.Context, actor auth.Actor, triggers []trigger.Trigger) (map[string]State, error) {
	var targets []string
	for _, t := range triggers {
		if t.Subscription != "" && !slices.Contains(targets, t.Subscription) {
			targets = append(targets, t.Subscription)
		}
	}
	found, err := s.store.SubscriptionsFor(ctx, actor.Workspace.ID, targets)
	if err != nil {
		return nil, err
	}
	out := map[string]State{}
	for _, one := range found {
		if out[one.Target], err = s.state(ctx, one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Service) state(ctx context.Context, of Subscription) (State, error) {
	out := State{Status: Pending, ExpiresAt: of.ExpiresAt, Error: of.Error}
	i, hook, ok := s.operations.FindHook(of.Hook)
	switch {
	case of.Error != nil:
		out.Status = Failing
	case of.Registered && ok && hook.Register == nil:
		out.Status = Manual
	case of.Registered:
		out.Status = Active
	}
	if !ok || hook.Register != nil || of.Sealed == nil {
		return out, nil
	}
	contents, err := open(ctx, s.vault, of)
	if err != nil {
		return out, err
	}
	of.BaseURL = s.base()
	about, err := contents.registration(of, i, hook, clock.Now())
	if err != nil {
		return out, err
	}
	out.URL = about.URL
	out.Setup, err = about.SetupText(nil)
	return out, err
}
