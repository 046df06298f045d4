package workflow

import (
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

// Versions lists the versions of a workflow, newest first, without their
// definitions.
func (s *Service) Versions(ctx context.Context, actor auth.Actor, id string, page paging.Request) (paging.Page[Version], error) {
	if _, err := s.Get(ctx, actor, id); err != nil {
		return paging.Page[Version]{}, err
	}
	return s.store.Versions(ctx, actor.Workspace.ID, id, page)
}

// Version reads one version with its definition.
func (s *Service) Version(ctx context.Context, actor auth.Actor, id string, number int) (Version, error) {
	if _, err := s.Get(ctx, actor, id); err != nil {
		return Version{}, err
	}
	version, err := s.store.Version(ctx, actor.Workspace.ID, id, number)
	if err != nil {
		return Version{}, err
	}
	if version == nil {
		return Version{}, fault.New(fault.VersionNotFound, "workflow %q has no version %d", id, number)
	}
	return *version, nil
}

// PrepareRestore prepares to make the definition and the text of an old version
// current again, as a new version. It changes nothing if they already are.
func (s *Service) PrepareRestore(ctx context.Context, actor auth.Actor, id string, number int, match etag.Match) (Prepared, error) {
	version, err := s.Version(ctx, actor, id, number)
	if err != nil {
		return Prepared{}, err
	}
	d := version.Definition
	patch := Patch{Triggers: &d.Triggers, Steps: &d.Steps, Settings: &SettingsPatch{Replace: &d.Settings}}
	prepared, err := s.prepareChange(ctx, actor, id, match, func(w *Workflow) error {
		if version.Source != nil {
			// It may no longer match: the name may have changed since.
			w.Source = version.Source
		}
		if err := s.applyDefinition(ctx, actor, patch, w); err != nil {
			return err
		}
		return patch.applySource(w)
	})
	if prepared.change != nil {
		prepared.change.recordRestore(number)
	}
	return prepared, err
}

// Validate checks the stored definition with a patch applied and saves nothing.
func (s *Service) Validate(ctx context.Context, actor auth.Actor, id string, patch Patch) (problems, warnings []Problem, err error) {
	w, err := s.Get(ctx, actor, id)
	if err != nil {
		return nil, nil, err
	}
	definition := w.Definition.patched(patch)
	// Do not compile a definition that is too large to be saved.
	if err := checkSize(actor, definition); err != nil {
		return []Problem{{Pointer: "/steps", Message: err.Message}}, nil, nil //nolint:nilerr // the problem is the result
	}
	problems, err = s.check(ctx, actor, w.Definition, &definition)
	return problems, definition.Warnings(), err
}

// Comparison is the difference between two versions of a workflow.
type Comparison struct {
	WorkflowID string
	From       int
	To         int
	Diff
}

// Diff compares two versions. If to is zero, it is the current version.
func (s *Service) Diff(ctx context.Context, actor auth.Actor, id string, from, to int) (Comparison, error) {
	was, err := s.Version(ctx, actor, id, from)
	if err != nil {
		return Comparison{}, err
	}
	if to == 0 {
		w, err := s.Get(ctx, actor, id)
		if err != nil {
			return Comparison{}, err
		}
		to = w.Version
	}
	now, err := s.Version(ctx, actor, id, to)
	if err != nil {
		return Comparison{}, err
	}
	diff, err := Compare(was.Definition, now.Definition)
	return Comparison{WorkflowID: id, From: from, To: to, Diff: diff}, err
}
