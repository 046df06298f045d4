package webhook

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

const (
	// MaxRedelivered limits how many deliveries one request can repeat.
	MaxRedelivered = 10_000
	// redeliverBatch is how many of them one transaction writes.
	redeliverBatch = 500
)

// Redeliver sends the event of a delivery to the same webhook again, with the same
// bytes and a new retry schedule.
func (s *Service) Redeliver(ctx context.Context, actor auth.Actor, id string) (Delivery, error) {
	of, err := s.Delivery(ctx, actor, id)
	if err != nil {
		return Delivery{}, err
	}
	entry := actor.AuditEntry("delivery.redelivered", "delivery", id, map[string]any{"webhook_id": of.WebhookID})
	made, outcome, err := s.store.Redeliver(ctx, actor.Workspace.ID, of.WebhookID, []string{id}, entry.At, &entry)
	switch {
	case err != nil:
		return Delivery{}, err
	case outcome == Disabled:
		return Delivery{}, disabled(of.WebhookID)
	case len(made) == 0:
		return Delivery{}, noDelivery(id)
	}
	repeated, err := s.Delivery(ctx, actor, made[0])
	return repeated.Delivery, err
}

// Range selects the deliveries of a webhook to repeat.
type Range struct {
	Since time.Time
	Until *time.Time
	// Statuses selects finished deliveries by status; by default, all that did not
	// succeed.
	Statuses []Status
}

// RedeliverRange repeats deliveries that a webhook missed, each event once. Events
// that were delivered later, or are pending again, are left out. It returns how many
// it repeated and whether there are more.
func (s *Service) RedeliverRange(ctx context.Context, actor auth.Actor, webhookID string, in Range) (count int, more bool, err error) {
	w, err := s.Get(ctx, actor, webhookID)
	if err != nil {
		return 0, false, err
	}
	if !w.Enabled {
		return 0, false, disabled(webhookID)
	}
	if len(in.Statuses) == 0 {
		in.Statuses = []Status{Exhausted, Dropped}
	}
	details := map[string]any{"since": clock.Format(in.Since), "statuses": in.Statuses}
	if in.Until != nil {
		details["until"] = clock.Format(*in.Until)
	}
	entry := actor.AuditEntry("delivery.redelivered", "webhook", webhookID, details)
	from, below := Filter{Since: &in.Since, Until: in.Until}.Span()
	// Exclude the deliveries that this call creates.
	below = min(below, uid.At(uid.Delivery, entry.At))
	r := redelivery{store: s.store, webhook: w, at: entry.At, entry: &entry}
	for _, status := range in.Statuses {
		if more, err = r.run(ctx, status, from, below); err != nil || more {
			break
		}
	}
	return r.count, more, err
}

type redelivery struct {
	store   Store
	webhook Webhook
	at      time.Time
	entry   *audit.Entry // nil after it was written
	count   int
}

// run repeats the deliveries with a status and reports whether it stopped at
// MaxRedelivered.
func (r *redelivery) run(ctx context.Context, status Status, from, below string) (more bool, err error) {
	for {
		// Ask for one more than allowed, to know whether there are more.
		room := MaxRedelivered - r.count
		ids, err := r.store.Redeliverable(ctx, r.webhook.WorkspaceID, r.webhook.ID, status, from, below, min(redeliverBatch, room+1))
		if err != nil || len(ids) == 0 {
			return false, err
		}
		if room == 0 {
			return true, nil
		}
		ids = ids[:min(len(ids), room)]
		made, outcome, err := r.store.Redeliver(ctx, r.webhook.WorkspaceID, r.webhook.ID, ids, r.at, r.entry)
		switch {
		case err != nil:
			return false, err
		case outcome == Disabled:
			return false, disabled(r.webhook.ID)
		}
		r.count += len(made)
		r.entry, from = nil, ids[len(ids)-1]+"~"
	}
}

func disabled(webhookID string) error {
	return fault.New(fault.WebhookDisabled, "webhook %q is disabled: enable it first", webhookID)
}
