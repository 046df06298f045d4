package webhook

import (
	"net/url"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/event"
)

// Status is the state of a delivery.
type Status string

// The statuses of a delivery.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	Exhausted Status = "exhausted" // every attempt failed
	Dropped   Status = "dropped"   // the webhook was disabled before it succeeded
)

// Statuses lists the statuses of a delivery.
func Statuses() []Status { return []Status{Pending, Delivered, Exhausted, Dropped} }

// Delivery is an event on its way to a webhook.
type Delivery struct {
	ID          string
	WorkspaceID string
	WebhookID   string
	EventID     string
	Event       event.Type
	RunID       string
	WorkflowID  string
	Sample      bool // a test event, which did not really happen
	Status      Status
	Attempts    int
	NextAt      *time.Time
	CreatedAt   time.Time
	FinishedAt  *time.Time
	// Last is the latest attempt, or nil before the first.
	Last *Attempt
}

// Attempt is one request of a delivery.
type Attempt struct {
	Number   int
	At       time.Time
	Duration time.Duration
	// Status is the HTTP status of the response, or zero if there was none.
	Status int
	// Error says why the attempt failed; it is empty after a success.
	Error string
	// Response is the beginning of the response body.
	Response string
}

// Due is a due delivery with what decides when it may be sent.
type Due struct {
	DeliveryID  string
	WorkspaceID string
	WebhookID   string
	RunID       string
	Attempts    int // so far
	URL         string
}

// lane identifies the events of one run for one webhook. First attempts within a
// lane keep their order.
type lane struct{ webhookID, runID string }

func (d Due) lane() (lane, bool) {
	return lane{d.WebhookID, d.RunID}, d.Attempts == 0 && d.RunID != ""
}

func (d Due) host() hostKey {
	key := hostKey{workspaceID: d.WorkspaceID}
	if u, err := url.Parse(d.URL); err == nil {
		key.name = u.Host
	}
	return key
}

// OutgoingDelivery is a delivery with everything needed to send it.
type OutgoingDelivery struct {
	DeliveryID  string
	WorkspaceID string
	WebhookID   string
	RunID       string
	Attempts    int // so far
	URL         string
	Secret      []byte // sealed
	// OldSecret is the previous secret, which is valid until OldUntil.
	OldSecret []byte
	OldUntil  *time.Time
	Event     event.Event
}

// Report is the result of an attempt and its consequences.
type Report struct {
	OutgoingDelivery OutgoingDelivery
	Attempt          Attempt
	Status           Status
	// NextAt is set if the delivery is still pending, as a steady time.
	NextAt *time.Time
	// Disable is the reason to disable the webhook now; empty means not to.
	Disable string
	// The webhook is also disabled, with FailingReason, if every attempt since
	// FailingSince, and at least Failures of them, failed.
	FailingSince  time.Time
	Failures      int
	FailingReason string
	// Entry is the audit entry for disabling it.
	Entry audit.Entry
}
