package webhook

import (
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
)

// Test sends test events to a webhook, even if it is disabled: the named ones, or by
// default all that it is subscribed to. No other webhook receives them.
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
		if samples[i], err = event.Sample(kind, w.WorkspaceID, now); err != nil {
			return nil, err
		}
	}
	entry := actor.AuditEntry("webhook.tested", "webhook", id, map[string]any{"events": kinds})
	sent, found, err := s.store.SendSamples(ctx, w.WorkspaceID, id, samples, entry)
	if err == nil && !found {
		err = notFound(id)
	}
	return sent, err
}
