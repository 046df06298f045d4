package webhook

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
)

// Sampler makes an event that did not happen, of the shape of one that did.
type Sampler func(kind event.Type, workspaceID string, at time.Time) (event.Event, error)

// Test sends samples of events to a webhook, also to one that is disabled: of
// those named, or else of all that it receives. Nobody else gets to see them.
func (s *Service) Test(ctx context.Context, actor auth.Actor, id string, events []string) ([]Delivery, error) {
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	kinds := w.Events
	if events != nil {
		if kinds, err = checkEvents(events); err != nil {
			return nil, err
		}
	}
	now, samples := clock.Now(), make([]event.Event, len(kinds))
	for i, kind := range kinds {
		if samples[i], err = s.sample(kind, w.WorkspaceID, now); err != nil {
			return nil, err
		}
	}
	entry := actor.Did("webhook.tested", "webhook", id, map[string]any{"events": kinds})
	sent, found, err := s.store.SendSamples(ctx, w.WorkspaceID, id, samples, entry)
	if err == nil && !found {
		err = notFound(id)
	}
	return sent, err
}
