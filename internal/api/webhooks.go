package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/webhook"
)

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

func (s *Server) createWebhook(ctx context.Context, in *createWebhookRequest) (*reply, error) {
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
	w, secret, err := s.Webhooks.Create(ctx, actorOf(ctx), wanted)
	if err != nil {
		return nil, err
	}
	return ok(createdWebhookBody{showWebhook(w), secret}).withHeader("Location", "/v1/webhooks/"+w.ID), nil
}

func (s *Server) listWebhooks(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"webhooks"},
		func(p paging.Request) (paging.Page[webhook.Webhook], error) {
			return s.Webhooks.List(ctx, actorOf(ctx), p)
		},
		showWebhook)
}

type webhookRequest struct {
	ID string `path:"id"`
}

func (s *Server) getWebhook(ctx context.Context, in *webhookRequest) (*reply, error) {
	w, err := s.Webhooks.Get(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showWebhook(w)), nil
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

func (s *Server) updateWebhook(ctx context.Context, in *updateWebhookRequest) (*reply, error) {
	patch := webhook.Patch{URL: in.Body.URL, Events: in.Body.Events, Enabled: in.Body.Enabled}
	if in.Body.WorkflowID.Set {
		if !in.Body.WorkflowID.Null && in.Body.WorkflowID.Value == "" {
			return nil, fault.Field("/workflow_id", "must be the id of a workflow, or null")
		}
		patch.WorkflowID = &in.Body.WorkflowID.Value
	}
	w, err := s.Webhooks.Update(ctx, actorOf(ctx), in.ID, patch)
	if err != nil {
		return nil, err
	}
	return ok(showWebhook(w)), nil
}

func (s *Server) rotateSecret(ctx context.Context, in *webhookRequest) (*reply, error) {
	w, secret, err := s.Webhooks.RotateSecret(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(createdWebhookBody{showWebhook(w), secret}), nil
}

func (s *Server) deleteWebhook(ctx context.Context, in *webhookRequest) (*reply, error) {
	return &reply{}, s.Webhooks.Delete(ctx, actorOf(ctx), in.ID)
}
