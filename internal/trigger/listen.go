package trigger

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// ListenFor is how long a trigger accepts a test call: long enough to make another
	// service call, short enough that nobody forgets a draft that accepts calls.
	ListenFor = 5 * time.Minute
	// maxListening limits the triggers of a workspace that accept a test call at a time.
	maxListening = 20
)

// ErrTooManyListening is returned by a store if too many triggers of a workspace accept a
// test call.
var ErrTooManyListening = errors.New("too many triggers of the workspace are listening")

// Listening reports whether the next call is a test. Calls of an active workflow start
// runs, even if people listened before it was activated.
func (t Trigger) Listening() bool {
	return !t.Active && t.ListeningUntil != nil && t.ListeningUntil.After(clock.Steady())
}

// PrepareListen finds the webhook trigger that is to accept a test call.
func (s *Service) PrepareListen(ctx context.Context, actor auth.Actor, workflowID, id string) (Trigger, error) {
	t, err := s.webhook(ctx, actor, workflowID, id)
	if err == nil && t.Active {
		err = fault.New(fault.WorkflowActive, "workflow %q is active: calls start runs and are listed, so there is nothing to listen for", workflowID)
	}
	return t, err
}

// Listen makes a trigger accept one call as a test, which is recorded and starts no run.
func (s *Service) Listen(ctx context.Context, t Trigger) (Trigger, error) {
	until := clock.Steady().Add(ListenFor)
	t.ListeningUntil = &until
	listening, err := s.store.Listen(ctx, t, maxListening)
	switch {
	case errors.Is(err, ErrTooManyListening):
		err = fault.New(fault.TooManyListeners, "%d triggers of the workspace are listening for a test call: stop one, or wait until one of them ends", maxListening).After(time.Minute)
	case err == nil && !listening: // activated or deleted just now
		err = notFound(t.WorkflowID, t.ID)
	}
	return t, err
}

// StopListening makes a trigger accept no test call.
func (s *Service) StopListening(ctx context.Context, actor auth.Actor, workflowID, id string) error {
	t, err := s.webhook(ctx, actor, workflowID, id)
	if err != nil {
		return err
	}
	return s.store.StopListening(ctx, t)
}
