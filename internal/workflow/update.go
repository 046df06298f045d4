package workflow

import (
	"bytes"
	"context"
	"maps"
	"math"
	"regexp"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Patch changes a workflow; nil leaves a part unchanged.
type Patch struct {
	Name *string
	// Description applies if SetDescription is set; nil clears it.
	Description    *string
	SetDescription bool
	State          *State
	Triggers       *[]Trigger
	Steps          *[]Step
	Settings       *SettingsPatch
	Layout         *LayoutPatch
	Pinned         *PinsPatch
	Source         *SourcePatch
}

// SettingsPatch changes options, or replaces all of them.
type SettingsPatch struct {
	Replace        *Settings
	SetTimeout     bool
	Timeout        string
	SetConcurrency bool
	Concurrency    *ConcurrencyPatch // nil removes it
}

// ConcurrencyPatch changes members; null removes one.
type ConcurrencyPatch struct {
	Key     strictjson.Optional[string]    `json:"key"`
	Limit   strictjson.Optional[SlotCount] `json:"limit"`
	OnLimit strictjson.Optional[OnLimit]   `json:"on_limit"`
}

func (p SettingsPatch) apply(s Settings) Settings {
	if p.Replace != nil {
		return *p.Replace
	}
	if p.SetTimeout {
		s.Timeout = p.Timeout
	}
	if p.SetConcurrency {
		s.Concurrency = p.Concurrency.apply(s.Concurrency)
	}
	return s
}

func (p *ConcurrencyPatch) apply(was *Concurrency) *Concurrency {
	if p == nil {
		return nil
	}
	var now Concurrency
	if was != nil {
		now = *was
	}
	if p.Key.Set {
		now.Key = p.Key.Value
	}
	if p.Limit.Set {
		now.Limit = p.Limit.Value
	}
	if p.OnLimit.Set {
		now.OnLimit = p.OnLimit.Value
	}
	return &now
}

// LayoutPatch changes positions on the canvas; nil removes one.
type LayoutPatch struct {
	Clear  bool
	Places map[string]*Point
}

// apply returns a new layout and does not modify was, which may be shared.
func (p LayoutPatch) apply(was Layout) Layout {
	now := Layout{}
	if !p.Clear {
		maps.Copy(now, was)
	}
	for id, place := range p.Places {
		if place == nil {
			delete(now, id)
		} else {
			now[id] = *place
		}
	}
	return now
}

// check returns version_conflict unless the ETag of a workflow is accepted.
func (w Workflow) check(match etag.Match) error {
	if match.Accepts(w.ETag()) {
		return nil
	}
	return fault.New(fault.VersionConflict,
		"workflow %q has changed since it was read: its ETag is now %s; read it again and repeat the change", w.ID, w.ETag())
}

// Update applies a patch. Without If-Match it applies to the current state of the
// workflow, so concurrent changes to other parts are preserved.
func (s *Service) Update(ctx context.Context, actor auth.Actor, id string, patch Patch, match etag.Match) (Workflow, error) {
	return s.change(ctx, actor, id, match, func(w *Workflow) error {
		patch := patch
		if given := patch.Source; given != nil && given.Text != nil && !given.Optional {
			given.Text.fillPatch(&patch, *w)
		}
		if err := patch.applyTexts(w); err != nil {
			return err
		}
		if err := s.applyDefinition(ctx, actor, patch, w); err != nil {
			return err
		}
		return patch.applySource(w)
	})
}

// Prepared is a change of a workflow, or a new one, that is ready to be written. Preparing
// it may have compiled a definition, so it must not happen inside a transaction.
type Prepared struct {
	workflow Workflow
	creation *creation // nil: the workflow exists
	change   *Change   // nil: it is new, or nothing changes
}

// creation says who creates a workflow, with which triggers.
type creation struct {
	actor auth.Actor
	armed []Armed
}

// Commit writes what was prepared and returns the workflow. It is quick. It returns false,
// having written nothing, if the workflow has changed since or one of its connections or
// files was deleted; then prepare it again.
func (s *Service) Commit(ctx context.Context, p Prepared) (w Workflow, committed bool, err error) {
	switch {
	case p.creation != nil:
		if err := s.insert(ctx, p.creation.actor, p.workflow, p.creation.armed...); !fault.Is(err, fault.FileNotFound) {
			return p.workflow, true, err
		}
		return p.workflow, false, nil
	case p.change != nil:
		updated, err := s.store.UpdateWorkflow(ctx, *p.change)
		return p.workflow, updated, err
	}
	return p.workflow, true, nil
}

// change reads, edits and writes a workflow. It starts over if another change was
// written in between.
func (s *Service) change(ctx context.Context, actor auth.Actor, id string, match etag.Match, edit func(*Workflow) error) (Workflow, error) {
	for {
		prepared, err := s.prepareChange(ctx, actor, id, match, edit)
		if err != nil {
			return Workflow{}, err
		}
		w, committed, err := s.Commit(ctx, prepared)
		if err != nil || committed {
			return w, err
		}
	}
}

// prepareChange reads and edits a workflow.
func (s *Service) prepareChange(ctx context.Context, actor auth.Actor, id string, match etag.Match, edit func(*Workflow) error) (Prepared, error) {
	was, err := s.Get(ctx, actor, id)
	if err != nil {
		return Prepared{}, err
	}
	if err := was.check(match); err != nil {
		return Prepared{}, err
	}
	now := was
	if err := edit(&now); err != nil {
		return Prepared{}, err
	}
	change, err := newChange(actor, was, now)
	if err != nil {
		return Prepared{}, err
	}
	if change == nil {
		return Prepared{workflow: was}, nil
	}
	if err := s.arm(ctx, was.State, change); err != nil {
		return Prepared{}, err
	}
	if err := s.requireConnections(ctx, actor, was.State, change); err != nil {
		return Prepared{}, err
	}
	return Prepared{workflow: change.Workflow, change: change}, nil
}

// requireConnections makes a change depend on the connections of an active workflow. A
// workflow that becomes active may have been saved before one of them was deleted.
func (s *Service) requireConnections(ctx context.Context, actor auth.Actor, was State, change *Change) error {
	w := change.Workflow
	if w.State != Active || was == Active && change.NewVersion == nil {
		return nil
	}
	change.Connections = w.Definition.Connections()
	if len(change.Connections) == 0 {
		return nil
	}
	names, err := s.names.Names(ctx, actor)
	if err != nil {
		return err
	}
	v, err := s.vocabulary(ctx, w.WorkspaceID, w.Definition)
	if err != nil {
		return err
	}
	c, _ := compile(w.Definition, v)
	c.problems = nil // a saved definition has none, and a new one was checked
	c.checkConnections(names.Connections)
	if problems := c.sortedProblems(); len(problems) > 0 {
		return invalidDefinition(problems)
	}
	return nil
}

func (p Patch) applyTexts(w *Workflow) error {
	if p.Name != nil {
		name, err := fault.Name("/name", *p.Name, maxName)
		if err != nil {
			return err
		}
		w.Name = name
	}
	if p.SetDescription {
		description, err := checkDescription(p.Description)
		if err != nil {
			return err
		}
		w.Description = description
	}
	if p.State != nil {
		if !p.State.Known() {
			return fault.Field("/state", "must be one of draft, active, paused")
		}
		w.State = *p.State
	}
	return nil
}

func (s *Service) applyDefinition(ctx context.Context, actor auth.Actor, p Patch, w *Workflow) error {
	if p.Layout != nil {
		w.Layout = p.Layout.apply(w.Layout)
		if err := checkLayout(w.Layout); err != nil {
			return err
		}
	}
	if p.Pinned != nil {
		var err error
		if w.Pinned, err = s.applyPins(ctx, actor, *p.Pinned, w.Pinned); err != nil {
			return err
		}
	}
	if p.Triggers == nil && p.Steps == nil && p.Settings == nil {
		return nil
	}
	was := w.Definition
	w.Definition = was.patched(p)
	if err := checkSize(actor, w.Definition); err != nil {
		return err
	}
	problems, err := s.check(ctx, actor, was, &w.Definition)
	if err == nil && len(problems) > 0 {
		err = invalidDefinition(problems)
	}
	if err != nil {
		return err
	}
	return s.requireNodes(ctx, w.Definition)
}

// checkSize rejects a definition with more steps than the plan allows.
func checkSize(actor auth.Actor, d Definition) *fault.Error {
	limit := actor.Limits().StepsPerWorkflow
	count := Count(d.Steps)
	if count <= limit {
		return nil
	}
	return fault.New(fault.PlanLimitExceeded, "the %s plan allows %d steps per workflow; this one has %d", actor.Workspace.Plan, limit, count).
		With(fault.Detail{Pointer: "/steps", Message: "has too many entries"})
}

// patched returns the definition with the patch applied. Lists are replaced.
func (d Definition) patched(p Patch) Definition {
	if p.Triggers != nil {
		d.Triggers = *p.Triggers
	}
	if p.Steps != nil {
		d.Steps = *p.Steps
	}
	if p.Settings != nil {
		d.Settings = p.Settings.apply(d.Settings)
	}
	return d
}

func invalidDefinition(problems []Problem) error {
	err := fault.New(fault.WorkflowInvalid, "the definition has %d problem(s); the first: %s: %s",
		len(problems), problems[0].Pointer, problemText(problems[0]))
	for _, problem := range problems {
		err.Details = append(err.Details, fault.Detail{Pointer: problem.Pointer, Message: problemText(problem)})
	}
	return err
}

var layoutKey = regexp.MustCompile(`^@?[a-z][a-z0-9_]{0,62}$`)

const (
	maxLayout     = 2000
	maxCoordinate = 1e6
)

func checkLayout(layout Layout) error {
	if len(layout) > maxLayout {
		return fault.Field("/layout", "must have at most %d entries", maxLayout)
	}
	for id, at := range layout {
		if !layoutKey.MatchString(id) {
			return fault.Field("/layout", "has a key that is neither a step id nor @ followed by a trigger id")
		}
		if math.Abs(at[0]) > maxCoordinate || math.Abs(at[1]) > maxCoordinate {
			return fault.Field("/layout/"+id, "must be two numbers between -1000000 and 1000000")
		}
	}
	return nil
}

// newChange returns the change from was to now with its version, events and audit
// entries, or nil when nothing changed.
func newChange(actor auth.Actor, was, now Workflow) (*Change, error) {
	before, err := was.Definition.Canonical()
	if err != nil {
		return nil, err
	}
	after, err := now.Definition.Canonical()
	if err != nil {
		return nil, err
	}
	newVersion := !bytes.Equal(before, after)
	if !newVersion && sameRow(was, now) {
		return nil, nil
	}
	now.Revision = was.Revision + 1
	now.UpdatedAt = clock.Now()
	change := &Change{WasRevision: was.Revision, Repinned: !samePins(was.Pinned, now.Pinned) && (was.Pinned.hasFiles() || now.Pinned.hasFiles())}
	if newVersion {
		now.Version = was.Version + 1
		change.NewVersion = &Version{
			WorkflowID: now.ID, Number: now.Version, Definition: now.Definition, Source: now.versionText(),
			CreatedAt: now.UpdatedAt, CreatedBy: actor.Name(),
		}
	} else {
		change.Rewritten = now.versionText() != nil && !sameText(was.versionText(), now.versionText())
	}
	change.Workflow = now
	change.recordEdits(actor, was)
	if was.State != now.State {
		if err := change.recordStateChange(actor, was.State); err != nil {
			return nil, err
		}
	}
	return change, nil
}

func sameRow(a, b Workflow) bool {
	return a.Name == b.Name && a.State == b.State && sameText(a.Description, b.Description) && maps.Equal(a.Layout, b.Layout) &&
		samePins(a.Pinned, b.Pinned) && sameText(a.Source, b.Source) && a.SourceStale == b.SourceStale
}

func (c *Change) recordStateChange(actor auth.Actor, was State) error {
	w := c.Workflow
	actions := map[State]string{Active: "workflow.activated", Paused: "workflow.paused", Draft: "workflow.drafted"}
	c.Entries = append(c.Entries, actor.AuditEntry(actions[w.State], "workflow", w.ID, map[string]any{"name": w.Name, "previous_state": was}))
	kinds := map[State]event.Type{Active: event.WorkflowActivated, Paused: event.WorkflowPaused}
	kind, ok := kinds[w.State]
	if !ok {
		return nil
	}
	e, err := stateEvent(kind, w, was, w.UpdatedAt)
	c.Events = []event.Event{e}
	return err
}

func stateEvent(kind event.Type, w Workflow, was State, at time.Time) (event.Event, error) {
	return event.New(kind, event.Subject{WorkspaceID: w.WorkspaceID, WorkflowID: w.ID}, at, event.WorkflowData{
		WorkflowID: w.ID, WorkflowName: w.Name, State: string(w.State), PreviousState: string(was), Version: w.Version,
	})
}
