package poll

import (
	"context"
	"crypto/sha256"
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
)

// request holds everything that the request of a poll is built from.
type request struct {
	compiled workflow.CompiledTrigger
	trigger  trigger.Trigger
	cursor   any
	now      time.Time
	vars     map[string]any
	secrets  map[string]string
}

// result holds the items of a response and the next cursor.
type result struct {
	items  []item
	cursor any // nil: unchanged
	keyed  bool
}

// item is one item of a response.
type item struct {
	value any
	key   key // identifies items that were seen
}

type key [8]byte

// payload returns the item as the payload of a run, which is an object.
func (i item) payload() ([]byte, error) {
	if _, ok := i.value.(map[string]any); ok {
		return strictjson.Encode(i.value)
	}
	return strictjson.Encode(map[string]any{"value": i.value})
}

func (q request) config() *Config { return q.compiled.Config.(*Config) }

func (q request) env() *expr.Env {
	return &expr.Env{
		Cursor: q.cursor, Vars: q.vars, Secrets: q.secrets, Now: q.now,
		Trigger:  expr.Trigger{Type: q.trigger.Type, ID: q.trigger.ID},
		Workflow: expr.Workflow{ID: q.trigger.WorkflowID, Version: q.trigger.Version},
	}
}

// mask masks the secrets of the request and more.
func (q request) mask(more *mask.Masker) *mask.Masker {
	return mask.Join(mask.New(slices.Collect(maps.Values(q.secrets))), more)
}

// send sends the request and returns the response as expressions see it.
func (q request) send(ctx context.Context, catalog *action.Catalog, connection *action.Connection, secrets *mask.Masker) (any, error) {
	for _, name := range q.compiled.Secrets {
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
		Input: input, Now: q.now, Workspace: q.trigger.WorkspaceID, Began: q.now,
		IdempotencyKey: q.trigger.WorkflowID + "/" + q.trigger.ID + "/" + strconv.FormatInt(q.now.UnixMicro(), 10),
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
func (q request) parse(response any, secrets *mask.Masker) (result, error) {
	env := q.env()
	env.Secrets, env.Response = nil, secrets.Value(response)
	list, err := q.config().List.EvalList(env, expr.Budget{})
	if err != nil {
		return result{}, expressionFailure("items", err)
	}
	found := result{keyed: q.config().Identity != nil}
	if limit := q.itemLimit(); len(list) > limit {
		return result{}, &action.Failure{Code: CodeTooManyItems, Message: fmt.Sprintf("the response has %d items; a poll accepts at most %d", len(list), limit)}
	}
	seen := map[key]bool{}
	for n, value := range list {
		i := item{value: value}
		if found.keyed {
			if i.key, err = q.keyOf(*env, value, n); err != nil {
				return result{}, err
			}
			if seen[i.key] {
				continue
			}
			seen[i.key] = true
		}
		found.items = append(found.items, i)
	}
	env.Response = response
	found.cursor, err = q.nextCursor(env)
	return found, err
}

func (q request) itemLimit() int {
	if q.config().Identity == nil {
		return maxUnkeyed
	}
	return maxItems
}

// keyOf returns the key that identifies an item.
func (q request) keyOf(env expr.Env, value any, n int) (key, error) {
	env.Loop = &expr.Loop{Item: value, Index: n}
	id, err := q.config().Identity.Eval(&env, expr.Budget{})
	if err != nil {
		return key{}, expressionFailure("key", err)
	}
	if id == nil {
		return key{}, &action.Failure{Code: CodeExpression, Message: fmt.Sprintf("key: item %d has no key", n)}
	}
	text, err := strictjson.Encode(id)
	if err != nil {
		return key{}, err
	}
	sum := sha256.Sum256(text)
	return key(sum[:len(key{})]), nil
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
