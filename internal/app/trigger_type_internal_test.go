package app

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// pulse declares a type of trigger that fires immediately and then at an interval.
func pulse() trigger.Type {
	payload := json.RawMessage(`{"beat": true}`)
	return trigger.Type{
		Format: workflow.TriggerType{
			Name: "pulse", Summary: "A pulse.",
			Input: map[string]any{
				"type": "object", "additionalProperties": false, "required": []string{"rest"},
				"properties": map[string]any{"rest": workflow.IntervalSchema()},
			},
			Rule: map[string]any{"required": []string{"with"}},
			Compile: func(c *workflow.TriggerCompiler, t workflow.Trigger) any {
				var input struct {
					Rest string `json:"rest"`
				}
				switch {
				case !c.Input(t, &input):
					return nil
				case input.Rest == "":
					c.Report("/with/rest", "", "is required")
					return nil
				}
				return c.Interval("/with/rest", input.Rest)
			},
		},
		First:  func(_ string, _ workflow.CompiledTrigger, now time.Time) time.Time { return now },
		Sample: func(string, workflow.Trigger, time.Time) (json.RawMessage, error) { return payload, nil },
		Firer: func(d trigger.Deps) trigger.Firer {
			return trigger.NewTicker(trigger.OfType(d.Store, "pulse", clock.Now, func(ctx context.Context, t trigger.Trigger, now time.Time) error {
				compiled, err := trigger.Compiled(ctx, d.Store, d.Programs, t, now)
				if err != nil || compiled == nil {
					return err
				}
				next := compiled.Config.(*cron.Schedule).Next(now)
				_, err = d.Runs.Fire(ctx, run.Firing{
					WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID,
					Trigger: run.Trigger{Type: t.Type, ID: t.ID, Payload: payload},
					Fire:    run.Fire{At: now, Was: t.NextAt, Next: &next},
				})
				if trigger.Obsolete(err) {
					return nil
				}
				return err
			}), d.Log)
		},
	}
}

func startWithTypes(t *testing.T, types ...trigger.Type) *testServer {
	t.Helper()
	known, err := trigger.NewTypes(types...)
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, config.Data{Dir: t.TempDir()}, func(s *Server) { s.runner.triggers = known })
}

// A type of trigger works everywhere once it is declared: it is part of the format,
// is checked, armed and fired, and the API shows and tests its triggers.
func TestDeclaredTriggerType(t *testing.T) {
	t.Parallel()
	s := startWithTypes(t, pulse())
	contains := func(method, path, body string, status int, want ...string) {
		t.Helper()
		got, text := s.call(method, path, body)
		if got != status {
			t.Errorf("%s %s: %d %s", method, path, got, text)
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s %s: %s is not in %s", method, path, part, text)
			}
		}
	}
	id := s.create("/v1/workflows", `{"name": "Beat"}`)
	at := "/v1/workflows/" + id
	contains("GET", "/v1/schemas/workflow.json", "", http.StatusOK, `"enum":["pulse"]`, `"A pulse."`)
	contains("PATCH", at, `{"triggers": [{"id": "p", "type": "pulse", "with": {"rest": "1s"}}]}`, http.StatusUnprocessableEntity, "/triggers/0/with/rest", "must be at least 10s")
	contains("PATCH", at, `{"triggers": [{"id": "p", "type": "pulse", "with": {"rest": "1h", "rate": 2}}]}`, http.StatusUnprocessableEntity, "/triggers/0/with/rate", "unknown field")
	contains("PATCH", at, `{"triggers": [{"id": "p", "type": "pulse"}]}`, http.StatusUnprocessableEntity, "/triggers/0/with/rest", "is required")
	contains("PATCH", at, `{"triggers": [{"id": "p", "type": "pulse", "with": {"rest": "1h"}, "cron": "@daily"}]}`, http.StatusUnprocessableEntity, "a trigger of type pulse cannot have cron")
	contains("PATCH", at, `{"triggers": [{"id": "p", "type": "plse", "with": {"rest": "1h"}}]}`, http.StatusUnprocessableEntity, `did you mean \"pulse\"?`)

	contains("PATCH", at, `{"triggers": [{"id": "p", "type": "pulse", "with": {"rest": "1h"}}]}`, http.StatusOK)
	contains("GET", at+"/triggers", "", http.StatusOK, `"type":"pulse"`, `"active":false`, `"next_run_at":null`)
	contains("POST", at+"/triggers/p/test", `{}`, http.StatusCreated, `"payload":{"beat":true}`, `"test":true`)

	contains("PATCH", at, `{"state": "active"}`, http.StatusOK)
	eventually(t, "the trigger has fired", func() bool {
		_, text := s.call("GET", at+"/triggers", "")
		return strings.Contains(text, `"last_run_id":"run_`) && strings.Contains(text, `"active":true`) && !strings.Contains(text, `"next_run_at":null`)
	})
	contains("GET", "/v1/runs?trigger=pulse", "", http.StatusOK, `"trigger":"pulse"`)
}
