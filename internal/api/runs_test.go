package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	runKeys = "id workflow_id workflow_version status trigger started_at finished_at duration_ms error waiting_for retry_of parent draft started_by steps"

	stepKeys = "step_id name type status attempt started_at finished_at duration_ms input output error reason pinned attempts"
)

func TestStartRun(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "a run starts immediately, regardless of triggers, with 201, its place and the status running",
			setup:   func(w *testWorkspace) { w.workflow("wf", waitStep) },
			request: "POST /v1/workflows/$wf/runs", scope: "execute", body: `{"payload": {"name": "Ada"}}`, status: 201, members: runKeys,
			headers: []string{"Location", "/v1/runs/run_[0-9a-z]{26}", "Preference-Applied", "", "Idempotent-Replayed", ""},
			contains: `{"id": "~run_[0-9a-z]{26}", "workflow_id": "$wf", "workflow_version": 2, "status": "running", "finished_at": null,
				"trigger": {"type": "manual", "id": null, "payload": {"name": "Ada"}}, "error": null, "waiting_for": null, "retry_of": null, "steps": []}`,
			events: "run.started",
			after: func(w *testWorkspace, a *response) {
				w.call("GET", a.header.Get("Location"), "").wantStatus(200)
				started := w.eventBodies("run.started")[0]
				wantKeys(w.t, started, "id event timestamp data")
				wantKeys(w.t, started["data"].(map[string]any), "run_id workflow_id workflow_name status trigger started_at")
				wantContains(w.t, started, w.expand(fmt.Sprintf(`{"event": "run.started", "timestamp": %q, "data": {"run_id": %q, "workflow_id": "$wf",
					"workflow_name": "Workflow wf", "status": "running", "trigger": {"type": "manual", "id": null}, "started_at": %[1]q}}`,
					a.str("started_at"), a.str("id"))))
				if strings.Contains(fmt.Sprint(started), "Ada") {
					w.t.Errorf("the event holds the payload: %v", started)
				}
			},
		},
		{
			name:    "a workflow that is active can be run",
			setup:   func(w *testWorkspace) { w.workflow("wf"); w.patch("wf", `{"state": "active"}`) },
			request: "POST /v1/workflows/$wf/runs", status: 201, events: "run.started run.succeeded",
		},
		{
			name:    "a workflow that is paused starts no runs",
			setup:   func(w *testWorkspace) { w.workflow("wf"); w.patch("wf", `{"state": "paused"}`) },
			request: "POST /v1/workflows/$wf/runs", status: 409, code: "workflow_paused", message: "$wf",
		},
		{
			name:    "a run of an unknown workflow is workflow_not_found",
			request: "POST /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/runs", status: 404, code: "workflow_not_found", message: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name:    "a run of a workflow without steps succeeds at once with no steps",
			setup:   func(w *testWorkspace) { w.workflow("wf") },
			request: "POST /v1/workflows/$wf/runs", requestHeaders: []string{"Prefer", "wait=10"},
			status: 200, contains: `{"status": "succeeded", "steps": [], "error": null}`, events: "run.started run.succeeded",
		},
		{
			name:    "pausing does not touch the runs that are going on",
			setup:   func(w *testWorkspace) { w.workflow("wf", waitStep); w.runUntilWaiting("run", "wf") },
			request: "PATCH /v1/workflows/$wf", body: `{"state": "paused"}`, status: 200, events: "workflow.paused", audit: "workflow.paused",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/runs/$run", "").json(), `{"status": "running"}`)
			},
		},
		{
			name:  "the payload is an empty object when it is left out",
			setup: func(w *testWorkspace) { w.workflow("wf", waitStep) }, request: "POST /v1/workflows/$wf/runs", body: `{}`,
			status: 201, contains: `{"trigger": {"payload": {}}}`, events: "run.started",
		},
		{
			name: "the payload is available inside the workflow as trigger.payload",
			setup: func(w *testWorkspace) {
				w.workflow("wf", `{"id": "use", "uses": "data.set", "with": {"values": {"all": "${{ trigger.payload }}",
					"deep": "${{ trigger.payload.a.b[1] }}", "text": "Hello ${{ trigger.payload.name }}!", "none": "${{ trigger.payload.x.y }}"}}}`)
			},
			request: "POST /v1/workflows/$wf/runs", body: `{"payload": {"name": "Ada", "a": {"b": [1, {"c": null}]}}}`, requestHeaders: []string{"Prefer", "wait=10"},
			status: 200, events: "run.started run.succeeded",
			contains: `{"status": "succeeded", "steps": [{"output": {"all": {"name": "Ada", "a": {"b": [1, {"c": null}]}}, "deep": {"c": null},
				"text": "Hello Ada!", "none": null}}]}`,
		},
		{
			name:    "a payload keeps its numbers and its text as they are",
			setup:   func(w *testWorkspace) { w.workflow("wf") },
			request: "POST /v1/workflows/$wf/runs", body: `{"payload": {"big": 9007199254740993, "text": "<&>\u2028ü😀", "": [[]]}}`, requestHeaders: []string{"Prefer", "wait=10"},
			status: 200, contains: `{"trigger": {"payload": {"big": 9007199254740993, "text": "<&>\u2028ü😀", "": [[]]}}}`, events: "run.started run.succeeded",
		},
	})
}

func TestPayloadErrors(t *testing.T) {
	var scenarios []scenario
	for _, payload := range []string{`null`, `[]`, `"text"`, `5`, `true`} {
		scenarios = append(scenarios, scenario{
			name: "the payload must be an object, not " + payload, setup: func(w *testWorkspace) { w.workflow("wf") },
			request: "POST /v1/workflows/$wf/runs", body: `{"payload": ` + payload + `}`, status: 400, code: "invalid_request", pointers: []string{"/payload"},
		})
	}
	runScenarios(t, append(scenarios, scenario{
		name: "members beside the payload are rejected", setup: func(w *testWorkspace) { w.workflow("wf") },
		request: "POST /v1/workflows/$wf/runs", body: `{"payload": {}, "status": "succeeded"}`, status: 400, code: "invalid_request", pointers: []string{"/status"},
	}, scenario{
		name: "duplicate members inside the payload are rejected", setup: func(w *testWorkspace) { w.workflow("wf") },
		request: "POST /v1/workflows/$wf/runs", body: `{"payload": {"a": 1, "a": 2}}`, status: 400, code: "invalid_json",
	}))
}

func TestPayloadLimitPerPlan(t *testing.T) {
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
			w := sharedServer(t).newTestWorkspaceWith(t, tc.plan)
			w.workflow("wf")
			payload := func(size int) string {
				return `{"payload": {"x": "` + strings.Repeat("x", size-len(`{"x": ""}`)) + `"}}`
			}
			w.call("POST", "/v1/workflows/$wf/runs", payload(tc.limit)).wantStatus(201)
			w.call("POST", "/v1/workflows/$wf/runs", payload(tc.limit+1)).wantStatus(413, "payload_too_large")
			if got := len(w.call("GET", "/v1/workflows/$wf/runs", "").items()); got != 1 {
				t.Errorf("there are %d runs", got)
			}
		})
	}
}

func TestPreferWait(t *testing.T) {
	finished := func(w *testWorkspace) { w.workflow("wf", setStep) }
	var scenarios []scenario
	for header, applied := range map[string]string{
		"wait=10": "wait=10", "wait=60": "wait=60", "wait=61": "wait=60", "wait=999999": "wait=60", `wait="5"`: "wait=5",
		"WAIT=7": "wait=7", "respond-async, wait=8": "wait=8", "handling=lenient; wait = 9": "wait=9",
	} {
		scenarios = append(scenarios, scenario{
			name: fmt.Sprintf("Prefer: %s answers 200 with the finished run, having applied %s", header, applied), setup: finished,
			request: "POST /v1/workflows/$wf/runs", requestHeaders: []string{"Prefer", header},
			status: 200, members: runKeys, contains: `{"status": "succeeded", "steps": [{"status": "succeeded"}]}`,
			headers: []string{"Preference-Applied", applied}, events: "run.started run.succeeded",
		})
	}
	for _, header := range []string{"wait", "wait=", "wait=0", "wait=-1", "wait=soon", "wait=1.5", "wait=99999999999999999999", "waiting=5", "respond-async", "="} {
		scenarios = append(scenarios, scenario{
			name: "a preference that is not understood is ignored: " + header, setup: finished,
			request: "POST /v1/workflows/$wf/runs", requestHeaders: []string{"Prefer", header},
			status: 201, contains: `{"status": "running"}`, headers: []string{"Preference-Applied", ""}, events: "run.started run.succeeded",
		})
	}
	runScenarios(t, append(scenarios, scenario{
		name: "a run that fails within the time is 200 as well", setup: func(w *testWorkspace) { w.workflow("wf", failStep) },
		request: "POST /v1/workflows/$wf/runs", requestHeaders: []string{"Prefer", "wait=10"}, status: 200, contains: `{"status": "failed"}`,
		events: "run.started run.failed",
	}, scenario{
		name: "when the time is over the answer is 201 with the run still running", setup: func(w *testWorkspace) { w.workflow("wf", setStep, waitStep) },
		request: "POST /v1/workflows/$wf/runs", requestHeaders: []string{"Prefer", "wait=1"}, status: 201,
		contains: `{"status": "running", "steps": [{"step_id": "set", "status": "succeeded"}, {"step_id": "pause", "status": "waiting"}]}`,
		headers:  []string{"Preference-Applied", "wait=1", "Location", "/v1/runs/run_[0-9a-z]{26}"}, events: "run.started",
	}))
}

func TestListRuns(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", `{"id": "pause", "uses": "flow.wait", "with": {"for": "${{ trigger.payload.for }}"}}`)
	w.workflow("other")
	w.runToEnd("succeeded", "wf", `{"payload": {"for": "1ms"}}`)
	w.runToEnd("failed", "wf", `{"payload": {"for": "soon"}}`)
	w.startRun("cancelled", "wf", `{"payload": {"for": "1h"}}`)
	w.call("POST", "/v1/runs/$cancelled/cancel", "").wantStatus(200)
	w.startRun("running", "wf", `{"payload": {"for": "1h"}}`)
	w.runToEnd("others", "other", "")
	read := w.withScopes("read")
	list := func(t *testing.T, query string) *response {
		return read.withT(t).call("GET", w.expand("/v1/workflows/$wf/runs"+query), "")
	}

	t.Run("list items carry exactly the six fields", func(t *testing.T) {
		for _, item := range list(t, "").wantStatus(200).items() {
			wantKeys(t, item, "id workflow_id status started_at finished_at duration_ms")
		}
	})
	t.Run("the newest run is first, and runs of other workflows are not listed", func(t *testing.T) {
		wantContains(t, list(t, "").wantStatus(200).json(), w.expand(`{"next_cursor": null, "data": [
			{"id": "$running", "workflow_id": "$wf", "status": "running", "finished_at": null},
			{"id": "$cancelled", "status": "cancelled", "finished_at": "~.+Z"},
			{"id": "$failed", "status": "failed"}, {"id": "$succeeded", "status": "succeeded"}]}`))
	})
	for _, status := range []string{"running", "succeeded", "failed", "cancelled"} {
		t.Run("the filter status="+status+" returns only those", func(t *testing.T) {
			wantContains(t, list(t, "?status="+status).wantStatus(200).json(),
				w.expand(`{"data": [{"id": "$`+status+`", "status": "`+status+`"}], "next_cursor": null}`))
		})
	}
	for _, status := range []string{"waiting", "Running", "queued", "running,failed"} {
		t.Run("the filter status="+status+" is rejected", func(t *testing.T) {
			list(t, "?status="+status).wantStatus(400, "invalid_request")
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
		read.withT(t).call("GET", "/v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/runs", "").wantStatus(404, "workflow_not_found")
	})
}
