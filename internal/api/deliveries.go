package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/webhook"
)

type deliveryBody struct {
	ID           string           `json:"id"`
	WebhookID    string           `json:"webhook_id"`
	EventID      string           `json:"event_id"`
	Event        event.Type       `json:"event"`
	WorkflowID   *string          `json:"workflow_id"`
	RunID        *string          `json:"run_id"`
	Sample       bool             `json:"sample"`
	Status       webhook.Status   `json:"status"`
	AttemptCount int              `json:"attempt_count"`
	LastAttempt  *deliveryAttempt `json:"last_attempt"`
	NextAt       *string          `json:"next_at"`
	CreatedAt    string           `json:"created_at"`
	FinishedAt   *string          `json:"finished_at"`
}

type deliveryAttempt struct {
	Number     int     `json:"number"`
	At         string  `json:"at"`
	DurationMS int64   `json:"duration_ms"`
	StatusCode *int    `json:"status_code"`
	Error      *string `json:"error"`
}

type loggedAttempt struct {
	deliveryAttempt
	Answer *string `json:"answer"`
}

type deliveryDetail struct {
	deliveryBody
	Attempts []loggedAttempt `json:"attempts"`
	Body     json.RawMessage `json:"body"`
}

func showDelivery(d webhook.Delivery) deliveryBody {
	body := deliveryBody{
		ID: d.ID, WebhookID: d.WebhookID, EventID: d.EventID, Event: d.Event, WorkflowID: orNull(d.WorkflowID), RunID: orNull(d.RunID), Sample: d.Sample,
		Status: d.Status, AttemptCount: d.Attempts, NextAt: clock.FormatPtr(clock.WallPtr(d.NextAt)), CreatedAt: clock.Format(d.CreatedAt), FinishedAt: clock.FormatPtr(d.FinishedAt),
	}
	if d.Last != nil {
		last := showDeliveryAttempt(*d.Last)
		body.LastAttempt = &last
	}
	return body
}

func showDeliveryAttempt(a webhook.Attempt) deliveryAttempt {
	body := deliveryAttempt{Number: a.Number, At: clock.Format(a.At), DurationMS: a.Duration.Milliseconds(), Error: orNull(a.Error)}
	if a.Status != 0 {
		body.StatusCode = &a.Status
	}
	return body
}

type listDeliveriesRequest struct {
	transport.Page
	ID     string `path:"id"`
	Status string `query:"status"`
	Event  string `query:"event"`
	RunID  string `query:"run_id"`
	Since  string `query:"since"`
	Until  string `query:"until"`
}

func (in *listDeliveriesRequest) filter() (webhook.Filter, error) {
	f := webhook.Filter{Status: webhook.Status(in.Status), RunID: in.RunID}
	if in.Status != "" && !slices.Contains(webhook.Statuses(), f.Status) {
		return f, transport.Parameter("status", "must be one of %s", joinNames(webhook.Statuses()))
	}
	if in.Event != "" {
		if !event.Known(in.Event) {
			return f, unknownEvent("event", in.Event)
		}
		f.Event = event.Type(in.Event)
	}
	if len(in.RunID) > maxFilter {
		return f, transport.Parameter("run_id", "must not be longer than %d bytes", maxFilter)
	}
	var err error
	if f.Since, err = parseTime("since", in.Since); err != nil {
		return f, err
	}
	f.Until, err = parseTime("until", in.Until)
	return f, err
}

func joinNames[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = string(item)
	}
	return strings.Join(out, ", ")
}

func (h *webhooks) listDeliveries(ctx context.Context, in *listDeliveriesRequest) (*transport.Reply, error) {
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"deliveries", in.ID, in.Status, in.Event, in.Since, in.Until, in.RunID},
		func(p paging.Request) (paging.Page[webhook.Delivery], error) {
			return h.webhooks.Deliveries(ctx, transport.Actor(ctx), in.ID, filter, p)
		},
		showDelivery)
}

func (h *webhooks) getDelivery(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	d, err := h.webhooks.Delivery(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	body := deliveryDetail{deliveryBody: showDelivery(d.Delivery), Attempts: make([]loggedAttempt, len(d.Log)), Body: d.Body}
	for i, a := range d.Log {
		body.Attempts[i] = loggedAttempt{showDeliveryAttempt(a), orNull(a.Response)}
	}
	return transport.OK(body), nil
}

func (h *webhooks) redeliver(ctx context.Context, tx txn.Tx, in *idRequest) (*transport.Reply, error) {
	d, err := h.webhooks.In(tx).Redeliver(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return transport.OK(showDelivery(d)).WithHeader("Location", "/v1/deliveries/"+d.ID), nil
}

type redeliverRangeRequest struct {
	ID   string `path:"id"`
	Body struct {
		Since  *string   `json:"since"`
		Until  *string   `json:"until"`
		Status *[]string `json:"status"`
	} `body:"required"`
}

type redeliveredBody struct {
	Redelivered int  `json:"redelivered"`
	More        bool `json:"more"`
}

func (h *webhooks) redeliverRange(ctx context.Context, tx txn.Tx, in *redeliverRangeRequest) (*transport.Reply, error) {
	wanted, err := in.deliveryRange()
	if err != nil {
		return nil, err
	}
	count, more, err := h.webhooks.In(tx).RedeliverRange(ctx, transport.Actor(ctx), in.ID, wanted)
	if err != nil {
		return nil, err
	}
	return transport.OK(redeliveredBody{count, more}), nil
}

func (in *redeliverRangeRequest) deliveryRange() (webhook.Range, error) {
	var wanted webhook.Range
	if in.Body.Since == nil {
		return wanted, fault.Field("/since", "is required")
	}
	for _, at := range []struct {
		pointer string
		text    *string
		set     func(time.Time)
	}{
		{"/since", in.Body.Since, func(t time.Time) { wanted.Since = t }},
		{"/until", in.Body.Until, func(t time.Time) { wanted.Until = &t }},
	} {
		if at.text == nil {
			continue
		}
		t, err := time.Parse(time.RFC3339, *at.text)
		if err != nil {
			return wanted, fault.Field(at.pointer, "must be a time such as 2026-11-15T09:30:00Z")
		}
		at.set(t)
	}
	if in.Body.Status == nil {
		return wanted, nil
	}
	ended := []webhook.Status{webhook.Delivered, webhook.Exhausted, webhook.Dropped}
	for _, status := range ended {
		if slices.Contains(*in.Body.Status, string(status)) {
			wanted.Statuses = append(wanted.Statuses, status)
		}
	}
	for _, status := range *in.Body.Status {
		if !slices.Contains(ended, webhook.Status(status)) {
			return wanted, fault.Field("/status", "%q is not one of %s", status, joinNames(ended))
		}
	}
	if len(wanted.Statuses) == 0 {
		return wanted, fault.Field("/status", "must name at least one of %s", joinNames(ended))
	}
	return wanted, nil
}

type testWebhookRequest struct {
	ID   string `path:"id"`
	Body struct {
		Events *[]string `json:"events"`
	} `body:"optional"`
}

type testedBody struct {
	Deliveries []deliveryBody `json:"deliveries"`
}

func (h *webhooks) test(ctx context.Context, tx txn.Tx, in *testWebhookRequest) (*transport.Reply, error) {
	var events []string
	if in.Body.Events != nil {
		events = append([]string{}, *in.Body.Events...)
	}
	sent, err := h.webhooks.In(tx).Test(ctx, transport.Actor(ctx), in.ID, events)
	if err != nil {
		return nil, err
	}
	body := testedBody{Deliveries: make([]deliveryBody, len(sent))}
	for i, d := range sent {
		body.Deliveries[i] = showDelivery(d)
	}
	return transport.OK(body), nil
}
