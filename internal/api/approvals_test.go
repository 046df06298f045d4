package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// setupWaitingRun creates a run that waits for a decision and then outputs it.
func setupWaitingRun(w *testWorkspace) {
	w.t.Helper()
	w.workflow("wf", askStep, `{"id": "after", "uses": "data.set", "with": {"values": {"got": "${{ steps.ask.output }}"}}}`)
	w.runUntilWaiting("run", "wf")
}

const resume = "POST /v1/runs/$run/steps/ask/resume"

func TestResumeStep(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "an approval ends the wait, and the answer is the output of the step",
			setup:   setupWaitingRun,
			request: resume, scope: "execute", body: `{"approved": true, "comment": "Go", "data": {"n": [1, 2.5]}}`, status: 200, members: runKeys,
			contains: `{"id": "$run"}`, audit: "run.answered", events: "run.succeeded",
			after: func(w *testWorkspace, _ *response) {
				run := w.waitForStatus("run", "succeeded")
				wantContains(w.t, stepsByID(run)["after"], `{"output": {"got": {"approved": true, "by": "~key_.+", "comment": "Go", "data": {"n": [1, 2.5]}}}}`)
				wantContains(w.t, stepsByID(run)["ask"], `{"status": "succeeded", "reason": null, "attempt": 1}`)
				entry := w.call("GET", "/v1/audit?action=run.answered", "").items()[0]
				wantContains(w.t, entry, w.expand(`{"target_type": "run", "target_id": "$run", "details": {"step_id": "ask", "approved": true}}`))
			},
		},
		{
			name:    "a rejection does not fail the step, and later steps see it",
			setup:   setupWaitingRun,
			request: resume, body: `{"approved": false}`, status: 200, audit: "run.answered", events: "run.succeeded",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, stepsByID(w.waitForStatus("run", "succeeded"))["after"], `{"output": {"got": {"approved": false, "comment": "", "data": null}}}`)
			},
		},
		{
			name: "a step that has its answer is step_not_waiting",
			setup: func(w *testWorkspace) {
				setupWaitingRun(w)
				w.call("POST", "/v1/runs/$run/steps/ask/resume", `{"approved": false}`).wantStatus(200)
				w.waitForStatus("run", "succeeded")
			},
			request: resume, body: `{"approved": true}`, status: 409, code: "step_not_waiting", message: "ask",
		},
		{
			name:    "a step that waits for something else is step_not_waiting",
			setup:   func(w *testWorkspace) { w.workflow("wf", waitStep); w.runUntilWaiting("run", "wf") },
			request: "POST /v1/runs/$run/steps/pause/resume", body: `{"approved": true}`, status: 409, code: "step_not_waiting", message: "flow.wait",
		},
		{
			name: "a step of a cancelled run is step_not_waiting",
			setup: func(w *testWorkspace) {
				setupWaitingRun(w)
				w.call("POST", "/v1/runs/$run/cancel", "").wantStatus(200)
			},
			request: resume, body: `{"approved": true}`, status: 409, code: "step_not_waiting", message: "cancelled",
		},
		{
			name:    "a step that the run does not have is step_not_found",
			setup:   setupWaitingRun,
			request: "POST /v1/runs/$run/steps/none/resume", body: `{"approved": true}`, status: 404, code: "step_not_found", message: "none",
		},
		{
			name:    "a step that has not started is step_not_found",
			setup:   setupWaitingRun,
			request: "POST /v1/runs/$run/steps/after/resume", body: `{"approved": true}`, status: 404, code: "step_not_found", message: "after",
		},
		{
			name:    "a step of an unknown run is run_not_found",
			request: "POST /v1/runs/run_01m7f9hb3mevr88y42wdngtn4v/steps/ask/resume", body: `{"approved": true}`, status: 404, code: "run_not_found",
		},
		{
			name:    "a step of a deleted workflow's run is not found",
			setup:   func(w *testWorkspace) { setupWaitingRun(w); w.call("DELETE", "/v1/workflows/$wf", "").wantStatus(204) },
			request: resume, body: `{"approved": true}`, status: 404, code: "run_not_found",
		},
		{
			name:    "an answer says whether it approves",
			setup:   setupWaitingRun,
			request: resume, body: `{"comment": "Go"}`, status: 400, code: "invalid_request", pointers: []string{"/approved"},
		},
		{
			name:    "a comment has at most 4,000 characters",
			setup:   setupWaitingRun,
			request: resume, body: `{"approved": true, "comment": "` + strings.Repeat("é", 4001) + `"}`, status: 400, code: "invalid_request", pointers: []string{"/comment"},
		},
		{
			name:    "a comment of 4,000 characters fits",
			setup:   setupWaitingRun,
			request: resume, body: `{"approved": true, "comment": "` + strings.Repeat("é", 4000) + `"}`, status: 200, audit: "run.answered", events: "run.succeeded",
		},
		{
			name:    "an answer that is larger than the output of a step is payload_too_large, and the step goes on waiting",
			setup:   setupWaitingRun,
			request: resume, body: `{"approved": true, "data": "` + strings.Repeat("x", 1<<20) + `"}`, status: 413, code: "payload_too_large", pointers: []string{"/data"},
			after: func(w *testWorkspace, _ *response) { w.waitForStep("run", "ask") },
		},
		{
			name:    "the answer is stored, not executed: expressions in it stay text",
			setup:   setupWaitingRun,
			request: resume, body: `{"approved": true, "comment": "${{ trigger }}"}`, status: 200, audit: "run.answered", events: "run.succeeded",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, stepsByID(w.waitForStatus("run", "succeeded"))["after"], `{"output": {"got": {"comment": "${{ trigger }}"}}}`)
			},
		},
	})
}

// The data of a decision can be anything and arrives unchanged.
func TestResumeWithData(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", askStep)
	for _, data := range []string{`null`, `true`, `false`, `0`, `-1.5e3`, `12345678901234567890`, `""`, `"é\n\u0001"`, `[]`, `[null,[1,{}]]`, `{}`, `{"a":{"b":[]}}`} {
		w.runUntilWaiting("run", "wf")
		w.call("POST", "/v1/runs/$run/steps/ask/resume", `{"approved": true, "data": `+data+`}`).wantStatus(200)
		var want any
		decoder := json.NewDecoder(strings.NewReader(data))
		decoder.UseNumber()
		if err := decoder.Decode(&want); err != nil {
			t.Fatal(err)
		}
		output := stepsByID(w.waitForStatus("run", "succeeded"))["ask"].(map[string]any)["output"].(map[string]any)
		if number, ok := want.(json.Number); ok && strings.ContainsAny(string(number), ".e") {
			continue // the value is the same, the text may differ
		}
		if diff := cmp.Diff(want, output["data"]); diff != "" {
			t.Errorf("%s arrived as (-want +got):\n%s", data, diff)
		}
	}
}

// The id of a step inside a loop can be written plainly or escaped.
func TestResumeInsideALoop(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", `{"id": "lines", "foreach": "[1, 2, 3, 4]", "parallel": 4, "steps": [`+askStep+`]}`)
	w.startRun("run", "wf", "")
	eventually(t, "all rounds ask", func() bool { return len(w.call("GET", "/v1/approvals", "").items()) == 4 })
	for _, path := range []string{"lines[0].ask", "lines%5B1%5D.ask", "lines%5b2%5d%2eask", "lines[3%5D.ask"} {
		w.call("POST", "/v1/runs/$run/steps/"+path+"/resume", `{"approved": true}`).wantStatus(200)
	}
	wantContains(t, w.waitForStatus("run", "succeeded").json(), `{"status": "succeeded"}`)
	for _, path := range []string{"lines[4].ask", "lines[0]", "lines[00].ask", "lines[-1].ask", "lines", "ask", "lines[0].ask%20", "%00", "%F0%9F%98%80", "'"} {
		a := w.call("POST", "/v1/runs/$run/steps/"+path+"/resume", `{"approved": true}`)
		if code := a.code(); code != "step_not_found" && code != "step_not_waiting" {
			t.Errorf("%s: got %d %s", path, a.status, a.body)
		}
	}
}

// Of many concurrent decisions, exactly one is accepted.
func TestResumeRace(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", askStep)
	for range 5 {
		w.runUntilWaiting("run", "wf")
		var (
			group sync.WaitGroup
			mu    sync.Mutex
			seen  = map[int]int{}
			won   string
		)
		for i := range 16 {
			group.Go(func() {
				comment := fmt.Sprint("answer ", i)
				a := w.call("POST", "/v1/runs/$run/steps/ask/resume", fmt.Sprintf(`{"approved": %t, "comment": %q}`, i%2 == 0, comment))
				mu.Lock()
				defer mu.Unlock()
				seen[a.status]++
				if a.status == http.StatusOK {
					won = comment
				}
			})
		}
		group.Wait()
		if seen[http.StatusOK] != 1 || seen[http.StatusConflict] != 15 {
			t.Errorf("responses by status: %v", seen)
		}
		wantContains(t, stepsByID(w.waitForStatus("run", "succeeded"))["ask"], fmt.Sprintf(`{"output": {"comment": %q}}`, won))
	}
	if got := slices.DeleteFunc(w.auditActions(), func(action string) bool { return action != "run.answered" }); len(got) != 5 {
		t.Errorf("%d decisions were recorded", len(got))
	}
}

// Without a decision, the step fails or continues without approval.
func TestApprovalTimesOut(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("fails", `{"id": "ask", "uses": "flow.approval", "with": {"timeout": "20ms"}}`)
	wantContains(t, w.runToEnd("run", "fails", "").json(), `{"status": "failed", "error": {"code": "approval_timed_out", "step_id": "ask"}}`)
	w.workflow("goes_on", `{"id": "ask", "uses": "flow.approval", "with": {"timeout": "20ms", "on_timeout": "continue"}}`)
	wantContains(t, w.runToEnd("run", "goes_on", "").json(),
		`{"status": "succeeded", "steps": [{"output": {"approved": false, "by": null, "comment": null, "data": null}}]}`)
	wantContains(t, w.call("GET", "/v1/approvals", "").json(), `{"data": []}`)
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	other.workflow("wf", askStep)
	other.runUntilWaiting("run", "wf")
	w.workflow("two", `{"id": "b", "needs": [], "uses": "flow.approval", "with": {"message": "B ${{ trigger.payload.n }}", "timeout": "2d"}}`,
		`{"id": "a", "name": "Ask A", "needs": [], "uses": "flow.approval"}`)
	w.workflow("one", askStep)
	w.startRun("old", "two", `{"payload": {"n": 7}}`)
	w.waitForStep("old", "b")
	w.runUntilWaiting("new", "one")
	w.runUntilWaiting("doomed", "one")
	list := func(want string) {
		t.Helper()
		wantContains(t, w.call("GET", "/v1/approvals", "").wantStatus(200).json(), w.expand(`{"data": [`+want+`], "next_cursor": null}`))
	}
	const (
		older   = `{"run_id": "$old", "step_id": "a", "step_name": "Ask A", "message": null, "until": "~.+Z"}, {"run_id": "$old", "step_id": "b", "message": "B 7"}`
		newer   = `{"run_id": "$new", "step_id": "ask", "step_name": "ask", "workflow_id": "$one", "workflow_name": "Workflow one", "message": "Go on?", "since": "~.+Z"}`
		doomed  = `{"run_id": "$doomed"}`
		members = "run_id step_id step_name workflow_id workflow_name message since until page_url callback_url"
	)
	list(doomed + "," + newer + "," + older)
	wantContains(t, w.call("GET", "/v1/runs/$new", "").json(),
		`{"waiting_for": {"reason": "~waits for approval until .+Z", "step_id": "ask", "until": "~.+Z"}}`)
	wantKeys(t, w.call("GET", "/v1/approvals", "").items()[0], members)
	if got := slices.Concat(readPages(w.client, "/v1/approvals?limit=1", "step_id")...); !slices.Equal(got, []string{"ask", "ask", "a", "b"}) {
		t.Errorf("page by page it is %v", got)
	}
	w.call("POST", "/v1/runs/$doomed/cancel", "").wantStatus(200)
	list(newer + "," + older)
	w.call("POST", "/v1/runs/$old/steps/a/resume", `{"approved": true}`).wantStatus(200)
	list(newer + `, {"run_id": "$old", "step_id": "b"}`)
	w.call("DELETE", "/v1/workflows/$two", "").wantStatus(204)
	list(newer)
	w.call("DELETE", "/v1/workflows/$one", "").wantStatus(204)
	list("")
}
