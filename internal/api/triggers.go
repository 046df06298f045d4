package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/txn"
)

type triggers struct {
	triggers      *trigger.Service
	subscriptions *subscription.Service
	starts        runStarts
	cursors       *paging.Codec
}

type triggerState struct {
	ID          string       `json:"id"`
	Type        string       `json:"type"`
	Active      bool         `json:"active"`
	NextRunAt   *string      `json:"next_run_at"`
	LastFiredAt *string      `json:"last_fired_at"`
	LastRunID   *string      `json:"last_run_id"`
	LastError   *triggerNote `json:"last_error"`
	NotFired    *triggerNote `json:"not_fired"`
	// URL is the URL of a webhook. Only callers who may write see it.
	URL *string `json:"url"`
	// ListeningUntil is set while a webhook accepts a call as a test.
	ListeningUntil *string `json:"listening_until"`
	// Subscription is set if a service calls when there is something new.
	Subscription *subscriptionState `json:"subscription"`
}

type subscriptionState struct {
	Status    subscription.Status `json:"status"`
	ExpiresAt *string             `json:"expires_at"`
	LastError *triggerNote        `json:"last_error"`
	// URL and Setup are for callers who may write.
	URL   *string `json:"url"`
	Setup *string `json:"setup"`
}

type triggerNote struct {
	At      string `json:"at"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// show converts a trigger. Callers who may write also see its URL.
func (h *triggers) show(ctx context.Context, t trigger.Trigger) (triggerState, error) {
	state := triggerState{
		ID: t.ID, Type: t.Type, Active: t.Active, NextRunAt: clock.FormatPtr(t.DueAt()),
		LastFiredAt: clock.FormatPtr(t.FiredAt), LastRunID: orNull(t.RunID), LastError: showNote(t.Error), NotFired: showNote(t.NotFired),
	}
	if t.Listening() {
		state.ListeningUntil = clock.FormatPtr(clock.WallPtr(t.ListeningUntil))
	}
	if !auth.Grants(transport.Actor(ctx).Scopes, auth.Write) {
		return state, nil
	}
	address, err := h.triggers.Address(ctx, t)
	state.URL = orNull(address)
	return state, err
}

// showSubscription converts the subscription of a trigger. Callers who may write also see
// its URL, if they have to tell it to the service.
func showSubscription(ctx context.Context, t trigger.Trigger, states map[string]subscription.State) *subscriptionState {
	state, ok := states[t.Subscription]
	if !ok {
		return nil
	}
	out := &subscriptionState{Status: state.Status, ExpiresAt: clock.FormatPtr(state.ExpiresAt), LastError: showNote(state.Error)}
	if auth.Grants(transport.Actor(ctx).Scopes, auth.Write) {
		out.URL, out.Setup = orNull(state.URL), orNull(state.Setup)
	}
	return out
}

func showNote(n *trigger.Note) *triggerNote {
	if n == nil {
		return nil
	}
	return &triggerNote{clock.Format(n.At), n.Code, n.Message}
}

type listTriggersRequest struct {
	transport.Page
	ID string `path:"id"`
}

func (h *triggers) list(ctx context.Context, in *listTriggersRequest) (*transport.Reply, error) {
	var (
		showErr error
		states  map[string]subscription.State
	)
	response, err := transport.Paginate(ctx, h.cursors, in.Page, []string{"triggers", in.ID},
		func(p paging.Request) (paging.Page[trigger.Trigger], error) {
			found, err := h.triggers.List(ctx, transport.Actor(ctx), in.ID, p)
			if err == nil {
				states, err = h.subscriptions.States(ctx, transport.Actor(ctx), found.Items)
			}
			return found, err
		}, func(t trigger.Trigger) triggerState {
			state, err := h.show(ctx, t)
			state.Subscription = showSubscription(ctx, t, states)
			showErr = errors.Join(showErr, err)
			return state
		})
	return response, errors.Join(err, showErr)
}

type testTriggerRequest struct {
	ID        string `path:"id"`
	TriggerID string `path:"trigger_id"`
	Prefer    string `header:"Prefer"`
	Body      struct {
		Payload json.RawMessage   `json:"payload"`
		Headers json.RawMessage   `json:"headers"`
		Query   json.RawMessage   `json:"query"`
		Files   map[string]string `json:"files"`
	} `body:"optional"`
}

func (h *triggers) prepareTest(ctx context.Context, in *testTriggerRequest) (p preparedStart, err error) {
	if err := requireObjects(in.Body.Headers, in.Body.Query); err != nil {
		return p, err
	}
	p.wait, p.wantsWait = preferredWait(in.Prefer)
	p.Prepared, err = h.triggers.PrepareTest(ctx, transport.Actor(ctx), in.ID, in.TriggerID, trigger.Sample(in.Body), p.wantsWait)
	return p, err
}

// requireObjects checks the headers and the query of a test, if they are given.
func requireObjects(headers, query json.RawMessage) error {
	for name, raw := range map[string]json.RawMessage{"headers": headers, "query": query} {
		if raw != nil && raw[0] != '{' {
			return fault.Field("/"+name, "must be an object")
		}
	}
	return nil
}

type triggerRequest struct {
	ID        string `path:"id"`
	TriggerID string `path:"trigger_id"`
}

func (h *triggers) prepareRotate(ctx context.Context, in *triggerRequest) (trigger.Rotation, error) {
	return h.triggers.PrepareRotate(ctx, transport.Actor(ctx), in.ID, in.TriggerID)
}

func (h *triggers) rotate(ctx context.Context, tx txn.Tx, r trigger.Rotation) (*transport.Reply, error) {
	t, err := h.triggers.In(tx).Rotate(ctx, transport.Actor(ctx), r)
	if err != nil {
		return nil, err
	}
	state, err := h.show(ctx, t)
	return transport.OK(state), err
}

func (h *triggers) prepareListen(ctx context.Context, in *triggerRequest) (trigger.Trigger, error) {
	return h.triggers.PrepareListen(ctx, transport.Actor(ctx), in.ID, in.TriggerID)
}

func (h *triggers) listen(ctx context.Context, tx txn.Tx, t trigger.Trigger) (*transport.Reply, error) {
	t, err := h.triggers.In(tx).Listen(ctx, t)
	if err != nil {
		return nil, err
	}
	state, err := h.show(ctx, t)
	return transport.OK(state), err
}

func (h *triggers) stopListening(ctx context.Context, in *triggerRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.triggers.StopListening(ctx, transport.Actor(ctx), in.ID, in.TriggerID)
}

type requestBody struct {
	ID      string `json:"id"`
	At      string `json:"at"`
	Method  string `json:"method"`
	Size    int    `json:"size"`
	Outcome string `json:"outcome"`
	// Reason is set for a call that started no run.
	Reason  *string         `json:"reason"`
	RunID   *string         `json:"run_id"`
	Headers json.RawMessage `json:"headers"`
	Query   json.RawMessage `json:"query"`
	Payload json.RawMessage `json:"payload"`
}

type listRequestsRequest struct {
	transport.Page
	triggerRequest
}

func (h *triggers) listRequests(ctx context.Context, in *listRequestsRequest) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"requests", in.ID, in.TriggerID},
		func(p paging.Request) (paging.Page[trigger.Request], error) {
			return h.triggers.Requests(ctx, transport.Actor(ctx), in.ID, in.TriggerID, p)
		},
		func(r trigger.Request) requestBody {
			return requestBody{
				ID: r.ID, At: clock.Format(r.At), Method: r.Method, Size: r.Size, Outcome: r.Outcome, Reason: orNull(r.Reason), RunID: orNull(r.RunID),
				Headers: r.Headers, Query: r.Query, Payload: rawOrNull(r.Payload),
			}
		})
}
