// Package operation executes the operations of integrations: it sends the requests that a
// manifest describes, with the connection of the step, and reads the answers. An operation
// is an action like any other; it keeps its progress in the state of the step.
package operation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/integration"
)

// Actions are the operations of a catalog of integrations, as actions. The name of an
// action is that of the integration and of the operation, as in slack.post_message.
type Actions struct {
	integrations *integration.Catalog
	own          Own
	client       transfer.Client
	rates        *limiter
}

// NewActions returns the operations of the integrations.
func NewActions(integrations *integration.Catalog, client transfer.Client) *Actions {
	return &Actions{integrations: integrations, client: client, rates: &limiter{buckets: map[bucketKey]*bucket{}}}
}

// Own finds the integrations that workspaces have described themselves.
type Own interface {
	// Find returns the integration of a workspace with the id; nil if there is none.
	Find(ctx context.Context, workspaceID, id string) (*integration.Integration, error)
}

// UseOwn lets workspaces have integrations of their own.
func (a *Actions) UseOwn(own Own) { a.own = own }

// In returns the operations for a workspace, with those of its own integrations that have
// the names of operations, triggers or hooks. Other names cost nothing.
func (a *Actions) In(ctx context.Context, workspaceID string, names ...string) (*Actions, error) {
	out := a
	for _, name := range names {
		id, _, _ := strings.Cut(name, ".")
		if a.own == nil || !integration.IsOwn(id) {
			continue
		}
		found, err := a.own.Find(ctx, workspaceID, id)
		if err != nil {
			return nil, err
		}
		if found != nil {
			out = out.With(found)
		}
	}
	return out, nil
}

// With returns the operations with those of further integrations. They share the client
// and the rates.
func (a *Actions) With(own ...*integration.Integration) *Actions {
	return &Actions{integrations: a.integrations.With(own...), client: a.client, rates: a.rates, own: a.own}
}

// Outlines returns the operations that people can use, ordered by name.
func (a *Actions) Outlines() []action.Outline {
	var out []action.Outline
	for _, i := range a.integrations.List() {
		for _, o := range i.OperationOutlines() {
			if !o.Hidden {
				out = append(out, action.Outline{Name: i.FullName(o.Name), Summary: summary(i, o.Title, o.Summary)})
			}
		}
	}
	slices.SortFunc(out, func(a, b action.Outline) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Names returns the names of the operations that people can use.
func (a *Actions) Names() []string {
	var out []string
	for _, one := range a.Outlines() {
		out = append(out, one.Name)
	}
	return out
}

// TriggerNames returns the names of the types of triggers, such as gmail.new_message.
func (a *Actions) TriggerNames() []string {
	var out []string
	for _, i := range a.integrations.List() {
		for _, name := range i.TriggerNames() {
			out = append(out, i.FullName(name))
		}
	}
	slices.Sort(out)
	return out
}

// Codes returns the error codes of operations.
func (a *Actions) Codes() []action.Code { return codes }

// Find returns the operation with the name of an action, if people can use it.
func (a *Actions) Find(actionName string) (action.Entry, bool) {
	i, o, ok := a.find(actionName)
	if !ok {
		return action.Entry{}, false
	}
	return a.Entry(i, o), true
}

// find returns the operation with the name of an action, if people can use it.
func (a *Actions) find(actionName string) (*integration.Integration, *integration.Operation, bool) {
	id, name, _ := strings.Cut(actionName, ".")
	i, ok := a.integrations.Find(id)
	if !ok {
		return nil, nil, false
	}
	o, ok := i.FindOperation(name)
	return i, o, ok && !o.Hidden
}

// FindTrigger returns the trigger with the name of a type, such as gmail.new_message.
func (a *Actions) FindTrigger(triggerType string) (*integration.Integration, *integration.Trigger, bool) {
	id, name, _ := strings.Cut(triggerType, ".")
	i, ok := a.integrations.Find(id)
	if !ok {
		return nil, nil, false
	}
	t, ok := i.FindTrigger(name)
	return i, t, ok
}

// FindIntegration returns the integration with an id.
func (a *Actions) FindIntegration(id string) (*integration.Integration, bool) {
	return a.integrations.Find(id)
}

// FindHook returns the hook that has a name such as github.events in a workspace; nil if
// there is none.
func (a *Actions) FindHook(ctx context.Context, workspaceID, name string) (*integration.Integration, *integration.Hook, error) {
	in, err := a.In(ctx, workspaceID, name)
	if err != nil {
		return nil, nil, err
	}
	id, short, _ := strings.Cut(name, ".")
	i, ok := in.integrations.Find(id)
	if !ok {
		return nil, nil, nil
	}
	h, _ := i.FindHook(short)
	return i, h, nil
}

// Name returns the name of the action of an operation.
func Name(i *integration.Integration, o *integration.Operation) string { return i.FullName(o.Name) }

// Entry returns an operation as an action.
func (a *Actions) Entry(i *integration.Integration, o *integration.Operation) action.Entry {
	return action.Entry{
		Spec: action.Spec{
			Name: Name(i, o), Title: o.Title, Summary: summary(i, o.Title, o.Summary), Keywords: i.Keywords, Input: o.InputSchema(), Output: outputSchema(o),
			Connects: true, Integration: i.ConnectedAs(), Timeout: o.Timeout, Codes: codes,
		},
		Action: action.Func(func(ctx context.Context, req action.Request) (action.Result, error) {
			return run(ctx, a, i, o, req)
		}),
	}
}

func summary(i *integration.Integration, title, summary string) string {
	if summary != "" {
		return summary
	}
	return fmt.Sprintf("%s in %s.", title, i.Name)
}

func outputSchema(o *integration.Operation) string {
	if o.Output == nil && o.Calls[len(o.Calls)-1].Items != nil {
		return `{"type": "object", "properties": {` +
			`"items": {"type": ["array", "object"], "description": "The items, or a list file if they are too large for an output."}, ` +
			`"more": {"type": "boolean", "description": "True if the limit ended the list before its last item."}}}`
	}
	return `{"type": "object"}`
}

// OutcomeUnknown is the code of a request that may or may not have had its effect.
const OutcomeUnknown = "outcome_unknown"

var codes = []action.Code{
	{Name: integration.RateLimited, Meaning: "The service allows no more requests for now. The step is retried."},
	{Name: integration.Unavailable, Meaning: "The service cannot be reached, or reports an error of its own. The step is retried."},
	{Name: integration.Reconnect, Meaning: "The service does not accept the credential of the connection."},
	{Name: integration.Invalid, Meaning: "The service rejects the input."},
	{Name: integration.Denied, Meaning: "The account of the connection may not do this."},
	{Name: integration.NotFound, Meaning: "The service does not have what the input names."},
	{Name: integration.Conflict, Meaning: "The service has changed in the meantime, or has this already."},
	{Name: integration.Failed, Meaning: "The service reports another error."},
	{Name: OutcomeUnknown, Meaning: "The service may or may not have received the request, which must not be sent twice. Look there before you retry the run."},
}
