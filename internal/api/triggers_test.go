package api_test

import (
	"strings"
	"testing"
)

func setupTriggers(w *testWorkspace) {
	setupWorkflow(w)
	w.patch("wf", `{"triggers": [
		{"id": "nightly", "type": "schedule", "cron": "0 3 * * *", "timezone": "Europe/Paris", "missed": "latest"},
		{"id": "by_hand", "type": "manual"},
		{"id": "failures", "type": "event", "events": ["run.failed"]},
		{"id": "hook", "type": "webhook", "methods": ["POST", "PUT"], "dedupe": "${{ trigger.headers['x-id'] }}"}]}`)
}

const untold = `"last_fired_at": null, "last_run_id": null, "last_error": null, "not_fired": null`

func TestTriggers(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a workflow without triggers has an empty list",
			setup: setupWorkflow, request: "GET /v1/workflows/$wf/triggers", scope: "read",
			status: 200, contains: `{"data": [], "next_cursor": null}`, members: "data next_cursor",
		},
		{
			name:  "triggers of a draft do not fire",
			setup: setupTriggers, request: "GET /v1/workflows/$wf/triggers", status: 200,
			contains: `{"data": [{"id": "by_hand", "type": "manual", "active": false, "next_run_at": null, ` + untold + `},
				{"id": "failures", "type": "event", "active": false, "next_run_at": null, ` + untold + `},
				{"id": "hook", "type": "webhook", "active": false, "next_run_at": null, ` + untold + `},
				{"id": "nightly", "type": "schedule", "active": false, "next_run_at": null, ` + untold + `}]}`,
		},
		{
			name:    "an active workflow says when it runs next",
			setup:   func(w *testWorkspace) { setupTriggers(w); w.patch("wf", `{"state": "active"}`) },
			request: "GET /v1/workflows/$wf/triggers", status: 200,
			contains: `{"data": [{"id": "by_hand", "active": true}, {"id": "failures", "active": true, "next_run_at": null}, {"id": "hook", "active": true},
				{"id": "nightly", "active": true, "next_run_at": "~.*T0[12]:00:0[0-4].*"}]}`,
		},
		{
			name: "an edit of an active workflow recomputes its next run",
			setup: func(w *testWorkspace) {
				setupTriggers(w)
				w.patch("wf", `{"state": "active"}`)
				w.patch("wf", `{"triggers": [{"id": "nightly", "type": "schedule", "cron": "30 12 1 1 *", "jitter": "0s"}]}`)
			},
			request: "GET /v1/workflows/$wf/triggers", status: 200,
			contains: `{"data": [{"id": "nightly", "next_run_at": "~.*-01-01T12:30:00.000Z"}]}`,
		},
		{
			name: "a paused workflow fires nothing",
			setup: func(w *testWorkspace) {
				setupTriggers(w)
				w.patch("wf", `{"state": "active"}`)
				w.patch("wf", `{"state": "paused"}`)
			},
			request: "GET /v1/workflows/$wf/triggers", status: 200,
			contains: `{"data": [{"id": "by_hand", "active": false}, {"id": "failures", "active": false}, {"id": "hook", "active": false},
				{"id": "nightly", "active": false, "next_run_at": null}]}`,
		},
		{
			name:    "triggers of an unknown workflow are workflow_not_found",
			request: "GET /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/triggers", status: 404, code: "workflow_not_found",
		},
		{
			name:  "a test of a schedule starts a run that says so",
			setup: setupTriggers, request: "POST /v1/workflows/$wf/triggers/nightly/test", scope: "execute", requestHeaders: []string{"Prefer", "wait=10"}, status: 200,
			contains: `{"status": "succeeded", "trigger": {"type": "schedule", "id": "nightly", "payload": {"scheduled_at": "~.*Z"}, "headers": null, "query": null, "test": true}}`,
			events:   "run.started run.succeeded",
			after: func(w *testWorkspace, a *response) {
				wantContains(w.t, w.call("GET", "/v1/runs/"+a.str("id"), "").json(), `{"trigger": {"type": "schedule", "test": true}}`)
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf/triggers", "").json(), `{"data": [{}, {}, {}, {"id": "nightly", "last_fired_at": null}]}`)
			},
		},
		{
			name:  "a test of a webhook brings payload, headers and query",
			setup: setupTriggers, request: "POST /v1/workflows/$wf/triggers/hook/test", requestHeaders: []string{"Prefer", "wait=10"},
			body: `{"payload": {"a": 1}, "headers": {"x-id": "7"}, "query": {"q": ["1", "2"]}}`, status: 200,
			contains: `{"status": "succeeded", "trigger": {"type": "webhook", "id": "hook", "payload": {"a": 1}, "headers": {"x-id": "7"}, "query": {"q": ["1", "2"]}, "test": true}}`,
			events:   "run.started run.succeeded",
		},
		{
			name:  "a test of an event trigger brings a sample of its event",
			setup: setupTriggers, request: "POST /v1/workflows/$wf/triggers/failures/test", requestHeaders: []string{"Prefer", "wait=10"}, status: 200,
			events:   "run.started run.succeeded",
			contains: `{"trigger": {"type": "event", "id": "failures", "payload": {"event": "run.failed", "data": {"status": "failed"}}, "test": true}}`,
		},
		{
			name: "expressions see what came with a webhook",
			setup: func(w *testWorkspace) {
				w.workflow("wf", `{"id": "see", "uses": "data.set", "with": {"values": {"all": "${{ trigger }}"}}}`)
				w.patch("wf", `{"triggers": [{"id": "hook", "type": "webhook"}]}`)
			},
			request: "POST /v1/workflows/$wf/triggers/hook/test", requestHeaders: []string{"Prefer", "wait=10"},
			body: `{"payload": {"a": 1}, "headers": {"x-id": "7"}, "query": {"q": "1"}}`, status: 200,
			contains: `{"steps": [{"output": {"all": {"type": "webhook", "id": "hook", "payload": {"a": 1}, "headers": {"x-id": "7"}, "query": {"q": "1"}}}}]}`,
			events:   "run.started run.succeeded",
		},
		{
			name:    "a test of a trigger of a paused workflow is workflow_paused",
			setup:   func(w *testWorkspace) { setupTriggers(w); w.patch("wf", `{"state": "paused"}`) },
			request: "POST /v1/workflows/$wf/triggers/nightly/test", status: 409, code: "workflow_paused",
		},
		{
			name:  "a test of an unknown trigger is trigger_not_found",
			setup: setupTriggers, request: "POST /v1/workflows/$wf/triggers/none/test", status: 404, code: "trigger_not_found", message: `"none"`,
		},
		{
			name: "a test of a poll needs an item",
			setup: func(w *testWorkspace) {
				setupWorkflow(w)
				w.patch("wf", `{"triggers": [{"id": "p", "type": "poll", "every": "1m", "request": {"url": "https://example.com"}, "items": "response.body", "key": "item"}]}`)
			},
			request: "POST /v1/workflows/$wf/triggers/p/test", status: 400, code: "invalid_request", pointers: []string{"/payload"},
		},
		{
			name:  "a test takes objects only",
			setup: setupTriggers, request: "POST /v1/workflows/$wf/triggers/hook/test", body: `{"headers": []}`, lenient: true,
			status: 400, code: "invalid_request", pointers: []string{"/headers"},
		},
		{
			name:  "a test rejects unknown members",
			setup: setupTriggers, request: "POST /v1/workflows/$wf/triggers/hook/test", body: `{"header": {}}`, lenient: true,
			status: 400, code: "invalid_request", pointers: []string{"/header"},
		},
	})
}

// A workflow that handles failures of other workflows.
func TestEventTriggerOnFailedRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("bad", failStep)
	w.workflow("handler", `{"id": "see", "uses": "data.set", "with": {"values": {"step": "${{ trigger.payload.data.failed_step_id }}"}}}`)
	w.patch("handler", `{"state": "active", "triggers": [{"id": "failures", "type": "event", "events": ["run.failed"], "workflows": ["`+w.names["bad"]+`"]}]}`)
	w.runToEnd("failed", "bad", "")
	var run string
	eventually(t, "the handler ran", func() bool {
		runs := w.call("GET", "/v1/workflows/$handler/runs?status=succeeded", "").wantStatus(200).column("id")
		if len(runs) == 1 {
			run = runs[0]
		}
		return run != ""
	})
	wantContains(t, w.call("GET", "/v1/runs/"+run, "").json(), w.expand(`{"trigger": {"type": "event", "id": "failures",
		"payload": {"event": "run.failed", "data": {"run_id": "$failed", "workflow_id": "$bad"}}, "test": false}, "steps": [{"output": {"step": "fail"}}]}`))
	wantContains(t, w.call("GET", "/v1/workflows/$handler/triggers", "").json(), `{"data": [{"id": "failures", "last_run_id": "`+run+`", "last_fired_at": "~.+", "next_run_at": null}]}`)
	wantContains(t, w.call("GET", "/v1/runs?trigger=event", "").json(), `{"data": [{"id": "`+run+`", "trigger": "event"}]}`)
}

func TestTriggerTestIdempotency(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupTriggers(w)
	first := w.call("POST", "/v1/workflows/$wf/triggers/hook/test", `{}`, "Idempotency-Key", "k").wantStatus(201)
	again := w.call("POST", "/v1/workflows/$wf/triggers/hook/test", `{}`, "Idempotency-Key", "k").wantStatus(201)
	if first.str("id") != again.str("id") || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, then %s", first.body, again.body)
	}
}

// Triggers are returned as they were written, and are equal in a diff.
func TestTriggersRoundTrip(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupSecret(w)
	w.workflow("wf")
	const triggers = `[
		{"id": "a", "type": "schedule", "every": "15m", "missed": "skip", "jitter": "0s"},
		{"id": "b", "type": "webhook", "methods": ["GET"], "verify": {"scheme": "hmac", "secret": "${{ secrets.NAME }}", "header": "X-Sign",
			"algorithm": "sha512", "encoding": "base64", "prefix": "v1=", "signed": "{x-time}.{body}", "timestamp": "X-Time", "tolerance": "1m"},
			"dedupe": "${{ trigger.headers['x-id'] }}", "respond": "result", "rate": 60},
		{"id": "c", "type": "event", "events": ["run.failed", "run.cancelled"], "workflows": ["wf_01m7f8njhve3pt0yekqqme4qcm"]},
		{"id": "d", "type": "poll", "every": "1m", "request": {"url": "https://example.com/?since=${{ cursor }}", "headers": {"authorization": "Bearer ${{ secrets.NAME }}"}},
			"items": "response.body.items", "key": "item.id", "cursor": "response.body.next"}]`
	written := strings.ReplaceAll(triggers, "NAME", w.names["secret"])
	w.patch("wf", `{"triggers": `+written+`}`)
	wantContains(t, w.call("GET", "/v1/workflows/$wf", "").json(), `{"triggers": `+written+`}`)
	wantContains(t, w.call("PATCH", "/v1/workflows/$wf", `{"triggers": `+written+`}`).wantStatus(200).json(), `{"version": 2}`)
	w.patch("wf", `{"triggers": [{"id": "a", "type": "schedule", "every": "20m", "missed": "skip", "jitter": "0s"}]}`)
	wantContains(t, w.call("GET", "/v1/workflows/$wf/versions/2/diff", "").json(), `{"triggers": [
		{"change": "changed", "trigger_id": "a", "fields": [{"field": "/every", "from": "15m", "to": "20m"}]},
		{"change": "removed", "trigger_id": "b"}, {"change": "removed", "trigger_id": "c"}, {"change": "removed", "trigger_id": "d"}]}`)
}
