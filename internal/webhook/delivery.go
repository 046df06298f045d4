package webhook

import (
	"net/url"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/event"
)

// Status is where a delivery stands.
type Status string

// The statuses of a delivery.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	Exhausted Status = "exhausted" // every attempt failed
	Dropped   Status = "dropped"   // the webhook was disabled before it got through
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
	Sample      bool // the event did not happen: somebody tried the webhook out
	Status      Status
	Attempts    int
	NextAt      *time.Time
	CreatedAt   time.Time
	FinishedAt  *time.Time
	// Last is the latest attempt, nil before the first.
	Last *Attempt
}

// Attempt is one try to deliver.
type Attempt struct {
	Number   int
	At       time.Time
	Duration time.Duration
	// Status is that of the answer, zero when there was none.
	Status int
	// Error says why it failed, empty when it did not.
	Error string
	// Answer is the beginning of what the endpoint said.
	Answer string
}

// Due is a delivery whose time has come, with what decides when it is sent.
type Due struct {
	DeliveryID  string
	WorkspaceID string
	WebhookID   string
	RunID       string
	Attempts    int // so far
	URL         string
}

// lane is what first attempts keep their order in: the events of one run for
// one webhook.
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

// Parcel is a delivery with all that is needed to send it.
type Parcel struct {
	DeliveryID  string
	WorkspaceID string
	WebhookID   string
	RunID       string
	Attempts    int // so far
	URL         string
	Secret      []byte // sealed
	// OldSecret is the one before, which receivers may still use until OldUntil.
	OldSecret []byte
	OldUntil  *time.Time
	Event     event.Event
}

// Report is what came of an attempt, and what follows from it.
type Report struct {
	Parcel  Parcel
	Attempt Attempt
	Status  Status
	// NextAt is set while the delivery is pending.
	NextAt *time.Time
	// Disable is why the webhook is to be disabled at once, empty when it is not.
	Disable string
	// A webhook is disabled too when it has done nothing but fail since that
	// time, that often.
	FailingSince time.Time
	Failures     int
	GaveUp       string // the reason then
	// Entry is written when it is disabled.
	Entry audit.Entry
}
