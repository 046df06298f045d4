// Package poll declares the trigger type poll, which sends a request at an interval
// and fires for each new item in the response.
package poll

import (
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

const requestAction = "http.request"

// Type declares the type.
func Type() trigger.Type {
	return trigger.Type{
		Format: workflow.TriggerType{
			Name: workflow.PollTrigger, Summary: "New items in the response of a server that is polled regularly.",
			Members: members, Compile: compile,
			Rule: schema{
				"required": []string{"every", "request", "items"},
				"anyOf":    []schema{{"required": []string{"key"}}, {"required": []string{"cursor"}}},
			},
		},
		// The first poll is immediate: later responses are compared with the first.
		First: func(string, workflow.CompiledTrigger, time.Time) time.Time { return clock.Steady() },
		Firer: func(d trigger.Deps) trigger.Firer {
			return NewPoller(d, workflow.PollTrigger, &requests{values: d.Values, connections: d.Connections, catalog: d.Actions}, timeout)
		},
		Sample: sample,
	}
}

// Config is a compiled poll.
type Config struct {
	Schedule   *cron.Schedule
	Call       *expr.Value
	List       *expr.Program
	Identity   *expr.Program // nil: every item is new
	NextCursor *expr.Program // nil: no cursor
}

func compile(c *workflow.TriggerCompiler, t workflow.Trigger) any {
	config := &Config{}
	if t.Every == "" {
		c.Report("/every", "", "is required")
	} else {
		config.Schedule = c.Interval("/every", t.Every)
	}
	c.Connection("/connection", t.Connection)
	if t.Request == nil {
		c.Report("/request", "", "is required")
	} else {
		config.Call = c.ActionInput("/request", requestAction, t.Request, workflow.TriggerScope{Cursor: true})
	}
	response := workflow.TriggerScope{Response: true, Cursor: true}
	if t.Items == "" {
		c.Report("/items", "", "is required")
	} else {
		config.List = c.StoredExpression("/items", t.Items, response)
	}
	if t.Key == "" && t.Cursor == "" {
		c.Report("/key", "or add cursor", "is required to tell new items from those already seen")
	}
	if t.Key != "" {
		item := response
		item.Item = true
		config.Identity = c.StoredExpression("/key", t.Key, item)
	}
	if t.Cursor != "" {
		config.NextCursor = c.StoredExpression("/cursor", t.Cursor, response)
	}
	return config
}

func sample(string, workflow.Trigger, time.Time) (json.RawMessage, error) {
	return nil, fault.Field("/payload", "is required to test a poll: send an item such as the poll would find")
}

// ConnectionSchema returns the JSON Schema of the connection of a poll.
func ConnectionSchema() map[string]any {
	return workflow.ConnectionSchema("The name of the connection that authenticates the requests.")
}

type schema = map[string]any

func members(actions *action.Catalog) schema {
	request := schema{"title": "Request", "description": "The request to send.", "type": "object"}
	if _, known := actions.Find(requestAction); known {
		request = workflow.InputSchema(requestAction, "Request", "The request to send, as in "+requestAction+". It can use cursor, secrets and vars.")
	}
	return schema{
		"every":      workflow.IntervalSchema(),
		"request":    request,
		"connection": ConnectionSchema(),
		"items": schema{
			"title": "Items", "description": "An expression that reads response and returns the list of items.",
			"type": "string", "minLength": 1, "examples": []string{"response.body.orders"},
		},
		"key": schema{
			"title": "Key", "description": "An expression that reads item and identifies it, such as item.id.",
			"type": "string", "minLength": 1,
		},
		"cursor": schema{
			"title": "Cursor", "description": "An expression that reads response and returns where to continue. The next request reads it as cursor; it is nil the first time.",
			"type": "string", "minLength": 1,
		},
	}
}
