// Package trigger owns the triggers of workflows: when they fire, their progress,
// and why one did not fire. It does not own the definition of a trigger (package
// workflow) or the runs that it starts (package run). Each type of trigger is
// declared by a Type in a package below this one.
package trigger

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Trigger is a trigger as it is stored, separately from its workflow.
type Trigger struct {
	WorkspaceID string
	WorkflowID  string
	ID          string
	// Type is the family of its type. What lists triggers to people sets the type itself.
	Type    string
	Version int
	// Active means that the workflow is active, so that the trigger can fire.
	Active bool
	// NextAt is when it is due, by the clock of its type: see DueAt.
	NextAt *time.Time
	// FiredAt and RunID describe the last time it fired.
	FiredAt *time.Time
	RunID   string
	// Error is the last error, Failures the number of consecutive failures.
	// NotFired is the last reason why it did not fire.
	Error    *Note
	Failures int
	NotFired *Note
	// SealedToken is the encrypted token in the URL of a webhook.
	SealedToken []byte
	// State is the progress of a poll.
	State []byte
	// ListeningUntil is the steady time until which a webhook accepts one call as a test.
	ListeningUntil *time.Time
	// Subscription is the target of the subscription with which a service calls it; "" if
	// none does.
	Subscription string
}

// DueAt returns the time of day at which the trigger is due next; nil if it does not
// depend on time. Polls are due after a duration.
func (t Trigger) DueAt() *time.Time { return workflow.DueAt(t.Type, t.NextAt) }

// Note describes an error of a trigger, or why it did not fire.
type Note struct {
	At      time.Time
	Code    string
	Message string
}

// Codes of notes, in addition to those that reject the start of a run.
const (
	// CodeMissed means that times passed while the trigger could not fire.
	CodeMissed = "missed"
	// CodeNotActive means that the workflow was no longer active.
	CodeNotActive = "workflow_not_active"
	// CodeCorrupt means that the definition or the state cannot be read.
	CodeCorrupt = "corrupt_state"
)

// Move moves a time-based trigger to its next time without starting a run. Of is
// the trigger as it was read: if its time has changed since, nothing happens.
type Move struct {
	Of   Trigger
	Next *time.Time
	// Claims is set if the trigger is being polled until then.
	Claims   bool
	Failures int
	State    []byte // nil: unchanged
	Error    *Note
	NotFired *Note
}

// Store stores triggers. Each method is one transaction. A pointer result is nil
// if there is no such row; a false result means that nothing was changed.
type Store interface {
	In(tx txn.Tx) Store
	Triggers(ctx context.Context, workspaceID, workflowID string) ([]Trigger, error)
	// TriggerByToken returns the webhook whose token has the hash.
	TriggerByToken(ctx context.Context, hash []byte) (*Trigger, error)
	// DueTriggers returns the due triggers of a type, earliest first.
	DueTriggers(ctx context.Context, kind string, now time.Time, limit int) ([]Trigger, error)
	// NextTrigger returns the earliest due time of a type.
	NextTrigger(ctx context.Context, kind string) (*time.Time, error)
	MoveTrigger(ctx context.Context, m Move) (moved bool, err error)
	// PollNow makes the poll of a trigger due, or due again if it is in progress.
	PollNow(ctx context.Context, of Trigger, at time.Time) error
	// NoteTrigger records the notes that are not nil.
	NoteTrigger(ctx context.Context, of Trigger, failed, notFired *Note) error
	// RotateToken stores a new sealed token and its hash.
	RotateToken(ctx context.Context, t Trigger, hash []byte, entry audit.Entry) (rotated bool, err error)
	// Listen stores ListeningUntil of a webhook whose workflow is not active. It returns
	// ErrTooManyListening if more than atMost of the workspace would be listening.
	Listen(ctx context.Context, t Trigger, atMost int) (listening bool, err error)
	StopListening(ctx context.Context, t Trigger) error
}

// Sealer encrypts tokens at rest.
type Sealer interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Workflows returns workflows.
type Workflows interface {
	Get(ctx context.Context, actor auth.Actor, id string) (workflow.Workflow, error)
}

// Runs starts runs.
type Runs interface {
	Fire(ctx context.Context, f run.Firing) (run.Started, error)
	PrepareTest(ctx context.Context, actor auth.Actor, workflowID string, trigger run.Trigger, files map[string]string, watch bool) (*run.Prepared, error)
	// Watch watches a run that was started earlier; Await waits for its end.
	Watch(ctx context.Context, actor auth.Actor, id string) (run.Started, error)
	Await(ctx context.Context, actor auth.Actor, started run.Started, atMost time.Duration) (run.Detail, error)
}

// Service implements the use cases of triggers.
type Service struct {
	types     *Types
	store     Store
	workflows Workflows
	runs      Runs
	vault     Sealer
	inbox     *Inbox
	base      func() string
}

// NewService returns a service on a store. The URLs of triggers start with base;
// the inbox has their latest calls.
func NewService(types *Types, store Store, workflows Workflows, runs Runs, vault Sealer, inbox *Inbox, base func() string) *Service {
	return &Service{types: types, store: store, workflows: workflows, runs: runs, vault: vault, inbox: inbox, base: base}
}

// In returns the service as a part of a transaction: what it writes, not what it reads of
// workflows and runs.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.store = s.store.In(tx)
	return &bound
}

// List lists the triggers of a workflow by id, including those that are not stored
// separately.
func (s *Service) List(ctx context.Context, actor auth.Actor, workflowID string, page paging.Request) (paging.Page[Trigger], error) {
	w, err := s.workflows.Get(ctx, actor, workflowID)
	if err != nil {
		return paging.Page[Trigger]{}, err
	}
	stored, err := s.store.Triggers(ctx, actor.Workspace.ID, workflowID)
	if err != nil {
		return paging.Page[Trigger]{}, err
	}
	byID := map[string]Trigger{}
	for _, t := range stored {
		byID[t.ID] = t
	}
	var out []Trigger
	for _, defined := range w.Definition.Triggers {
		t := byID[defined.ID]
		if t.Type != workflow.FamilyOf(defined.Type) {
			t = Trigger{WorkspaceID: w.WorkspaceID, WorkflowID: w.ID, ID: defined.ID, Version: w.Version, Active: w.State == workflow.Active}
		}
		t.Type = defined.Type
		if t.ID > page.After {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Trigger) int { return cmp.Compare(a.ID, b.ID) })
	out = out[:min(len(out), page.Limit+1)]
	return paging.Cut(out, page.Limit, func(t Trigger) string { return t.ID }), nil
}

// SampleOf returns a payload like that of the triggers of a type, or nil.
func (s *Service) SampleOf(triggerType string) (json.RawMessage, error) {
	kind := s.types.find(triggerType)
	if kind.Sample == nil {
		return nil, nil
	}
	return kind.Sample("", workflow.Trigger{Type: triggerType}, clock.Now())
}

func (s *Service) find(ctx context.Context, actor auth.Actor, workflowID, id string) (workflow.Trigger, error) {
	w, err := s.workflows.Get(ctx, actor, workflowID)
	if err != nil {
		return workflow.Trigger{}, err
	}
	for _, t := range w.Definition.Triggers {
		if t.ID == id {
			return t, nil
		}
	}
	return workflow.Trigger{}, notFound(workflowID, id)
}
