package subscription

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
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
	vault      Vault
	operations *operation.Actions
	apps       Apps
	base       func() string
}

// NewService returns a service that answers about what a reconciler does.
func NewService(d Deps) *Service {
	return &Service{store: d.Store, vault: d.Vault, operations: d.Operations, apps: d.Apps, base: d.BaseURL}
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
	i, hook, err := s.operations.FindHook(ctx, of.WorkspaceID, of.Hook)
	if err != nil {
		return out, err
	}
	byPeople := hook != nil && hook.Register == nil
	switch {
	case of.Error != nil:
		out.Status = Failing
	case of.Registered && byPeople:
		out.Status = Manual
	case of.Registered:
		out.Status = Active
	}
	if !byPeople {
		return out, nil
	}
	switch about := (operation.Registration{Service: i, Hook: hook}); {
	case of.Sealed != nil:
		out.URL, out.Setup, err = s.ownSetup(ctx, of, about)
	case out.Status == Manual: // with the app of the connection
		out.URL, out.Setup, err = s.sharedSetup(ctx, of, about)
	}
	if failure, ok := errors.AsType[*action.Failure](err); ok { // the connection has just changed
		out.Status, out.Error = Failing, &trigger.Note{At: clock.Now(), Code: failure.Code, Message: failure.Message}
		err = nil
	}
	return out, err
}

// ownSetup returns the URL of a subscription, and where people enter it.
func (s *Service) ownSetup(ctx context.Context, of Subscription, about operation.Registration) (url, setup string, err error) {
	contents, err := open(ctx, s.vault, of)
	if err != nil {
		return "", "", err
	}
	of.BaseURL = s.base()
	if about, err = contents.registration(of, about.Service, about.Hook, clock.Now()); err != nil {
		return "", "", err
	}
	setup, err = about.SetupText(nil)
	return about.URL, setup, err
}

// sharedSetup returns the URL of the app that a connection was made with, to the workspace
// whose app it is.
func (s *Service) sharedSetup(ctx context.Context, of Subscription, about operation.Registration) (url, setup string, err error) {
	need, err := s.store.SubscriptionNeed(ctx, of)
	if err != nil {
		return "", "", err
	}
	app, err := s.apps.OfConnection(ctx, of.WorkspaceID, need.Connection)
	switch {
	case err != nil || app == nil:
		return "", "", err
	case app.WorkspaceID != of.WorkspaceID:
		return "", "The owner of the OAuth app of this installation enters its URL at " + about.Service.Name + ".", nil
	}
	return s.appSetup(ctx, app, about)
}
