package workflow

import (
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// Import is a complete workflow to create as a draft.
type Import struct {
	// Patch holds the parts of the workflow. Its State is ignored.
	Patch Patch
	// DefaultName is used if neither the patch nor its text has a name.
	DefaultName string
	// AllowStale saves a text that does not match the other parts as stale
	// instead of rejecting it.
	AllowStale bool
}

// PrepareImport prepares a draft with a complete definition as its first version.
// It returns the problems of all parts at once.
func (s *Service) PrepareImport(ctx context.Context, actor auth.Actor, in Import) (Prepared, error) {
	w := newDraft(actor)
	patch := in.Patch
	if given := patch.Source; given != nil && given.Text != nil && !given.Optional {
		given.Text.fillPatch(&patch, w)
	}
	if patch.Name == nil && in.DefaultName != "" {
		patch.Name = &in.DefaultName
	}
	var problems problemList
	if patch.Name == nil {
		problems.add(fault.Field("/name", "is required"))
	}
	for _, part := range patch.parts() {
		if err := s.apply(ctx, actor, part, &w); !problems.add(err) {
			return Prepared{}, err
		}
	}
	if err := problems.err(); err != nil {
		return Prepared{}, err
	}
	if in.AllowStale && patch.Source != nil && patch.Source.Text != nil {
		w.Source = &patch.Source.Text.Written
		patch.Source = nil
	}
	if err := patch.applySource(&w); err != nil {
		return Prepared{}, err
	}
	armed, err := s.armed(ctx, w)
	return Prepared{workflow: w, creation: &creation{actor, armed}}, err
}

// Import prepares and creates a draft.
func (s *Service) Import(ctx context.Context, actor auth.Actor, in Import) (Workflow, error) {
	for {
		prepared, err := s.PrepareImport(ctx, actor, in)
		if err != nil {
			return Workflow{}, err
		}
		w, committed, err := s.Commit(ctx, prepared)
		if err != nil || committed {
			return w, err
		}
	}
}

// newDraft returns a draft without a name and without steps.
func newDraft(actor auth.Actor) Workflow {
	now := clock.Now()
	return Workflow{
		ID: uid.At(uid.Workflow, now), WorkspaceID: actor.Workspace.ID, State: Draft, Version: 1, Revision: 1,
		Layout: Layout{}, Pinned: Pins{}, CreatedAt: now, UpdatedAt: now,
	}
}

// insert stores a new draft with its first version and its triggers.
func (s *Service) insert(ctx context.Context, actor auth.Actor, w Workflow, armed ...Armed) error {
	first := Version{
		WorkflowID: w.ID, Number: w.Version, Definition: w.Definition, Source: w.versionText(), CreatedAt: w.CreatedAt, CreatedBy: actor.Name(),
	}
	limit := actor.Limits().Workflows
	entry := actor.AuditEntry("workflow.created", "workflow", w.ID, map[string]any{"name": w.Name})
	inserted, err := s.store.InsertWorkflow(ctx, w, first, limit, entry, armed...)
	if err == nil && !inserted {
		err = fault.New(fault.PlanLimitExceeded, "the %s plan allows %d workflows; delete one first", actor.Workspace.Plan, limit)
	}
	return err
}

// apply applies a part of an import.
func (s *Service) apply(ctx context.Context, actor auth.Actor, part Patch, w *Workflow) error {
	if err := part.applyTexts(w); err != nil {
		return err
	}
	return s.applyDefinition(ctx, actor, part, w)
}

// parts splits a patch so that a problem in one part does not hide those in
// another. The source, which has to agree with all of them, and the state are
// left out.
func (p Patch) parts() []Patch {
	return []Patch{
		{Name: p.Name},
		{Description: p.Description, SetDescription: p.SetDescription},
		{Layout: p.Layout},
		{Pinned: p.Pinned},
		{Triggers: p.Triggers, Steps: p.Steps, Settings: p.Settings},
	}
}

// problemList collects the problems of the parts of a workflow.
type problemList struct {
	found []*fault.Error
}

// add collects err and reports whether the import can continue to look for more.
func (l *problemList) add(err error) bool {
	if err == nil {
		return true
	}
	f, ok := fault.As(err)
	if !ok || f.Code != fault.InvalidRequest && f.Code != fault.WorkflowInvalid {
		return false
	}
	l.found = append(l.found, f)
	return true
}

// err returns all problems as one error. Its code is workflow_invalid if the
// definition has a problem.
func (l *problemList) err() error {
	if len(l.found) == 0 {
		return nil
	}
	all := *l.found[len(l.found)-1] // the definition comes last
	all.Details = nil
	for _, f := range l.found {
		all.Details = append(all.Details, f.Details...)
	}
	if first := all.Details[0]; len(l.found) > 1 {
		return fault.New(all.Code, "the workflow has %d problems; the first: %s: %s", len(all.Details), first.Pointer, first.Message).With(all.Details...)
	}
	return &all
}
