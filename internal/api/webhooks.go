package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/webhook"
)

type webhooks struct {
	webhooks *webhook.Service
	cursors  *paging.Codec
}

type webhookBody struct {
	ID             string       `json:"id"`
	URL            string       `json:"url"`
	Events         []event.Type `json:"events"`
	WorkflowID     *string      `json:"workflow_id"`
	Enabled        bool         `json:"enabled"`
	DisabledReason *string      `json:"disabled_reason"`
	FailingSince   *string      `json:"failing_since"`
	SecretHint     string       `json:"secret_hint"`
	OldSecretUntil *string      `json:"old_secret_until"`
	CreatedAt      string       `json:"created_at"`
	UpdatedAt      string       `json:"updated_at"`
}

type createdWebhookBody struct {
	webhookBody
	SigningSecret string `json:"signing_secret"`
}

func showWebhook(w webhook.Webhook) webhookBody {
	return webhookBody{
		ID: w.ID, URL: w.URL, Events: w.Events, WorkflowID: orNull(w.WorkflowID), Enabled: w.Enabled,
		DisabledReason: orNull(w.DisabledReason), FailingSince: clock.FormatPtr(w.FailingSince),
		SecretHint: w.SecretHint, OldSecretUntil: clock.FormatPtr(w.OldSecretUntil(clock.Now())),
		CreatedAt: clock.Format(w.CreatedAt), UpdatedAt: clock.Format(w.UpdatedAt),
	}
}

type createWebhookRequest struct {
	Body struct {
		URL        *string   `json:"url"`
		Events     *[]string `json:"events"`
		WorkflowID *string   `json:"workflow_id" null:"ok"`
	} `body:"required"`
}

func (h *webhooks) create(ctx context.Context, tx txn.Tx, in *createWebhookRequest) (*transport.Reply, error) {
	body := in.Body
	switch {
	case body.URL == nil:
		return nil, fault.Field("/url", "is required")
	case body.Events == nil:
		return nil, fault.Field("/events", "is required")
	case body.WorkflowID != nil && *body.WorkflowID == "":
		return nil, fault.Field("/workflow_id", "must be the id of a workflow, or be left out")
	}
	wanted := webhook.New{URL: *body.URL, Events: *body.Events}
	if body.WorkflowID != nil {
		wanted.WorkflowID = *body.WorkflowID
	}
	w, secret, err := h.webhooks.In(tx).Create(ctx, transport.Actor(ctx), wanted)
	if err != nil {
		return nil, err
	}
	return transport.OK(createdWebhookBody{showWebhook(w), secret}).WithHeader("Location", "/v1/webhooks/"+w.ID), nil
}

func (h *webhooks) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"webhooks"},
		func(p paging.Request) (paging.Page[webhook.Webhook], error) {
			return h.webhooks.List(ctx, transport.Actor(ctx), p)
		},
		showWebhook)
}

func (h *webhooks) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	w, err := h.webhooks.Get(ctx, transport.Actor(ctx), in.ID)
	return transport.Respond(showWebhook, w, err)
}

type updateWebhookRequest struct {
	ID   string `path:"id"`
	Body struct {
		URL        *string                     `json:"url"`
		Events     *[]string                   `json:"events"`
		WorkflowID strictjson.Optional[string] `json:"workflow_id"`
		Enabled    *bool                       `json:"enabled"`
	} `body:"required"`
}

func (h *webhooks) update(ctx context.Context, in *updateWebhookRequest) (*transport.Reply, error) {
	patch := webhook.Patch{URL: in.Body.URL, Events: in.Body.Events, Enabled: in.Body.Enabled}
	if in.Body.WorkflowID.Set {
		if !in.Body.WorkflowID.Null && in.Body.WorkflowID.Value == "" {
			return nil, fault.Field("/workflow_id", "must be the id of a workflow, or null")
		}
		patch.WorkflowID = &in.Body.WorkflowID.Value
	}
	w, err := h.webhooks.Update(ctx, transport.Actor(ctx), in.ID, patch)
	return transport.Respond(showWebhook, w, err)
}

func (h *webhooks) rotateSecret(ctx context.Context, tx txn.Tx, in *idRequest) (*transport.Reply, error) {
	w, secret, err := h.webhooks.In(tx).RotateSecret(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return transport.OK(createdWebhookBody{showWebhook(w), secret}), nil
}

func (h *webhooks) remove(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.webhooks.Delete(ctx, transport.Actor(ctx), in.ID)
}
