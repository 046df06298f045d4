package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

// PutVariable makes a variable or replaces its value, which is any JSON.
func (s *Service) PutVariable(ctx context.Context, actor auth.Actor, name string, value json.RawMessage) (made Variable, created bool, err error) {
	if err := checkName(name); err != nil {
		return Variable{}, false, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return Variable{}, false, fault.Field("/value", "is not JSON")
	}
	if compact.Len() > MaxValue {
		return Variable{}, false, fault.Field("/value", "must have at most %d bytes", MaxValue)
	}
	now, limits := clock.Now(), actor.Limits()
	made = Variable{
		WorkspaceID: actor.Workspace.ID, Name: name, Value: compact.Bytes(),
		CreatedAt: now, CreatedBy: actor.Name(), UpdatedAt: now, UpdatedBy: actor.Name(),
	}
	made, outcome, err := s.store.PutVariable(ctx, made, limits.Variables, limits.VariableBytes, deed(actor, "variable", name))
	switch {
	case err != nil:
	case outcome == TooMany:
		err = fault.New(fault.PlanLimitExceeded, "the %s plan allows %d variables; delete one first", actor.Workspace.Plan, limits.Variables)
	case outcome == TooLarge:
		err = fault.New(fault.PlanLimitExceeded, "the %s plan allows %d bytes for all variables together", actor.Workspace.Plan, limits.VariableBytes)
	}
	return made, outcome == Created, err
}

// GetVariable reads one variable.
func (s *Service) GetVariable(ctx context.Context, actor auth.Actor, name string) (Variable, error) {
	if !namePattern.MatchString(name) {
		return Variable{}, noVariable(name)
	}
	found, err := s.store.Variable(ctx, actor.Workspace.ID, name)
	return fault.Found(found, err, noVariable, name)
}

// ListVariables lists the variables of a workspace by name.
func (s *Service) ListVariables(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Variable], error) {
	return s.store.Variables(ctx, actor.Workspace.ID, page)
}

// DeleteVariable removes a variable; expressions that refer to it find nil.
func (s *Service) DeleteVariable(ctx context.Context, actor auth.Actor, name string) error {
	if !namePattern.MatchString(name) {
		return noVariable(name)
	}
	deleted, err := s.store.DeleteVariable(ctx, actor.Workspace.ID, name, actor.Did("variable.deleted", "variable", name, nil))
	if err == nil && !deleted {
		err = noVariable(name)
	}
	return err
}

// Variables returns every variable of a workspace as expressions see it.
func (s *Service) Variables(ctx context.Context, workspaceID string) (map[string]any, error) {
	found, err := s.store.VariableValues(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	values := make(map[string]any, len(found))
	for name, raw := range found {
		if values[name], err = expr.FromJSON(raw); err != nil {
			return nil, fmt.Errorf("read the variable %s: %w", name, err)
		}
	}
	return values, nil
}

func noVariable(name string) error {
	return fault.New(fault.VariableNotFound, "there is no variable %q", name)
}
