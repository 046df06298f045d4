// Package webhook owns outbound webhooks: the endpoints that clients register,
// their signing secrets and event subscriptions, and their deliveries, with
// sending, retries, the delivery log, test events and redelivery.
package webhook

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Webhook is a client's endpoint.
type Webhook struct {
	ID             string
	WorkspaceID    string
	URL            string
	Events         []event.Type
	WorkflowID     string // empty: every workflow
	Enabled        bool
	DisabledReason string
	SealedSecret   []byte
	SecretHint     string
	// OldSecret is the previous secret, sealed. It is valid until OldUntil.
	OldSecret []byte
	OldUntil  *time.Time
	// FailingSince is the time of the first failure after the last success, or nil if
	// the last attempt succeeded.
	FailingSince *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Wants reports whether the webhook is subscribed to an event of its workspace.
func (w Webhook) Wants(e event.Event) bool {
	return w.Enabled && slices.Contains(w.Events, e.Type) && (w.WorkflowID == "" || w.WorkflowID == e.WorkflowID)
}

// Store stores webhooks. A method is one transaction; a pointer result is nil if
// there is no such row.
type Store interface {
	In(tx txn.Tx) Store
	// InsertWebhook returns TooMany or NoWorkflow if it rejects the webhook.
	InsertWebhook(ctx context.Context, w Webhook, atMost int, entry audit.Entry) (Outcome, error)
	Webhook(ctx context.Context, workspaceID, id string) (*Webhook, error)
	Webhooks(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Webhook], error)
	// UpdateWebhook updates the row if it was last changed at the given time, and
	// returns Changed otherwise. It returns NoWorkflow for a workflow of another
	// workspace. Disabling a webhook drops its pending deliveries.
	UpdateWebhook(ctx context.Context, w Webhook, was time.Time, entry audit.Entry) (Outcome, error)
	DeleteWebhook(ctx context.Context, workspaceID, id string, at time.Time, entry audit.Entry) (deleted bool, err error)
	Log
}

// Outcome is the outcome of a write.
type Outcome int

// The outcomes of a write.
const (
	Done Outcome = iota
	TooMany
	NoWorkflow
	Changed
	Disabled
)

// Guard decides which URLs may be called.
type Guard interface {
	CheckURL(u *url.URL) error
}

// Sealer encrypts signing secrets.
type Sealer interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
}

// Service implements the use cases of webhooks.
type Service struct {
	store Store
	vault Sealer
	guard Guard
}

// NewService returns a service that uses the given store.
func NewService(store Store, vault Sealer, guard Guard) *Service {
	return &Service{store: store, vault: vault, guard: guard}
}

const maxURL = 2048

// New describes a webhook to create.
type New struct {
	URL        string
	Events     []string
	WorkflowID string
}

// In returns the service as a part of a transaction.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.store = s.store.In(tx)
	return &bound
}

// Create creates a webhook and returns it with its signing secret, which is never
// returned again.
func (s *Service) Create(ctx context.Context, actor auth.Actor, in New) (Webhook, string, error) {
	w := Webhook{WorkspaceID: actor.Workspace.ID, Enabled: true}
	if err := s.set(&w, &in.URL, &in.Events, &in.WorkflowID); err != nil {
		return Webhook{}, "", err
	}
	now := clock.Now()
	w.ID, w.CreatedAt, w.UpdatedAt = uid.At(uid.Webhook, now), now, now
	secret, err := s.newSecret(ctx, &w)
	if err != nil {
		return Webhook{}, "", err
	}
	limit := actor.Limits().Webhooks
	entry := actor.AuditEntry("webhook.created", "webhook", w.ID, map[string]any{"url": redact(w.URL)})
	outcome, err := s.store.InsertWebhook(ctx, w, limit, entry)
	if err != nil {
		return Webhook{}, "", err
	}
	switch outcome {
	case TooMany:
		return Webhook{}, "", fault.New(fault.PlanLimitExceeded, "the %s plan allows %d webhooks; delete one first", actor.Workspace.Plan, limit)
	case NoWorkflow:
		return Webhook{}, "", workflow.NotFound(w.WorkflowID)
	}
	return w, secret, nil
}

// Get returns one webhook.
func (s *Service) Get(ctx context.Context, actor auth.Actor, id string) (Webhook, error) {
	if !uid.Valid(uid.Webhook, id) {
		return Webhook{}, notFound(id)
	}
	w, err := s.store.Webhook(ctx, actor.Workspace.ID, id)
	return fault.Found(w, err, notFound, id)
}

// List returns the webhooks of a workspace, newest first.
func (s *Service) List(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Webhook], error) {
	return s.store.Webhooks(ctx, actor.Workspace.ID, page)
}

// Patch changes a webhook; nil leaves a field as it is. An empty WorkflowID
// means every workflow.
type Patch struct {
	URL        *string
	Events     *[]string
	WorkflowID *string
	Enabled    *bool
}

// Update applies a patch.
func (s *Service) Update(ctx context.Context, actor auth.Actor, id string, patch Patch) (Webhook, error) {
	for {
		w, err := s.Get(ctx, actor, id)
		if err != nil {
			return Webhook{}, err
		}
		was := w.UpdatedAt
		if err := s.set(&w, patch.URL, patch.Events, patch.WorkflowID); err != nil {
			return Webhook{}, err
		}
		if patch.Enabled != nil {
			if w.Enabled != *patch.Enabled {
				w.Enabled, w.FailingSince = *patch.Enabled, nil
			}
			w.DisabledReason = "" // it explains why Stepmill disabled the webhook
		}
		w.UpdatedAt = clock.NowAfter(was)
		entry := actor.AuditEntry("webhook.updated", "webhook", id, map[string]any{"url": redact(w.URL), "enabled": w.Enabled})
		outcome, err := s.store.UpdateWebhook(ctx, w, was, entry)
		switch {
		case err != nil:
			return Webhook{}, err
		case outcome == NoWorkflow:
			return Webhook{}, workflow.NotFound(w.WorkflowID)
		case outcome == Done:
			return w, nil
		}
	}
}

// Delete deletes a webhook. Its pending deliveries are not sent anymore.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, id string) error {
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	entry := actor.AuditEntry("webhook.deleted", "webhook", id, map[string]any{"url": redact(w.URL)})
	deleted, err := s.store.DeleteWebhook(ctx, actor.Workspace.ID, id, entry.At, entry)
	if err == nil && !deleted {
		err = notFound(id)
	}
	return err
}

func (s *Service) set(w *Webhook, address *string, events *[]string, workflowID *string) error {
	if address != nil {
		if err := s.checkURL(*address); err != nil {
			return err
		}
		w.URL = *address
	}
	if events != nil {
		checked, err := checkEvents(*events)
		if err != nil {
			return err
		}
		w.Events = checked
	}
	if workflowID != nil {
		if *workflowID != "" && !uid.Valid(uid.Workflow, *workflowID) {
			return workflow.NotFound(*workflowID)
		}
		w.WorkflowID = *workflowID
	}
	return nil
}

func (s *Service) checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return fault.Field("/url", "must have at most %d characters", maxURL)
	case err != nil, u.Host == "", u.Hostname() == "", u.Opaque != "":
		return fault.Field("/url", "must be an absolute http or https URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fault.Field("/url", "must start with http:// or https://")
	case u.User != nil:
		return fault.Field("/url", "must not contain a user name or password")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return fault.Field("/url", "must not contain a fragment")
	}
	if err := s.guard.CheckURL(u); err != nil {
		return fault.New(fault.WebhookURLNotAllowed, "/url: %s", err).
			With(fault.Detail{Pointer: "/url", Message: err.Error()})
	}
	return nil
}

func checkEvents(names []string) ([]event.Type, error) {
	if len(names) == 0 {
		return nil, fault.Field("/events", "must name at least one event")
	}
	var out []event.Type
	for _, name := range names {
		if !event.Known(name) {
			return nil, fault.Field("/events", "unknown event %q: choose from %v", name, event.Types())
		}
	}
	for _, kind := range event.Types() {
		if slices.Contains(names, string(kind)) {
			out = append(out, kind)
		}
	}
	return out, nil
}

// redact removes the query of a URL, which often contains tokens.
func redact(text string) string {
	before, _, _ := strings.Cut(text, "?")
	return before
}

func notFound(id string) error {
	return fault.New(fault.WebhookNotFound, "there is no webhook %q", id)
}
