package operation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/strictjson"
)

const (
	// maxPolled is the most items of a poll, maxPollCalls the most pages or parts that it
	// reads, and maxPollBytes about how large its items can be.
	maxPolled    = 10_000
	maxPollCalls = 1_000
	maxPollBytes = 4 << 20
	// maxCursor is the largest cursor as JSON.
	maxCursor = 4 << 10
)

// CodeTooManyItems is the code of polls that find more than they can handle.
const CodeTooManyItems = "too_many_items"

// Poll is one look for the new items of a trigger.
type Poll struct {
	Service *integration.Integration
	Trigger *integration.Trigger
	// Workspace and Key identify the trigger, and With has its settings.
	Workspace, Key string
	With           map[string]any
	Now            time.Time
	// Cursor is where the last poll has ended. Starting is set if the position is not known
	// yet: what is found then is not new.
	Cursor   any
	Starting bool
}

// Found is what a poll has found.
type Found struct {
	Items []Item
	// Cursor is where the next poll goes on; nil keeps the present one. If there is More, it
	// should do so at once.
	Cursor any
	More   bool
	// PositionLost is set, in place of everything else, if the service no longer knows the
	// cursor.
	PositionLost bool
}

// Item starts a run. Its Key, as JSON, identifies it.
type Item struct {
	Payload any
	Key     []byte
}

// Poll looks for new items with a connection of the service. What it returns contains no
// secrets of the connection.
func (a *Actions) Poll(ctx context.Context, p Poll, c action.Connection) (Found, error) {
	p.With = withDefaults(p.Trigger.Input, p.With)
	found, err := a.poll(ctx, p, c)
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		out := masked(failure, c)
		if failure.Code == integration.PositionLost {
			if p.Cursor != nil {
				return Found{PositionLost: true}, nil
			}
			out.Code = integration.Failed // there is no position to lose
		}
		return Found{}, out
	}
	return found, err
}

func (a *Actions) poll(ctx context.Context, p Poll, c action.Connection) (Found, error) {
	if p.Starting && (p.Trigger.Poll.Start != nil || p.Trigger.Poll.StartCall != nil) {
		cursor, err := a.firstCursor(ctx, p, c)
		return Found{Cursor: cursor}, err
	}
	o := p.Trigger.Poll.Operation
	r := reading{actions: a, service: p.Service, operation: o, maxCalls: maxPollCalls, maxBytes: maxPollBytes}
	e, value, complete, err := r.run(ctx, readRequest(p.Now, p.Workspace, p.Key, p.inputOf(o), c), map[string]any{"cursor": p.Cursor})
	if err != nil {
		return Found{}, err
	}
	items, ok := listOf(value)
	switch {
	case !complete || len(items) > maxPolled:
		return Found{}, &action.Failure{Code: CodeTooManyItems, Message: fmt.Sprintf(
			"%s returns more than a poll can handle, which is %d items in %d pages, or %d MiB: narrow the settings of the trigger", p.Service.Name, maxPolled, maxPollCalls, maxPollBytes>>20)}
	case !ok:
		return Found{}, &action.Failure{Code: integration.Failed, Message: "the integration cannot make sense of the answer: the operation that is polled has not returned a list"}
	}
	env := e.answerEnv(e.lastCall(), e.last)
	env.More["items"] = items
	out := Found{}
	if out.Cursor, err = env.Eval(p.Trigger.Poll.Cursor); err != nil {
		return Found{}, expressionFailure("poll/cursor", err)
	}
	if err := checkCursor(out.Cursor, c); err != nil {
		return Found{}, err
	}
	more, err := env.Eval(p.Trigger.Poll.More)
	if err != nil {
		return Found{}, expressionFailure("poll/more", err)
	}
	out.More = more == true
	out.Items, err = p.items(items, env, c)
	return out, err
}

// inputOf returns the input of an operation: the settings with the names of its inputs.
func (p Poll) inputOf(o *integration.Operation) map[string]any {
	out := map[string]any{}
	for _, in := range o.Input {
		if value, ok := p.With[in.Name]; ok {
			out[in.Name] = value
		}
	}
	if o.Lists() {
		out[integration.AllInput] = true
	}
	return out
}

// listOf returns the items in the output of an operation.
func listOf(value any) ([]any, bool) {
	if object, ok := value.(map[string]any); ok {
		value = object["items"]
	}
	items, ok := value.([]any)
	return items, ok || value == nil
}

func (a *Actions) firstCursor(ctx context.Context, p Poll, c action.Connection) (any, error) {
	cursor, err := a.start(ctx, p, readRequest(p.Now, p.Workspace, p.Key, p.With, c))
	switch {
	case err != nil:
		return nil, err
	case cursor == nil:
		return nil, &action.Failure{Code: integration.Failed, Message: "the integration cannot make sense of the answer: the poll has no first cursor"}
	}
	return cursor, checkCursor(cursor, c)
}

func (a *Actions) start(ctx context.Context, p Poll, req action.Request) (any, error) {
	if call := p.Trigger.Poll.StartCall; call != nil {
		_, cursor, _, err := reading{actions: a, service: p.Service, operation: call, maxCalls: 1}.run(ctx, req, nil)
		return cursor, err
	}
	env := integration.Env{Connection: req.Connection.Variables, Now: req.Now, More: map[string]any{"input": p.With}}
	cursor, err := p.Trigger.Poll.Start.Eval(env)
	if err != nil {
		return nil, expressionFailure("poll/start", err)
	}
	return cursor, nil
}

func checkCursor(cursor any, c action.Connection) error {
	encoded, err := strictjson.Encode(cursor)
	switch {
	case err != nil:
		return err
	case len(encoded) > maxCursor:
		return &action.Failure{Code: integration.Failed, Message: fmt.Sprintf("the cursor of the poll has %d bytes; at most %d are allowed", len(encoded), maxCursor)}
	case c.Mask.Text(string(encoded)) != string(encoded):
		return &action.Failure{Code: integration.Failed, Message: "the cursor of the poll contains the credential of the connection, so it cannot be stored"}
	}
	return nil
}

// items returns what starts runs. Their payloads and keys are made of items without
// secrets.
func (p Poll) items(items []any, env integration.Env, c action.Connection) ([]Item, error) {
	env = integration.Env{Connection: env.Connection, Now: env.Now, More: map[string]any{"input": p.With}}
	var out []Item
	for n, item := range items {
		one, err := itemOf(p.Trigger, n, c.Mask.Value(item), env)
		if err != nil {
			return nil, err
		}
		if one != nil {
			out = append(out, *one)
		}
	}
	return out, nil
}

// itemOf returns what the value at an index, one that a poll has found or an event in a
// call, means for a trigger; nil if it starts no run.
func itemOf(t *integration.Trigger, index int, value any, env integration.Env) (*Item, error) {
	env.More["item"] = value
	if !t.When.IsZero() {
		holds, err := t.When.Holds(env)
		if err != nil {
			return nil, expressionFailure("when", err)
		}
		if !holds {
			return nil, nil
		}
	}
	key, err := env.Eval(t.Key)
	if err != nil {
		return nil, expressionFailure("key", err)
	}
	if key == nil {
		return nil, &action.Failure{Code: integration.Failed, Message: fmt.Sprintf("the integration cannot make sense of the answer: item %d has no key", index+1)}
	}
	out := &Item{Payload: value}
	if out.Key, err = strictjson.Encode(key); err != nil {
		return nil, err
	}
	if t.Output != nil {
		if out.Payload, err = t.Output.Eval(env); err != nil {
			return nil, expressionFailure("output", err)
		}
	}
	return out, nil
}
