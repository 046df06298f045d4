package workflow

import (
	"context"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
)

// Vocabulary has the actions and the types of triggers that a definition can name.
type Vocabulary struct {
	Actions *action.Catalog
	Types   *TriggerTypes
	// own reports whether a name belongs to the workspace itself, so that what it means may
	// have changed since the definition was saved. Nil if none does.
	own func(name string) bool
}

// OwnSource has the actions and the types of triggers that workspaces have described
// themselves.
type OwnSource interface {
	// IsOwn reports whether a name, such as x_acme.create_ticket, can be one of them.
	IsOwn(name string) bool
	// Workspace returns the id of the workspace of a workflow or a run; "" if it was deleted.
	Workspace(ctx context.Context, id string) (string, error)
	// Version identifies what the integrations with the ids are now, in a workspace.
	Version(ctx context.Context, workspaceID string, ids []string) (string, error)
	// Vocabulary returns the actions and the types of triggers with those of the
	// integrations, their version, and how many bytes their descriptions have.
	Vocabulary(ctx context.Context, workspaceID string, ids []string) (v Vocabulary, version string, size int, err error)
}

// ownIDs returns the ids of the own integrations that a definition names, sorted.
func (d Definition) ownIDs(source OwnSource) []string {
	if source == nil {
		return nil
	}
	var out []string
	add := func(name string) {
		if id, _, ok := strings.Cut(name, "."); ok && source.IsOwn(name) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	var walk func([]Step)
	walk = func(steps []Step) {
		for _, step := range steps {
			add(step.Uses)
			walk(step.Steps)
		}
	}
	walk(d.Steps)
	for _, t := range d.Triggers {
		add(t.Type)
	}
	slices.Sort(out)
	return out
}

// vocabulary returns what a definition of a workspace can name.
func (s *Service) vocabulary(ctx context.Context, workspaceID string, d Definition) (Vocabulary, error) {
	shipped := Vocabulary{Actions: s.catalog, Types: s.types}
	ids := d.ownIDs(s.own)
	if len(ids) == 0 {
		return shipped, nil
	}
	v, _, _, err := s.own.Vocabulary(ctx, workspaceID, ids)
	return v, err
}

// Action returns the declaration of an action that a workspace can use.
func (s *Service) Action(ctx context.Context, actor auth.Actor, name string) (action.Spec, error) {
	v, err := s.vocabulary(ctx, actor.Workspace.ID, Definition{Steps: []Step{{Uses: name}}})
	if err != nil {
		return action.Spec{}, err
	}
	return v.Actions.Get(name)
}

// stored returns the vocabulary for a definition that was checked when it was saved. What
// it names of the workspace's own integrations may have changed since then.
func (v Vocabulary) stored(source OwnSource) Vocabulary {
	if source != nil {
		v.own = source.IsOwn
	}
	return v
}

// changed reports whether the problems since the first n are about something of the
// workspace itself that has changed since the definition was saved. Then it forgets them.
func (c *compiler) changed(name string, n int) (because string, changed bool) {
	if c.own == nil || len(c.problems) == n || !c.own(name) {
		return "", false
	}
	because = c.problems[n].Message
	c.problems = c.problems[:n]
	return because, true
}

// broken returns an action that fails, in place of one that a stored definition can no
// longer use.
func broken(name, because string) action.Entry {
	failure := &action.Failure{Code: action.InvalidInput, Message: "the integration of " + name + " was changed since the workflow was saved: " + because}
	return action.Entry{
		Spec: action.Spec{Name: name, Connects: true},
		Action: action.Func(func(context.Context, action.Request) (action.Result, error) {
			return action.Result{}, failure
		}),
	}
}
