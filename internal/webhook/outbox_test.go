package webhook_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/webhook"
)

// fakeOutbox is an in-memory outbox that behaves like the store, for tests with a
// fake clock.
type fakeOutbox struct {
	mu         sync.Mutex
	hooks      map[string]*hook
	deliveries []*delivery
	byID       map[string]*delivery
	entries    []audit.Entry
	broken     bool // nothing can be read or written
	reads      int
	longest    int // list that was read
}

type hook struct {
	id, workspace, url string
	secret, oldSecret  string
	oldUntil           *time.Time
	disabled           string // why
	failures           int
	failingSince       *time.Time
}

type delivery struct {
	webhook.Due
	event    event.Event
	status   webhook.Status
	nextAt   *time.Time
	attempts []webhook.Attempt
}

func newOutbox() *fakeOutbox {
	return &fakeOutbox{hooks: map[string]*hook{}, byID: map[string]*delivery{}}
}

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hook adds a webhook.
func (o *fakeOutbox) hook(workspace, id, url string) *hook {
	h := &hook{id: id, workspace: workspace, url: url, secret: testSecret}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hooks[id] = h
	return h
}

// send queues an event of a run for a webhook.
func (o *fakeOutbox) send(h *hook, runID string) *delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, n := clock.Now(), len(o.deliveries)
	d := &delivery{
		Due:    webhook.Due{DeliveryID: fmt.Sprintf("dlv_%06d", n), WorkspaceID: h.workspace, WebhookID: h.id, RunID: runID, URL: h.url},
		event:  event.Event{ID: fmt.Sprintf("evt_%06d", n), Type: event.RunStarted, At: now, Body: fmt.Appendf(nil, `{"n":%d}`, n)},
		status: webhook.Pending, nextAt: &now,
	}
	o.deliveries, o.byID[d.DeliveryID] = append(o.deliveries, d), d
	return d
}

var errBroken = errors.New("disk failure")

func (o *fakeOutbox) DueDeliveries(_ context.Context, now time.Time, except []string, limit int) ([]webhook.Due, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads++
	if o.broken {
		return nil, errBroken
	}
	passed := map[string]bool{}
	for _, id := range except {
		passed[id] = true
	}
	var found []*delivery
	for _, d := range o.deliveries {
		if d.nextAt != nil && !d.nextAt.After(now) && !passed[d.WebhookID] {
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b *delivery) int { return cmp.Compare(a.nextAt.UnixMicro(), b.nextAt.UnixMicro()) })
	var due []webhook.Due
	for _, d := range found[:min(limit, len(found))] {
		item := d.Due
		item.Attempts, item.URL = len(d.attempts), o.hooks[d.WebhookID].url
		due = append(due, item)
	}
	o.longest = max(o.longest, len(due))
	return due, nil
}

func (o *fakeOutbox) NextDelivery(_ context.Context, after time.Time) (next *time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.deliveries {
		if d.nextAt != nil && d.nextAt.After(after) && (next == nil || d.nextAt.Before(*next)) {
			next = d.nextAt
		}
	}
	return next, nil
}

func (o *fakeOutbox) OutgoingDelivery(_ context.Context, workspaceID, deliveryID string) (*webhook.OutgoingDelivery, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.byID[deliveryID]
	if o.broken {
		return nil, errBroken
	}
	if d == nil || d.WorkspaceID != workspaceID || d.status != webhook.Pending {
		return nil, nil
	}
	h := o.hooks[d.WebhookID]
	out := &webhook.OutgoingDelivery{
		DeliveryID: deliveryID, WorkspaceID: workspaceID, WebhookID: h.id, RunID: d.RunID, Attempts: len(d.attempts), URL: h.url,
		Secret: []byte(h.secret), OldUntil: h.oldUntil, Event: d.event,
	}
	if h.oldSecret != "" {
		out.OldSecret = []byte(h.oldSecret)
	}
	return out, nil
}

func (o *fakeOutbox) ReportDelivery(_ context.Context, r webhook.Report) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, h := o.byID[r.OutgoingDelivery.DeliveryID], o.hooks[r.OutgoingDelivery.WebhookID]
	if o.broken {
		return errBroken
	}
	if len(d.attempts) != r.OutgoingDelivery.Attempts || d.status != webhook.Pending {
		return nil
	}
	d.status, d.nextAt, d.attempts = r.Status, r.NextAt, append(d.attempts, r.Attempt)
	if r.Status == webhook.Delivered {
		h.failures, h.failingSince = 0, nil
		return nil
	}
	ended := r.Attempt.At.Add(r.Attempt.Duration)
	if h.failures++; h.failingSince == nil {
		h.failingSince = &ended
	}
	reason := r.Disable
	if reason == "" && !h.failingSince.After(r.FailingSince) && h.failures >= r.Failures {
		reason = r.FailingReason
	}
	if reason == "" {
		return nil
	}
	if h.disabled == "" {
		h.disabled = reason
		o.entries = append(o.entries, r.Entry)
	}
	for _, other := range o.deliveries {
		if other.WebhookID == h.id && other.status == webhook.Pending {
			other.status, other.nextAt = webhook.Dropped, nil
		}
	}
	return nil
}

// drop removes the pending deliveries of a webhook, as deleting it does.
func (o *fakeOutbox) drop(h *hook) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.deliveries {
		if d.WebhookID == h.id && d.status == webhook.Pending {
			d.status, d.nextAt = webhook.Dropped, nil
		}
	}
}

// statuses counts the deliveries by status.
func (o *fakeOutbox) statuses() map[webhook.Status]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := map[webhook.Status]int{}
	for _, d := range o.deliveries {
		counts[d.status]++
	}
	return counts
}

func (o *fakeOutbox) status(d *delivery) webhook.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	return d.status
}

// reason returns why a webhook is disabled.
func (o *fakeOutbox) reason(h *hook) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return h.disabled
}

// plain is a vault that does not encrypt.
type plain struct{}

func (plain) Open(_ context.Context, _ vault.Ref, sealed []byte) ([]byte, error) { return sealed, nil }

// receivers responds to requests with a function.
type receivers func(ctx context.Context, r egress.Request) (*egress.Response, error)

func (f receivers) Do(ctx context.Context, r egress.Request) (*egress.Response, error) {
	return f(ctx, r)
}

// always responds to every request with a status.
func always(status int, headers ...string) receivers {
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return func(context.Context, egress.Request) (*egress.Response, error) {
		return &egress.Response{Status: status, Header: header}, nil
	}
}

// taking responds with a status after a delay.
func taking(length time.Duration, status int) receivers {
	return func(ctx context.Context, _ egress.Request) (*egress.Response, error) {
		select {
		case <-time.After(length):
			return &egress.Response{Status: status, Header: http.Header{}}, nil
		case <-ctx.Done():
			return nil, &egress.Error{Code: egress.Cancelled, Message: "cancelled"}
		}
	}
}

// launch runs a sender. The returned function stops it and waits for its end.
func launch(t *testing.T, o webhook.Outbox, client webhook.Client) (*webhook.Sender, func()) {
	t.Helper()
	s := webhook.NewSender(o, client, plain{}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the sender ended with %v", err)
		}
	}
}

// held returns what a running sender has in memory.
func held(s *webhook.Sender) webhook.Held {
	synctest.Wait()
	now := s.Held()
	s.Wake() // so that it continues only after this
	synctest.Wait()
	return now
}
