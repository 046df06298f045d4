package api_test

import (
	"strings"
	"testing"
)

func givenTriggers(w *world) {
	givenWorkflow(w)
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
			given: givenWorkflow, call: "GET /v1/workflows/$wf/triggers", as: "read",
			status: 200, answer: `{"data": [], "next_cursor": null}`, keys: "data next_cursor",
		},
		{
			name:  "triggers of a draft do not fire",
			given: givenTriggers, call: "GET /v1/workflows/$wf/triggers", status: 200,
			answer: `{"data": [{"id": "by_hand", "type": "manual", "active": false, "next_run_at": null, ` + untold + `},
				{"id": "failures", "type": "event", "active": false, "next_run_at": null, ` + untold + `},
				{"id": "hook", "type": "webhook", "active": false, "next_run_at": null, ` + untold + `},
				{"id": "nightly", "type": "schedule", "active": false, "next_run_at": null, ` + untold + `}]}`,
		},
		{
			name:  "an active workflow says when it runs next",
			given: func(w *world) { givenTriggers(w); w.patch("wf", `{"state": "active"}`) },
			call:  "GET /v1/workflows/$wf/triggers", status: 200,
			answer: `{"data": [{"id": "by_hand", "active": true}, {"id": "failures", "active": true, "next_run_at": null}, {"id": "hook", "active": true},
				{"id": "nightly", "active": true, "next_run_at": "~.*T0[12]:00:0[0-4].*"}]}`,
		},
		{
			name: "an edit of an active workflow says anew when it runs next",
			given: func(w *world) {
				givenTriggers(w)
				w.patch("wf", `{"state": "active"}`)
				w.patch("wf", `{"triggers": [{"id": "nightly", "type": "schedule", "cron": "30 12 1 1 *", "jitter": "0s"}]}`)
			},
			call: "GET /v1/workflows/$wf/triggers", status: 200,
			answer: `{"data": [{"id": "nightly", "next_run_at": "~.*-01-01T12:30:00.000Z"}]}`,
		},
		{
			name: "a paused workflow fires nothing",
			given: func(w *world) {
				givenTriggers(w)
				w.patch("wf", `{"state": "active"}`)
				w.patch("wf", `{"state": "paused"}`)
			},
			call: "GET /v1/workflows/$wf/triggers", status: 200,
			answer: `{"data": [{"id": "by_hand", "active": false}, {"id": "failures", "active": false}, {"id": "hook", "active": false},
				{"id": "nightly", "active": false, "next_run_at": null}]}`,
		},
		{
			name: "triggers of an unknown workflow are workflow_not_found",
			call: "GET /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/triggers", status: 404, code: "workflow_not_found",
		},
		{
			name:  "a test of a schedule starts a run that says so",
			given: givenTriggers, call: "POST /v1/workflows/$wf/triggers/nightly/test", as: "execute", with: []string{"Prefer", "wait=10"}, status: 200,
			answer: `{"status": "succeeded", "trigger": {"type": "schedule", "id": "nightly", "payload": {"scheduled_at": "~.*Z"}, "headers": null, "query": null, "test": true}}`,
			events: "run.started run.succeeded",
			then: func(w *world, a *answer) {
				wantContains(w.t, w.call("GET", "/v1/runs/"+a.text("id"), "").json(), `{"trigger": {"type": "schedule", "test": true}}`)
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf/triggers", "").json(), `{"data": [{}, {}, {}, {"id": "nightly", "last_fired_at": null}]}`)
			},
		},
		{
			name:  "a test of a webhook brings payload, headers and query",
			given: givenTriggers, call: "POST /v1/workflows/$wf/triggers/hook/test", with: []string{"Prefer", "wait=10"},
			body: `{"payload": {"a": 1}, "headers": {"x-id": "7"}, "query": {"q": ["1", "2"]}}`, status: 200,
			answer: `{"status": "succeeded", "trigger": {"type": "webhook", "id": "hook", "payload": {"a": 1}, "headers": {"x-id": "7"}, "query": {"q": ["1", "2"]}, "test": true}}`,
			events: "run.started run.succeeded",
		},
		{
			name:  "a test of an event trigger brings a sample of its event",
			given: givenTriggers, call: "POST /v1/workflows/$wf/triggers/failures/test", with: []string{"Prefer", "wait=10"}, status: 200,
			events: "run.started run.succeeded",
			answer: `{"trigger": {"type": "event", "id": "failures", "payload": {"event": "run.failed", "data": {"status": "failed"}}, "test": true}}`,
		},
		{
			name: "expressions see what came with a webhook",
			given: func(w *world) {
				w.workflow("wf", `{"id": "see", "uses": "data.set", "with": {"values": {"all": "${{ trigger }}"}}}`)
				w.patch("wf", `{"triggers": [{"id": "hook", "type": "webhook"}]}`)
			},
			call: "POST /v1/workflows/$wf/triggers/hook/test", with: []string{"Prefer", "wait=10"},
			body: `{"payload": {"a": 1}, "headers": {"x-id": "7"}, "query": {"q": "1"}}`, status: 200,
			answer: `{"steps": [{"output": {"all": {"type": "webhook", "id": "hook", "payload": {"a": 1}, "headers": {"x-id": "7"}, "query": {"q": "1"}}}}]}`,
			events: "run.started run.succeeded",
		},
		{
			name:  "a test of a trigger of a paused workflow is workflow_paused",
			given: func(w *world) { givenTriggers(w); w.patch("wf", `{"state": "paused"}`) },
			call:  "POST /v1/workflows/$wf/triggers/nightly/test", status: 409, code: "workflow_paused",
		},
		{
			name:  "a test of an unknown trigger is trigger_not_found",
			given: givenTriggers, call: "POST /v1/workflows/$wf/triggers/none/test", status: 404, code: "trigger_not_found", says: `"none"`,
		},
		{
			name: "a test of a poll needs an item",
			given: func(w *world) {
				givenWorkflow(w)
				w.patch("wf", `{"triggers": [{"id": "p", "type": "poll", "every": "1m", "request": {"url": "https://example.com"}, "items": "response.body", "key": "item"}]}`)
			},
			call: "POST /v1/workflows/$wf/triggers/p/test", status: 400, code: "invalid_request", points: []string{"/payload"},
		},
		{
			name:  "a test takes objects only",
			given: givenTriggers, call: "POST /v1/workflows/$wf/triggers/hook/test", body: `{"headers": []}`, loose: true,
			status: 400, code: "invalid_request", points: []string{"/headers"},
		},
		{
			name:  "a test refuses what it does not know",
			given: givenTriggers, call: "POST /v1/workflows/$wf/triggers/hook/test", body: `{"header": {}}`, loose: true,
			status: 400, code: "invalid_request", points: []string{"/header"},
		},
	})
}

// A workflow that deals with the failures of others.
func TestAFailureStartsItsHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("bad", failStep)
	w.workflow("handler", `{"id": "see", "uses": "data.set", "with": {"values": {"step": "${{ trigger.payload.data.failed_step_id }}"}}}`)
	w.patch("handler", `{"state": "active", "triggers": [{"id": "failures", "type": "event", "events": ["run.failed"], "workflows": ["`+w.names["bad"]+`"]}]}`)
	w.finish("failed", "bad", "")
	var run string
	eventually(t, "the handler ran", func() bool {
		runs := w.call("GET", "/v1/workflows/$handler/runs?status=succeeded", "").want(200).column("id")
		if len(runs) == 1 {
			run = runs[0]
		}
		return run != ""
	})
	wantContains(t, w.call("GET", "/v1/runs/"+run, "").json(), w.fill(`{"trigger": {"type": "event", "id": "failures",
		"payload": {"event": "run.failed", "data": {"run_id": "$failed", "workflow_id": "$bad"}}, "test": false}, "steps": [{"output": {"step": "fail"}}]}`))
	wantContains(t, w.call("GET", "/v1/workflows/$handler/triggers", "").json(), `{"data": [{"id": "failures", "last_run_id": "`+run+`", "last_fired_at": "~.+", "next_run_at": null}]}`)
	wantContains(t, w.call("GET", "/v1/runs?trigger=event", "").json(), `{"data": [{"id": "`+run+`", "trigger": "event"}]}`)
}

func TestATestIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	givenTriggers(w)
	first := w.call("POST", "/v1/workflows/$wf/triggers/hook/test", `{}`, "Idempotency-Key", "k").want(201)
	again := w.call("POST", "/v1/workflows/$wf/triggers/hook/test", `{}`, "Idempotency-Key", "k").want(201)
	if first.text("id") != again.text("id") || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, then %s", first.body, again.body)
	}
}

// What is written comes back as it was, and is the same in a diff.
func TestTriggersAreKeptAsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	givenSecret(w)
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
	wantContains(t, w.call("PATCH", "/v1/workflows/$wf", `{"triggers": `+written+`}`).want(200).json(), `{"version": 2}`)
	w.patch("wf", `{"triggers": [{"id": "a", "type": "schedule", "every": "20m", "missed": "skip", "jitter": "0s"}]}`)
	wantContains(t, w.call("GET", "/v1/workflows/$wf/versions/2/diff", "").json(), `{"triggers": [
		{"change": "changed", "trigger_id": "a", "fields": [{"field": "/every", "from": "15m", "to": "20m"}]},
		{"change": "removed", "trigger_id": "b"}, {"change": "removed", "trigger_id": "c"}, {"change": "removed", "trigger_id": "d"}]}`)
}
