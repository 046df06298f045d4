package subscription

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/trigger/service"
	"github.com/stepmill/stepmill/internal/workflow"
)

// settings returns the settings of the trigger that the subscription is for, with their
// defaults; nil if triggers share it.
func (t *task) settings(ctx context.Context) (map[string]any, error) {
	if t.hook.Scope != integration.PerTrigger {
		return nil, nil
	}
	of := t.need.Triggers[0]
	compiled, err := t.compiled(ctx, of)
	if err != nil {
		return nil, err
	}
	_, one := compiled.Config.(*service.Config).Trigger()
	with, err := settingsOf(ctx, t.Values, of, *compiled)
	return operation.Settings(one, with), err
}

func (t *task) compiled(ctx context.Context, of trigger.Trigger) (*workflow.CompiledTrigger, error) {
	compiled, err := trigger.Compiled(ctx, t.Triggers, t.Programs, of, clock.Now())
	if err == nil && compiled == nil {
		err = &action.Failure{Code: trigger.CodeCorrupt, Message: "the definition of the trigger cannot be read: save the workflow again"}
	}
	return compiled, err
}

func settingsOf(ctx context.Context, values trigger.Values, of trigger.Trigger, compiled workflow.CompiledTrigger) (map[string]any, error) {
	return compiled.Config.(*service.Config).Settings(ctx, values, of, compiled, &expr.Env{
		Now: clock.Now(), Trigger: expr.Trigger{Type: compiled.Type, ID: of.ID}, Workflow: expr.Workflow{ID: of.WorkflowID, Version: of.Version},
	})
}

// decode decodes JSON as expressions read it. Nil is nil.
func decode(text json.RawMessage) (any, error) {
	if len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return nil, nil
	}
	return expr.FromJSON(text)
}

func encode(value any) (json.RawMessage, error) { return strictjson.Encode(value) }

// newUUID returns a random UUID (version 4 of RFC 9562).
func newUUID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
