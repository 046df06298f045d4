// Package event declares the trigger type event, which fires on events of other
// workflows and their runs, and of connections.
package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

const maxWorkflows = 100

// Type declares the type. The store notes the events that a trigger fires on, see
// trigger.EventFilter.
func Type() trigger.Type {
	return trigger.Type{
		Format: workflow.TriggerType{
			Name: workflow.EventTrigger, Summary: "Events of other workflows, their runs and connections.",
			Members: members, Rule: schema{"required": []string{"events"}}, Compile: compile,
		},
		Firer:  func(d trigger.Deps) trigger.Firer { return NewStarter(d.Store, d.Runs, d.Log) },
		Sample: sample,
	}
}

func compile(c *workflow.TriggerCompiler, t workflow.Trigger) any {
	if len(t.Events) == 0 {
		c.Report("/events", "", "must name at least one event")
	}
	c.CheckUnique("/events", t.Events)
	for i, name := range t.Events {
		if !event.Known(name) {
			c.ReportUnknown(fmt.Sprintf("/events/%d", i), name, names(), "unknown event %q; the events are %s", name, strings.Join(names(), ", "))
		}
	}
	if t.Workflows != nil && len(t.Workflows) == 0 {
		c.Report("/workflows", "omit it to subscribe to all other workflows", "must name at least one workflow")
	}
	if len(t.Workflows) > maxWorkflows {
		c.Report("/workflows", "omit it to subscribe to all other workflows", "must have at most %d entries", maxWorkflows)
	}
	c.CheckUnique("/workflows", t.Workflows)
	for i, id := range t.Workflows {
		if !uid.Valid(uid.Workflow, id) {
			c.Report(fmt.Sprintf("/workflows/%d", i), "", "is not a workflow id")
		}
	}
	return nil
}

func names() []string {
	var names []string
	for _, kind := range event.Types() {
		names = append(names, string(kind))
	}
	return names
}

// sample returns the body of a made-up event, the first one of the trigger.
func sample(workspaceID string, t workflow.Trigger, now time.Time) (json.RawMessage, error) {
	e, err := event.Sample(event.Type(t.Events[0]), workspaceID, now)
	return e.Body, err
}

type schema = map[string]any

func members(*action.Catalog) schema {
	return schema{
		"events": schema{
			"title": "Events", "description": "The events that start a run.",
			"type": "array", "minItems": 1, "uniqueItems": true, "items": schema{"type": "string", "enum": names()},
		},
		"workflows": schema{
			"title": "Workflows", "description": "The ids of the workflows whose events start runs. Default: all other workflows.",
			"type": "array", "minItems": 1, "maxItems": maxWorkflows, "uniqueItems": true, "items": schema{"type": "string", "pattern": "^wf_"},
		},
	}
}
