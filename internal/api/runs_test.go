package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	runKeys = "id workflow_id workflow_version status trigger started_at finished_at duration_ms error waiting_for retry_of parent draft steps"

	stepKeys = "step_id name type status attempt started_at finished_at duration_ms input output error reason pinned attempts"
)

func TestStartRun(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a run starts immediately, regardless of triggers, with 201, its place and the status running",
			given: func(w *world) { w.workflow("wf", waitStep) },
			call:  "POST /v1/workflows/$wf/runs", as: "execute", body: `{"payload": {"name": "Ada"}}`, status: 201, keys: runKeys,
			headers: []string{"Location", "/v1/runs/run_[0-9a-z]{26}", "Preference-Applied", "", "Idempotent-Replayed", ""},
			answer: `{"id": "~run_[0-9a-z]{26}", "workflow_id": "$wf", "workflow_version": 2, "status": "running", "finished_at": null,
				"trigger": {"type": "manual", "id": null, "payload": {"name": "Ada"}}, "error": null, "waiting_for": null, "retry_of": null, "steps": []}`,
			events: "run.started",
			then: func(w *world, a *answer) {
				w.call("GET", a.header.Get("Location"), "").want(200)
				started := w.eventBodies("run.started")[0]
				wantKeys(w.t, started, "id event timestamp data")
				wantKeys(w.t, started["data"].(map[string]any), "run_id workflow_id workflow_name status trigger started_at")
				wantContains(w.t, started, w.fill(fmt.Sprintf(`{"event": "run.started", "timestamp": %q, "data": {"run_id": %q, "workflow_id": "$wf",
					"workflow_name": "Workflow wf", "status": "running", "trigger": {"type": "manual", "id": null}, "started_at": %[1]q}}`,
					a.text("started_at"), a.text("id"))))
				if strings.Contains(fmt.Sprint(started), "Ada") {
					w.t.Errorf("the event holds the payload: %v", started)
				}
			},
		},
		{
			name:  "a workflow that is active can be run",
			given: func(w *world) { w.workflow("wf"); w.patch("wf", `{"state": "active"}`) },
			call:  "POST /v1/workflows/$wf/runs", status: 201, events: "run.started run.succeeded",
		},
		{
			name:  "a workflow that is paused starts no runs",
			given: func(w *world) { w.workflow("wf"); w.patch("wf", `{"state": "paused"}`) },
			call:  "POST /v1/workflows/$wf/runs", status: 409, code: "workflow_paused", says: "$wf",
		},
		{
			name: "a run of an unknown workflow is workflow_not_found",
			call: "POST /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/runs", status: 404, code: "workflow_not_found", says: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name:  "a run of a workflow without steps succeeds at once with no steps",
			given: func(w *world) { w.workflow("wf") },
			call:  "POST /v1/workflows/$wf/runs", with: []string{"Prefer", "wait=10"},
			status: 200, answer: `{"status": "succeeded", "steps": [], "error": null}`, events: "run.started run.succeeded",
		},
		{
			name:  "pausing does not touch the runs that are going on",
			given: func(w *world) { w.workflow("wf", waitStep); w.waiting("run", "wf") },
			call:  "PATCH /v1/workflows/$wf", body: `{"state": "paused"}`, status: 200, events: "workflow.paused", audit: "workflow.paused",
			then: func(w *world, _ *answer) {
				wantContains(w.t, w.call("GET", "/v1/runs/$run", "").json(), `{"status": "running"}`)
			},
		},
		{
			name:  "the payload is an empty object when it is left out",
			given: func(w *world) { w.workflow("wf", waitStep) }, call: "POST /v1/workflows/$wf/runs", body: `{}`,
			status: 201, answer: `{"trigger": {"payload": {}}}`, events: "run.started",
		},
		{
			name: "the payload is available inside the workflow as trigger.payload",
			given: func(w *world) {
				w.workflow("wf", `{"id": "use", "uses": "data.set", "with": {"values": {"all": "${{ trigger.payload }}",
					"deep": "${{ trigger.payload.a.b[1] }}", "text": "Hello ${{ trigger.payload.name }}!", "none": "${{ trigger.payload.x.y }}"}}}`)
			},
			call: "POST /v1/workflows/$wf/runs", body: `{"payload": {"name": "Ada", "a": {"b": [1, {"c": null}]}}}`, with: []string{"Prefer", "wait=10"},
			status: 200, events: "run.started run.succeeded",
			answer: `{"status": "succeeded", "steps": [{"output": {"all": {"name": "Ada", "a": {"b": [1, {"c": null}]}}, "deep": {"c": null},
				"text": "Hello Ada!", "none": null}}]}`,
		},
		{
			name:  "a payload keeps its numbers and its text as they are",
			given: func(w *world) { w.workflow("wf") },
			call:  "POST /v1/workflows/$wf/runs", body: `{"payload": {"big": 9007199254740993, "text": "<&>\u2028ü😀", "": [[]]}}`, with: []string{"Prefer", "wait=10"},
			status: 200, answer: `{"trigger": {"payload": {"big": 9007199254740993, "text": "<&>\u2028ü😀", "": [[]]}}}`, events: "run.started run.succeeded",
		},
	})
}

func TestPayloadRules(t *testing.T) {
	var scenarios []scenario
	for _, payload := range []string{`null`, `[]`, `"text"`, `5`, `true`} {
		scenarios = append(scenarios, scenario{
			name: "the payload must be an object, not " + payload, given: func(w *world) { w.workflow("wf") },
			call: "POST /v1/workflows/$wf/runs", body: `{"payload": ` + payload + `}`, status: 400, code: "invalid_request", points: []string{"/payload"},
		})
	}
	runScenarios(t, append(scenarios, scenario{
		name: "members beside the payload are refused", given: func(w *world) { w.workflow("wf") },
		call: "POST /v1/workflows/$wf/runs", body: `{"payload": {}, "status": "succeeded"}`, status: 400, code: "invalid_request", points: []string{"/status"},
	}, scenario{
		name: "duplicate members inside the payload are refused", given: func(w *world) { w.workflow("wf") },
		call: "POST /v1/workflows/$wf/runs", body: `{"payload": {"a": 1, "a": 2}}`, status: 400, code: "invalid_json",
	}))
}

func TestPayloadPerPlan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		plan  string
		limit int
	}{
		{`{"name": "Free"}`, 256 << 10},
		{`{"name": "Pro", "plan": "pro"}`, 1 << 20},
		{`{"name": "Big", "plan": "enterprise", "requests_per_minute": 1000}`, 2 << 20},
	} {
		t.Run(fmt.Sprintf("a payload of %d bytes is allowed, one more is payload_too_large", tc.limit), func(t *testing.T) {
			t.Parallel()
			w := sharedServer(t).newWorldOn(t, tc.plan)
			w.workflow("wf")
			payload := func(size int) string {
				return `{"payload": {"x": "` + strings.Repeat("x", size-len(`{"x": ""}`)) + `"}}`
			}
			w.call("POST", "/v1/workflows/$wf/runs", payload(tc.limit)).want(201)
			w.call("POST", "/v1/workflows/$wf/runs", payload(tc.limit+1)).want(413, "payload_too_large")
			if got := len(w.call("GET", "/v1/workflows/$wf/runs", "").items()); got != 1 {
				t.Errorf("there are %d runs", got)
			}
		})
	}
}

func TestPreferWait(t *testing.T) {
	finished := func(w *world) { w.workflow("wf", setStep) }
	var scenarios []scenario
	for header, applied := range map[string]string{
		"wait=10": "wait=10", "wait=60": "wait=60", "wait=61": "wait=60", "wait=999999": "wait=60", `wait="5"`: "wait=5",
		"WAIT=7": "wait=7", "respond-async, wait=8": "wait=8", "handling=lenient; wait = 9": "wait=9",
	} {
		scenarios = append(scenarios, scenario{
			name: fmt.Sprintf("Prefer: %s answers 200 with the finished run, having applied %s", header, applied), given: finished,
			call: "POST /v1/workflows/$wf/runs", with: []string{"Prefer", header},
			status: 200, keys: runKeys, answer: `{"status": "succeeded", "steps": [{"status": "succeeded"}]}`,
			headers: []string{"Preference-Applied", applied}, events: "run.started run.succeeded",
		})
	}
	for _, header := range []string{"wait", "wait=", "wait=0", "wait=-1", "wait=soon", "wait=1.5", "wait=99999999999999999999", "waiting=5", "respond-async", "="} {
		scenarios = append(scenarios, scenario{
			name: "a preference that is not understood is ignored: " + header, given: finished,
			call: "POST /v1/workflows/$wf/runs", with: []string{"Prefer", header},
			status: 201, answer: `{"status": "running"}`, headers: []string{"Preference-Applied", ""}, events: "run.started run.succeeded",
		})
	}
	runScenarios(t, append(scenarios, scenario{
		name: "a run that fails within the time is 200 as well", given: func(w *world) { w.workflow("wf", failStep) },
		call: "POST /v1/workflows/$wf/runs", with: []string{"Prefer", "wait=10"}, status: 200, answer: `{"status": "failed"}`,
		events: "run.started run.failed",
	}, scenario{
		name: "when the time is over the answer is 201 with the run still running", given: func(w *world) { w.workflow("wf", setStep, waitStep) },
		call: "POST /v1/workflows/$wf/runs", with: []string{"Prefer", "wait=1"}, status: 201,
		answer:  `{"status": "running", "steps": [{"step_id": "set", "status": "succeeded"}, {"step_id": "pause", "status": "waiting"}]}`,
		headers: []string{"Preference-Applied", "wait=1", "Location", "/v1/runs/run_[0-9a-z]{26}"}, events: "run.started",
	}))
}

func TestListRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf", `{"id": "pause", "uses": "flow.wait", "with": {"for": "${{ trigger.payload.for }}"}}`)
	w.workflow("other")
	w.finish("succeeded", "wf", `{"payload": {"for": "1ms"}}`)
	w.finish("failed", "wf", `{"payload": {"for": "soon"}}`)
	w.run("cancelled", "wf", `{"payload": {"for": "1h"}}`)
	w.call("POST", "/v1/runs/$cancelled/cancel", "").want(200)
	w.run("running", "wf", `{"payload": {"for": "1h"}}`)
	w.finish("others", "other", "")
	read := w.as("read")
	list := func(t *testing.T, query string) *answer {
		return read.on(t).call("GET", w.fill("/v1/workflows/$wf/runs"+query), "")
	}

	t.Run("list items carry exactly the six fields", func(t *testing.T) {
		for _, item := range list(t, "").want(200).items() {
			wantKeys(t, item, "id workflow_id status started_at finished_at duration_ms")
		}
	})
	t.Run("the most recent run is first, and runs of other workflows are not there", func(t *testing.T) {
		wantContains(t, list(t, "").want(200).json(), w.fill(`{"next_cursor": null, "data": [
			{"id": "$running", "workflow_id": "$wf", "status": "running", "finished_at": null},
			{"id": "$cancelled", "status": "cancelled", "finished_at": "~.+Z"},
			{"id": "$failed", "status": "failed"}, {"id": "$succeeded", "status": "succeeded"}]}`))
	})
	for _, status := range []string{"running", "succeeded", "failed", "cancelled"} {
		t.Run("the filter status="+status+" returns only those", func(t *testing.T) {
			wantContains(t, list(t, "?status="+status).want(200).json(),
				w.fill(`{"data": [{"id": "$`+status+`", "status": "`+status+`"}], "next_cursor": null}`))
		})
	}
	for _, status := range []string{"waiting", "Running", "queued", "running,failed"} {
		t.Run("the filter status="+status+" is refused", func(t *testing.T) {
			list(t, "?status="+status).want(400, "invalid_request")
		})
	}
	t.Run("the duration of a running run is the time so far", func(t *testing.T) {
		time.Sleep(20 * time.Millisecond)
		item := list(t, "?status=running").items()[0]
		started, err := time.Parse(time.RFC3339, item["started_at"].(string))
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		if _, err := fmt.Sscan(fmt.Sprint(item["duration_ms"]), &got); err != nil {
			t.Fatal(err)
		}
		if so := time.Since(started).Milliseconds(); got < 20 || got > so+1 {
			t.Errorf("duration_ms is %d after %d ms", got, so)
		}
	})
	t.Run("runs of an unknown workflow are workflow_not_found", func(t *testing.T) {
		read.on(t).call("GET", "/v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/runs", "").want(404, "workflow_not_found")
	})
}
