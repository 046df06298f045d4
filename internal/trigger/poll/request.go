package poll

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Codes of failed polls, in addition to those of the action that sends the request.
const (
	CodeExpression   = "expression_failed"
	CodeTooManyItems = "too_many_items"
)

const (
	// maxItems limits the items of one response and the keys that are remembered;
	// maxUnkeyed the runs that are started in one transaction.
	maxItems   = 10_000
	maxUnkeyed = 1_000
	maxCursor  = 4 << 10
	// maxResponse limits the items of all pages of a response, in bytes.
	maxResponse = 1 << 20
	timeout     = 30 * time.Second
)

type requests struct {
	values      trigger.Values
	connections trigger.Connections
	catalog     *action.Catalog
}

// IsCalled implements Reader.
func (*requests) IsCalled(workflow.CompiledTrigger) bool { return false }

// Interval implements Reader.
func (*requests) Interval(c workflow.CompiledTrigger) time.Duration {
	return c.Config.(*Config).Schedule.Interval()
}

// Source implements Reader.
func (*requests) Source(t workflow.Trigger) []byte {
	return Hash(fmt.Sprintf("%q %q %q %q", t.Request, t.Items, t.Key, t.Cursor))
}

// Read implements Reader: it sends the request.
func (r *requests) Read(ctx context.Context, asked Query) (Found, *mask.Masker, error) {
	q := request{Query: asked}
	if q.Compiled.Vars {
		var err error
		if q.vars, err = r.values.Vars(ctx, q.Trigger.WorkspaceID); err != nil {
			return Found{}, nil, err
		}
	}
	var err error
	if q.secrets, err = r.values.Open(ctx, q.Trigger.WorkspaceID, q.Compiled.Secrets); err != nil {
		return Found{}, nil, err
	}
	masker := q.mask(nil)
	var response any
	if name := q.Compiled.Connection; name == "" {
		response, err = q.send(ctx, r.catalog, nil, masker)
	} else {
		err = r.connections.Use(ctx, q.Trigger.WorkspaceID, name, timeout, func(ctx context.Context, c action.Connection) (err error) {
			masker = q.mask(c.Mask)
			response, err = q.send(ctx, r.catalog, &c, masker)
			return err
		})
	}
	if err != nil {
		return Found{}, masker, err
	}
	found, err := q.parse(response, masker)
	return found, masker, err
}

type request struct {
	Query
	vars    map[string]any
	secrets map[string]string
}

func (q request) config() *Config { return q.Compiled.Config.(*Config) }

func (q request) env() *expr.Env {
	out := q.Env()
	out.Vars, out.Secrets = q.vars, q.secrets
	return out
}

func (q request) mask(more *mask.Masker) *mask.Masker {
	return mask.Join(mask.New(slices.Collect(maps.Values(q.secrets))), more)
}

// send sends the request and returns the response as expressions see it.
func (q request) send(ctx context.Context, catalog *action.Catalog, connection *action.Connection, secrets *mask.Masker) (any, error) {
	for _, name := range q.Compiled.Secrets {
		if _, there := q.secrets[name]; !there {
			return nil, &action.Failure{Code: run.CodeSecretMissing, Message: fmt.Sprintf("the secret %q no longer exists", name)}
		}
	}
	value, err := q.config().Call.Eval(q.env(), expr.Budget{})
	if err != nil {
		return nil, expressionFailure("request", err)
	}
	input, _ := value.(map[string]any)
	known := func(string) bool { return false }
	if problems := catalog.Check(requestAction, input, known); len(problems) > 0 {
		return nil, &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("request%s: %s", problems[0].Pointer, problems[0].Message)}
	}
	entry, _ := catalog.Find(requestAction)
	call := action.Request{
		Input: input, Now: q.Now, Workspace: q.Trigger.WorkspaceID, Began: q.Now,
		IdempotencyKey: q.Trigger.WorkflowID + "/" + q.Trigger.ID + "/" + strconv.FormatInt(q.Now.UnixMicro(), 10),
		Connection:     connection, Secrets: secrets,
		Log: func(action.Level, string) {}, MaxOutput: maxResponse,
	}
	for {
		result, err := entry.Action.Run(ctx, call)
		if err != nil || result.Checkpoint == nil {
			return result.Output, err
		}
		// A poll that is interrupted starts again, so the pages are only held in memory.
		if err := call.Resume(*result.Checkpoint); err != nil {
			return nil, err
		}
	}
}

// parse extracts the items and the cursor from a response. Items are made of the response
// without secrets: an expression could make something of them that is not recognized.
func (q request) parse(response any, secrets *mask.Masker) (Found, error) {
	env := q.env()
	env.Secrets, env.Response = nil, secrets.Value(response)
	list, err := q.config().List.EvalList(env, expr.Budget{})
	if err != nil {
		return Found{}, expressionFailure("items", err)
	}
	found := Found{Keyed: q.config().Identity != nil}
	if limit := q.itemLimit(); len(list) > limit {
		return Found{}, &action.Failure{Code: CodeTooManyItems, Message: fmt.Sprintf("the response has %d items; a poll accepts at most %d", len(list), limit)}
	}
	for n, value := range list {
		i := Item{Value: value}
		if found.Keyed {
			if i.Key, err = q.keyOf(*env, value, n); err != nil {
				return Found{}, err
			}
		}
		found.Items = append(found.Items, i)
	}
	env.Response = response
	found.Cursor, err = q.nextCursor(env)
	return found, err
}

func (q request) itemLimit() int {
	if q.config().Identity == nil {
		return maxUnkeyed
	}
	return maxItems
}

func (q request) keyOf(env expr.Env, value any, n int) (Key, error) {
	env.Loop = &expr.Loop{Item: value, Index: n}
	id, err := q.config().Identity.Eval(&env, expr.Budget{})
	if err != nil {
		return Key{}, expressionFailure("key", err)
	}
	if id == nil {
		return Key{}, &action.Failure{Code: CodeExpression, Message: fmt.Sprintf("key: item %d has no key", n)}
	}
	text, err := strictjson.Encode(id)
	if err != nil {
		return Key{}, err
	}
	return KeyOf(text), nil
}

// nextCursor returns the cursor for the next poll, or nil.
func (q request) nextCursor(env *expr.Env) (any, error) {
	if q.config().NextCursor == nil {
		return nil, nil
	}
	cursor, err := q.config().NextCursor.Eval(env, expr.Budget{Result: maxCursor})
	if err != nil {
		return nil, expressionFailure("cursor", err)
	}
	return cursor, nil
}

func expressionFailure(member string, err error) error {
	return &action.Failure{Code: CodeExpression, Message: member + ": " + err.Error()}
}
