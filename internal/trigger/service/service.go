// Package service declares the types of triggers that belong to services, such as
// gmail.new_message. The manifest of the integration describes each of them.
package service

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/authoring"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/trigger/poll"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Type declares the types of the integrations whose operations these are.
func Type(operations *operation.Actions) trigger.Type {
	return trigger.Type{
		Format:   workflow.TriggerType{Name: workflow.ServiceTrigger},
		Services: &Types{operations: operations},
		First:    first,
		Hook:     hook,
		Firer: func(d trigger.Deps) trigger.Firer {
			return poll.NewPoller(d, workflow.ServiceTrigger, &reader{values: d.Values, connections: d.Connections, operations: operations}, timeout)
		},
		Sample: func(_ string, t workflow.Trigger, _ time.Time) (json.RawMessage, error) { return Sample(t.Type) },
	}
}

// first returns when a trigger is polled first: immediately, to find out what is not new.
func first(_ string, t workflow.CompiledTrigger, _ time.Time) time.Time {
	if t.Config.(*Config).trigger.Poll == nil {
		return time.Time{}
	}
	return clock.Steady()
}

// hook returns how the service calls a trigger. It does not call while the workflow is not
// active, unless people have to enter the URL: then that stays the same.
func hook(t workflow.CompiledTrigger, active bool) *workflow.ArmedHook {
	config := t.Config.(*Config)
	h := config.trigger.Hook
	if h == nil || !active && h.Register != nil {
		return nil
	}
	out := &workflow.ArmedHook{Name: config.integration.FullName(h.Name), Connection: t.Connection}
	if h.Scope == integration.PerTrigger {
		out.Settings = hex.EncodeToString(poll.Hash(fmt.Sprintf("%q", t.With)))
	}
	return out
}

// NewTypes returns the types of triggers of the integrations whose operations these are.
func NewTypes(operations *operation.Actions) *Types { return &Types{operations: operations} }

// Types are the types of triggers of integrations.
type Types struct {
	operations *operation.Actions
	found      sync.Map // by name: workflow.TriggerType
}

// Names implements workflow.TriggerSource.
func (t *Types) Names() []string { return t.operations.TriggerNames() }

// Find implements workflow.TriggerSource.
func (t *Types) Find(name string) (workflow.TriggerType, bool) {
	if found, ok := t.found.Load(name); ok {
		return found.(workflow.TriggerType), true
	}
	i, one, ok := t.operations.FindTrigger(name)
	if !ok {
		return workflow.TriggerType{}, false
	}
	checker, err := action.NewCatalog(action.Entry{Spec: action.Spec{Name: name, Input: one.InputSchema()}})
	if err != nil {
		return workflow.TriggerType{}, false // a test compiles all of them
	}
	found := workflow.TriggerType{
		Name: name, Summary: Summary(i, one),
		Members: func(*action.Catalog) map[string]any { return t.Members() },
		Input:   map[string]any{"type": "object"},
		Compile: func(c *workflow.TriggerCompiler, t workflow.Trigger) any { return compile(c, t, i, one, checker) },
	}
	t.found.Store(name, found)
	return found, true
}

// Members implements workflow.TriggerSource.
func (*Types) Members() map[string]any {
	return map[string]any{
		"every":      workflow.IntervalSchema(),
		"connection": poll.ConnectionSchema(),
	}
}

// Summary says what starts runs.
func Summary(i *integration.Integration, t *integration.Trigger) string {
	if t.Summary != "" {
		return t.Summary
	}
	return fmt.Sprintf("%s in %s.", t.Title, i.Name)
}

// Sample returns a payload of a type, one of its tests, or nil if it has none.
func Sample(name string) (json.RawMessage, error) {
	id, short, _ := strings.Cut(name, ".")
	if integration.IsOwn(id) {
		return nil, nil // a workspace gives no tests
	}
	tests, err := authoring.BuiltinTests(id)
	if err != nil {
		return nil, err
	}
	return tests.Payload(short), nil
}

// Config is a compiled trigger of a service.
type Config struct {
	integration *integration.Integration
	trigger     *integration.Trigger
	schedule    *cron.Schedule // of polls; nil if there are none
	settings    *expr.Value
	checker     *action.Catalog // of the settings
}

// Trigger returns the integration, and its trigger.
func (c *Config) Trigger() (*integration.Integration, *integration.Trigger) {
	return c.integration, c.trigger
}

// Settings returns the settings of the trigger with the values of their expressions.
func (c *Config) Settings(ctx context.Context, values trigger.Values, t trigger.Trigger, compiled workflow.CompiledTrigger, env *expr.Env) (map[string]any, error) {
	if compiled.Vars {
		var err error
		if env.Vars, err = values.Vars(ctx, t.WorkspaceID); err != nil {
			return nil, err
		}
	}
	value, err := c.settings.Eval(env, expr.Budget{})
	if err != nil {
		return nil, &action.Failure{Code: poll.CodeExpression, Message: "with: " + err.Error()}
	}
	settings, _ := value.(map[string]any)
	problems := c.checker.Check(compiled.Type, settings, func(string) bool { return false })
	if len(problems) > 0 {
		return nil, &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("with%s: %s", problems[0].Pointer, problems[0].Message)}
	}
	return settings, nil
}

func compile(c *workflow.TriggerCompiler, t workflow.Trigger, i *integration.Integration, one *integration.Trigger, checker *action.Catalog) any {
	config := &Config{integration: i, trigger: one, checker: checker}
	switch {
	case one.Poll == nil && t.Every != "":
		c.Report("/every", "remove it", "%s is told what is new and does not look for it", t.Type)
	case one.Poll == nil:
	case t.Every != "":
		config.schedule = c.Interval("/every", t.Every)
	default:
		config.schedule = cron.Every(one.Poll.Every)
	}
	c.ConnectionOf("/connection", t.Connection, i.ConnectedAs(), t.Type)
	config.settings = c.Settings(t, checker, t.Type)
	return config
}
