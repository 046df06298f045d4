package trigger

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
	"github.com/stepmill/stepmill/internal/workflow"
)

// Codes of polls that went wrong, beside those of the action that asks.
const (
	CodeExpression = "expression_failed"
	CodeItems      = "too_many_items"
)

const (
	// maxItems bounds what one answer may have, and what is remembered of those
	// before; maxUnkeyed what is started in one unit.
	maxItems   = 10_000
	maxUnkeyed = 1_000
	maxCursor  = 4 << 10
)

// question is what a poll asks with.
type question struct {
	planned workflow.PlannedTrigger
	of      Trigger
	cursor  any
	now     time.Time
	vars    map[string]any
	secrets map[string]string
}

// answer is what a poll is answered: its items, and where to go on.
type answer struct {
	items  []item
	cursor any // nil: as before
	keyed  bool
}

// item is one of an answer.
type item struct {
	value any
	key   key // what it is remembered by
}

type key [8]byte

// payload is the item as a run gets it: an object.
func (i item) payload() ([]byte, error) {
	if _, ok := i.value.(map[string]any); ok {
		return strictjson.Encode(i.value)
	}
	return strictjson.Encode(map[string]any{"value": i.value})
}

func (q question) env() *expr.Env {
	return &expr.Env{
		Cursor: q.cursor, Vars: q.vars, Secrets: q.secrets, Now: q.now,
		Trigger:  expr.Trigger{Type: q.of.Type, ID: q.of.ID},
		Workflow: expr.Workflow{ID: q.of.WorkflowID, Version: q.of.Version},
	}
}

func (q question) mask() *mask.Masker { return mask.New(slices.Sorted(maps.Values(q.secrets))) }

// call asks, and returns the answer as expressions see it.
func (q question) call(ctx context.Context, catalog *action.Catalog) (any, error) {
	for _, name := range q.planned.Secrets {
		if _, there := q.secrets[name]; !there {
			return nil, &action.Failure{Code: run.CodeSecretMissing, Message: fmt.Sprintf("there is no secret %q any more", name)}
		}
	}
	value, err := q.planned.Call.Eval(q.env(), expr.Budget{})
	if err != nil {
		return nil, wrongExpression("request", err)
	}
	input, _ := value.(map[string]any)
	known := func(string) bool { return false }
	if problems := catalog.Check(workflow.PollAction, input, known); len(problems) > 0 {
		return nil, &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("request%s: %s", problems[0].Pointer, problems[0].Message)}
	}
	entry, _ := catalog.Find(workflow.PollAction)
	result, err := entry.Action.Run(ctx, action.Request{
		Input: input, Now: q.now, Workspace: q.of.WorkspaceID, Began: q.now,
		IdempotencyKey: q.of.WorkflowID + "/" + q.of.ID + "/" + strconv.FormatInt(q.now.UnixMicro(), 10),
		Log:            func(action.Level, string) {},
	})
	return result.Output, err
}

// read picks items and cursor from an answer.
func (q question) read(response any) (answer, error) {
	env := q.env()
	env.Secrets, env.Response = nil, response
	list, err := q.planned.List.EvalList(env, expr.Budget{})
	if err != nil {
		return answer{}, wrongExpression("items", err)
	}
	found := answer{keyed: q.planned.Identity != nil}
	if most := q.most(); len(list) > most {
		return answer{}, &action.Failure{Code: CodeItems, Message: fmt.Sprintf("the answer has %d items; at most %d can be taken at a time", len(list), most)}
	}
	seen := map[key]bool{}
	for n, value := range list {
		i := item{value: value}
		if found.keyed {
			if i.key, err = q.keyOf(*env, value, n); err != nil {
				return answer{}, err
			}
			if seen[i.key] {
				continue
			}
			seen[i.key] = true
		}
		found.items = append(found.items, i)
	}
	found.cursor, err = q.nextCursor(env)
	return found, err
}

func (q question) most() int {
	if q.planned.Identity == nil {
		return maxUnkeyed
	}
	return maxItems
}

// keyOf is what an item is remembered by.
func (q question) keyOf(env expr.Env, value any, n int) (key, error) {
	env.Loop = &expr.Loop{Item: value, Index: n}
	id, err := q.planned.Identity.Eval(&env, expr.Budget{})
	if err != nil {
		return key{}, wrongExpression("key", err)
	}
	if id == nil {
		return key{}, &action.Failure{Code: CodeExpression, Message: fmt.Sprintf("key: item %d has none", n)}
	}
	text, err := strictjson.Encode(id)
	if err != nil {
		return key{}, err
	}
	sum := sha256.Sum256(text)
	return key(sum[:len(key{})]), nil
}

// nextCursor is where to go on; nil where nothing is said.
func (q question) nextCursor(env *expr.Env) (any, error) {
	if q.planned.NextCursor == nil {
		return nil, nil
	}
	cursor, err := q.planned.NextCursor.Eval(env, expr.Budget{Result: maxCursor})
	if err != nil {
		return nil, wrongExpression("cursor", err)
	}
	return cursor, nil
}

func wrongExpression(member string, err error) error {
	return &action.Failure{Code: CodeExpression, Message: member + ": " + err.Error()}
}
