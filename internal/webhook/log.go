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

// Filter restricts the list of a webhook's deliveries. Empty fields match all.
type Filter struct {
	Status Status
	Event  event.Type
	RunID  string
	// Since (inclusive) and Until (exclusive) restrict the creation time, to the
	// millisecond.
	Since *time.Time
	Until *time.Time
}

// Span returns the range of ids that the filter matches, from inclusive, below
// exclusive. Ids contain the creation time.
func (f Filter) Span() (from, below string) {
	below = "~" // after every id
	if f.Since != nil {
		from = uid.LowerBound(uid.Delivery, *f.Since)
	}
	if f.Until != nil {
		below = uid.LowerBound(uid.Delivery, *f.Until)
	}
	return from, below
}

// Detail is a delivery with its attempts and body.
type Detail struct {
	Delivery
	Log  []Attempt // oldest first
	Body []byte    // of the event, as sent
}

// Log is the part of the store with sent and pending deliveries.
type Log interface {
	// Deliveries returns the deliveries of a webhook, newest first. The number of rows
	// scanned per page is bounded, so a page can have fewer items than its limit, or
	// none, and still be followed by another.
	Deliveries(ctx context.Context, workspaceID, webhookID string, filter Filter, page paging.Request) (paging.Page[Delivery], error)
	Delivery(ctx context.Context, workspaceID, id string) (*Detail, error)
	// SendSamples writes test events for one webhook only. It returns false if there is
	// no such webhook.
	SendSamples(ctx context.Context, workspaceID, webhookID string, samples []event.Event, entry audit.Entry) ([]Delivery, bool, error)
	// Redeliverable returns the ids of a webhook's deliveries with the given status in
	// a range, oldest first, each the latest of its event.
	Redeliverable(ctx context.Context, workspaceID, webhookID string, status Status, from, below string, limit int) ([]string, error)
	// Redeliver writes a new delivery for each of the given ones that still exists and
	// returns the new ids. It returns Disabled if the webhook is disabled or deleted.
	Redeliver(ctx context.Context, workspaceID, webhookID string, ids []string, at time.Time, entry *audit.Entry) ([]string, Outcome, error)
}

// Deliveries returns the deliveries of a webhook, newest first.
func (s *Service) Deliveries(ctx context.Context, actor auth.Actor, webhookID string, filter Filter, page paging.Request) (paging.Page[Delivery], error) {
	if _, err := s.Get(ctx, actor, webhookID); err != nil {
		return paging.Page[Delivery]{}, err
	}
	return s.store.Deliveries(ctx, actor.Workspace.ID, webhookID, filter, page)
}

// Delivery returns one delivery with its attempts and body.
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
