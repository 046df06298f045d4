package webhook

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// Filter narrows the list of a webhook's deliveries. What is empty does not.
type Filter struct {
	Status Status
	Event  event.Type
	RunID  string
	// Since is the first moment that counts, Until the first that does not, both
	// to the millisecond and of the making of the delivery.
	Since *time.Time
	Until *time.Time
}

// Span is the range of ids that the filter leaves: from the first on, up to but
// not including the second. The time is in the id.
func (f Filter) Span() (from, below string) {
	below = "~" // after every id
	if f.Since != nil {
		from = uid.Least(uid.Delivery, *f.Since)
	}
	if f.Until != nil {
		below = uid.Least(uid.Delivery, *f.Until)
	}
	return from, below
}

// Detail is a delivery with all there is of it.
type Detail struct {
	Delivery
	Log  []Attempt // oldest first
	Body []byte    // of the event, as it is sent
}

// Log is the part of the store that knows what was sent and is to be sent.
type Log interface {
	// Deliveries lists those of a webhook, newest first. A page may hold fewer
	// than asked for, or none, and still have a next one: how many rows are
	// looked at for it is bounded.
	Deliveries(ctx context.Context, workspaceID, webhookID string, filter Filter, page paging.Request) (paging.Page[Delivery], error)
	// Delivery reads one, of a webhook that exists.
	Delivery(ctx context.Context, workspaceID, id string) (*Detail, error)
	// SendSamples writes events that did not happen, for one webhook alone; false
	// when there is no such webhook.
	SendSamples(ctx context.Context, workspaceID, webhookID string, samples []event.Event, entry audit.Entry) ([]Delivery, bool, error)
	// Lost lists the ids of a webhook's deliveries of a status in a range, oldest
	// first, each the last one of its event.
	Lost(ctx context.Context, workspaceID, webhookID string, status Status, from, below string, limit int) ([]string, error)
	// Redeliver writes a new delivery for each given one of the webhook that is
	// still there, and answers their ids; Disabled when the webhook is, or is
	// gone.
	Redeliver(ctx context.Context, workspaceID, webhookID string, ids []string, at time.Time, entry *audit.Entry) ([]string, Outcome, error)
}

// Deliveries lists the deliveries of a webhook, newest first.
func (s *Service) Deliveries(ctx context.Context, actor auth.Actor, webhookID string, filter Filter, page paging.Request) (paging.Page[Delivery], error) {
	if _, err := s.Get(ctx, actor, webhookID); err != nil {
		return paging.Page[Delivery]{}, err
	}
	return s.store.Deliveries(ctx, actor.Workspace.ID, webhookID, filter, page)
}

// Delivery reads one delivery with its attempts and what is sent.
func (s *Service) Delivery(ctx context.Context, actor auth.Actor, id string) (Detail, error) {
	if !uid.Valid(uid.Delivery, id) {
		return Detail{}, noDelivery(id)
	}
	found, err := s.store.Delivery(ctx, actor.Workspace.ID, id)
	return fault.Found(found, err, noDelivery, id)
}

func noDelivery(id string) error {
	return fault.New(fault.DeliveryNotFound, "there is no delivery %q", id)
}
