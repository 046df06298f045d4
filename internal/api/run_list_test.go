package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/test/lane"
)

const (
	listedRunKeys  = "id workflow_id workflow_name status trigger draft started_at finished_at duration_ms error started_by waiting_for"
	listedStepKeys = "step_id name type status attempt started_at finished_at duration_ms error reason pinned"
	// loopStep has two rounds with a loop of one round inside.
	loopStep = `{"id": "lines", "foreach": "${{ [1, 2] }}", "steps": [
		{"id": "reserve", "uses": "data.set", "with": {"values": {"n": "${{ item }}"}}},
		{"id": "parts", "foreach": "${{ [3] }}", "steps": [{"id": "pick", "uses": "data.set", "with": {"values": {}}}]}]}`
)

// setupRuns creates a run of each status.
func setupRuns(w *testWorkspace) {
	w.workflow("good")
	w.patch("good", `{"name": "Größe prüfen"}`)
	w.workflow("bad", failStep)
	w.workflow("slow", waitStep)
	w.runToEnd("succeeded", "good", "")
	w.runToEnd("failed", "bad", "")
	w.startRun("cancelled", "slow", "")
	w.call("POST", "/v1/runs/$cancelled/cancel", "").wantStatus(http.StatusOK)
	w.runUntilWaiting("running", "slow")
}

func TestListAllRuns(t *testing.T) {
	lists := func(name, query string, want ...string) scenario {
		return scenario{
			name: name, scope: "read", request: "GET /v1/runs" + query, status: 200,
			after: func(w *testWorkspace, a *response) {
				w.t.Helper()
				ids := []string{}
				for _, name := range want {
					ids = append(ids, w.names[name])
				}
				if got := a.column("id"); !slices.Equal(got, ids) || a.object()["next_cursor"] != nil {
					w.t.Errorf("got %v, want the runs %v: %v", got, want, ids)
				}
			},
		}
	}
	refuses := func(query, code string, status int, says string) scenario {
		return scenario{name: "rejected: " + query, request: "GET /v1/runs?" + query, lenient: true, status: status, code: code, message: says}
	}
	runReadOnlyScenarios(t, setupRuns, []scenario{
		lists("the runs of all workflows are listed, newest first", "", "running", "cancelled", "failed", "succeeded"),
		lists("by status: running", "?status=running", "running"),
		lists("by status: succeeded", "?status=succeeded", "succeeded"),
		lists("by status: failed", "?status=failed", "failed"),
		lists("by status: cancelled", "?status=cancelled", "cancelled"),
		lists("by workflow", "?workflow_id=$slow", "running", "cancelled"),
		lists("by workflow and status", "?workflow_id=$slow&status=cancelled", "cancelled"),
		lists("by workflow and status: running", "?workflow_id=$slow&status=running", "running"),
		lists("that wait", "?waiting=true", "running"),
		lists("that wait and are running", "?waiting=true&status=running", "running"),
		lists("that wait and have failed", "?waiting=true&status=failed"),
		lists("that do not wait", "?waiting=false", "cancelled", "failed", "succeeded"),
		lists("that do not wait and are running", "?waiting=false&status=running"),
		lists("of a workflow that wait", "?waiting=true&workflow_id=$slow", "running"),
		lists("of a workflow that do not wait", "?waiting=false&workflow_id=$slow", "cancelled"),
		lists("by trigger", "?trigger=manual&status=failed", "failed"),
		lists("by a trigger that started nothing", "?trigger=schedule"),
		lists("by the id of a run", "?text=$failed", "failed"),
		lists("by the id of a run that has another status", "?text=$failed&status=succeeded"),
		lists("by the id of no run", "?text=run_01m7f9hb3mevr88y42wdngtn4v"),
		lists("by the beginning of every id", "?status=failed&text=run_", "failed"),
		lists("by the beginning of a name, whatever its case", "?text="+url.QueryEscape("GRÖSSE")),
		lists("by the beginning of a name with letters beyond ASCII", "?text="+url.QueryEscape("GRÖß"), "succeeded"),
		lists("by the middle of a name", "?text="+url.QueryEscape("prüfen")),
		lists("by the beginning of an error code", "?text=invalid_", "failed"),
		lists("by an error code in capitals", "?text=INVALID_"),
		lists("with a text that SQL would understand", "?text="+url.QueryEscape("%' OR 1=1 --")),
		lists("from a time on that is long past", "?started_after=2020-01-01T00:00:00%2B01:00&status=failed", "failed"),
		lists("from a time on that is to come", "?started_after=9999-12-31T23:59:59.999Z"),
		lists("up to a time that is long past", "?started_before=0001-01-01T00:00:00Z"),
		lists("up to a time that is to come", "?started_before=2099-01-01T00:00:00Z&status=running", "running"),
		{
			name: "an item has these members", request: "GET /v1/runs?status=failed", status: 200,
			contains: `{"data": [{"id": "$failed", "workflow_id": "$bad", "workflow_name": "Workflow bad", "status": "failed", "trigger": "manual",
				"error": {"code": "invalid_input", "message": "~.+"}}], "next_cursor": null}`,
			after: func(w *testWorkspace, a *response) { wantKeys(w.t, a.items()[0], listedRunKeys) },
		},
		{
			name: "an item says what its run waits for", request: "GET /v1/runs?waiting=true", status: 200,
			contains: `{"data": [{"id": "$running", "status": "running", "waiting_for": {"reason": "~waits until .+", "step_id": "pause", "until": "~.+Z"}}]}`,
			after: func(w *testWorkspace, a *response) {
				if diff := cmp.Diff(w.call("GET", "/v1/runs/$running", "").object()["waiting_for"], a.items()[0]["waiting_for"]); diff != "" {
					w.t.Errorf("(-run +list):\n%s", diff)
				}
			},
		},
		{
			name: "the runs of one workflow that wait", request: "GET /v1/workflows/$slow/runs?waiting=true", status: 200,
			contains: `{"data": [{"id": "$running"}], "next_cursor": null}`,
		},
		{
			name: "the runs of one workflow that do not wait", request: "GET /v1/workflows/$slow/runs?waiting=false", status: 200,
			contains: `{"data": [{"id": "$cancelled"}], "next_cursor": null}`,
		},
		{
			name: "the runs of one workflow by something else than true or false", request: "GET /v1/workflows/$slow/runs?waiting=1", lenient: true,
			status: 400, code: "invalid_request", message: "waiting",
		},
		{
			name: "the list of one workflow keeps to its six members", request: "GET /v1/workflows/$bad/runs", status: 200,
			after: func(w *testWorkspace, a *response) {
				wantKeys(w.t, a.items()[0], "id workflow_id status started_at finished_at duration_ms")
			},
		},
		{
			name: "the bounds of time are those that are shown", request: "GET /v1/runs?status=failed", status: 200,
			after: func(w *testWorkspace, a *response) {
				at := fmt.Sprint(a.items()[0]["started_at"])
				for query, want := range map[string]int{"started_after=" + at: 1, "started_before=" + at: 0} {
					if got := w.call("GET", "/v1/runs?status=failed&"+query, "").wantStatus(200).items(); len(got) != want {
						w.t.Errorf("%s: %d runs, want %d", query, len(got), want)
					}
				}
			},
		},
		refuses("status=broken", "invalid_request", 400, "status"),
		refuses("workflow_id=wf_01m7f8njhve3pt0yekqqme4qcm", "workflow_not_found", 404, "wf_01m7f8njhve3pt0yekqqme4qcm"),
		refuses("workflow_id=x", "workflow_not_found", 404, "x"),
		refuses("started_after=yesterday", "invalid_request", 400, "started_after"),
		refuses("started_before=2026-11-15", "invalid_request", 400, "started_before"),
		refuses("started_before=2026-11-15T00:00:00+01:00", "invalid_request", 400, "%2B"),
		refuses("text="+strings.Repeat("x", 201), "invalid_request", 400, "text"),
		refuses("trigger="+strings.Repeat("x", 201), "invalid_request", 400, "trigger"),
		refuses("text=", "invalid_request", 400, "text"),
		refuses("waiting=maybe", "invalid_request", 400, "waiting: must be true or false"),
		refuses("waiting=", "invalid_request", 400, "waiting"),
		refuses("state=running", "invalid_request", 400, "state"),
	})
}

func TestRunsOfDeletedWorkflow(t *testing.T) {
	runScenarios(t, []scenario{{
		name: "runs of a deleted workflow disappear immediately", setup: func(w *testWorkspace) {
			setupRuns(w)
			w.call("DELETE", "/v1/workflows/$bad", "").wantStatus(http.StatusNoContent)
		},
		request: "GET /v1/runs?status=failed", status: 200, contains: `{"data": [], "next_cursor": null}`,
	}})
}

// With every combination of filters, runs that exist throughout are returned
// exactly once, whatever is started meanwhile.
func TestRunPaginationUnderChange(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		c := drawListChanges(rt)
		c.removed = nil
		w := newTestWorkspace(t)
		w.workflow("wf", failStep)
		w.workflow("other", waitStep)
		began := url.QueryEscape(time.Now().Add(-time.Minute).Format(time.RFC3339))
		ended := url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
		var ids []string
		for range c.items {
			ids = append(ids, w.runToEnd("item", "wf", "").str("id"))
		}
		query := "?"
		for _, filter := range []string{
			"status=failed", "workflow_id=$wf", "trigger=manual", "started_after=" + began, "started_before=" + ended, "text=workflow",
		} {
			if rapid.Bool().Draw(rt, filter) {
				query += "&" + filter
			}
		}
		rt.Log(query)
		c.readWhileChanging(rt, w.client, w.expand("/v1/runs"+query), ids, func() {
			w.client.call("POST", w.expand("/v1/workflows/$wf/runs"), "").wantStatus(http.StatusCreated)
			w.client.call("POST", w.expand("/v1/workflows/$other/runs"), "").wantStatus(http.StatusCreated)
		}, nil)
	})
}

func TestListSteps(t *testing.T) {
	given := func(w *testWorkspace) {
		w.workflow("wf", setStep, loopStep, `{"id": "never", "uses": "data.set", "if": "false", "with": {"values": {}}}`)
		w.runToEnd("run", "wf", "")
	}
	lists := func(name, query string, want ...string) scenario {
		return scenario{
			name: name, setup: given, scope: "read", request: "GET /v1/runs/$run/steps" + query, status: 200,
			after: func(w *testWorkspace, a *response) {
				w.t.Helper()
				if got := a.column("step_id"); !slices.Equal(got, want) || a.object()["next_cursor"] != nil {
					w.t.Errorf("got %v, want %v", got, want)
				}
			},
		}
	}
	runScenarios(t, []scenario{
		{
			name: "steps are listed in the order they started, as the run shows them", setup: given, request: "GET /v1/runs/$run/steps", status: 200,
			after: func(w *testWorkspace, a *response) {
				whole := w.call("GET", "/v1/runs/$run", "").object()["steps"].([]any)
				if len(a.items()) != len(whole) || len(whole) != 9 {
					w.t.Fatalf("%d steps, the run shows %d", len(a.items()), len(whole))
				}
				for i, item := range a.items() {
					wantKeys(w.t, item, listedStepKeys)
					for key, value := range item {
						if shown := whole[i].(map[string]any)[key]; fmt.Sprint(shown) != fmt.Sprint(value) {
							w.t.Errorf("step %d: %s is %v, the run shows %v", i, key, value, shown)
						}
					}
				}
				pages := readPages(w.client, w.expand("/v1/runs/$run/steps?limit=2"), "step_id")
				if got := slices.Concat(pages...); !slices.Equal(got, a.column("step_id")) || len(pages) != 5 {
					w.t.Errorf("page by page: %v", pages)
				}
			},
		},
		lists("by status", "?status=skipped", "never"),
		lists("by block: its own rounds", "?block=lines", "lines[0].reserve", "lines[0].parts", "lines[1].reserve", "lines[1].parts"),
		lists("by block: one inside another", "?block=lines%5B1%5D.parts", "lines[1].parts[0].pick"),
		lists("by block and status", "?block=lines&status=failed"),
		lists("by a block that there is not", "?block=line"),
		lists("by a text that SQL would understand", "?block=%25"),
		{
			name: "a failed step shows its error", setup: func(w *testWorkspace) { w.workflow("wf", failStep); w.runToEnd("run", "wf", "") },
			request: "GET /v1/runs/$run/steps?status=failed", status: 200, contains: `{"data": [{"step_id": "fail", "error": {"code": "invalid_input", "message": "~.+"}}]}`,
		},
		{name: "a run without steps has none", setup: func(w *testWorkspace) { w.workflow("wf"); w.runToEnd("run", "wf", "") }, request: "GET /v1/runs/$run/steps", status: 200, contains: `{"data": [], "next_cursor": null}`},
		{name: "an unknown status is rejected", setup: given, lenient: true, request: "GET /v1/runs/$run/steps?status=done", status: 400, code: "invalid_request", message: "status"},
		{name: "a run that does not exist has no steps", request: "GET /v1/runs/run_01m7f9hb3mevr88y42wdngtn4v/steps", status: 404, code: "run_not_found"},
		{
			name: "a cursor is bound to run and filters", setup: given, request: "GET /v1/runs/$run/steps?limit=1", status: 200,
			after: func(w *testWorkspace, a *response) {
				cursor := a.str("next_cursor")
				w.call("GET", "/v1/runs/$run/steps?status=succeeded&cursor="+cursor, "").wantStatus(400, "invalid_cursor")
				w.call("GET", "/v1/runs/$run/steps?block=lines&cursor="+cursor, "").wantStatus(400, "invalid_cursor")
				w.runToEnd("second", "wf", "")
				w.call("GET", "/v1/runs/$second/steps?cursor="+cursor, "").wantStatus(400, "invalid_cursor")
			},
		},
	})
}

func TestGetStep(t *testing.T) {
	given := func(w *testWorkspace) { w.workflow("wf", loopStep); w.runToEnd("run", "wf", "") }
	missing := func(name, path, code string) scenario {
		return scenario{name: name, setup: given, request: "GET " + path, status: 404, code: code}
	}
	runScenarios(t, []scenario{
		{
			name: "a step is read with all that the run shows of it", setup: given, scope: "read", request: "GET /v1/runs/$run/steps/lines[1].reserve", status: 200, members: stepKeys,
			after: func(w *testWorkspace, a *response) {
				if encoded := w.call("GET", "/v1/runs/$run/steps/lines%5B1%5D.reserve", "").wantStatus(200); string(encoded.body) != string(a.body) {
					w.t.Errorf("percent-encoded it is %s, not %s", encoded.body, a.body)
				}
				for _, step := range w.call("GET", "/v1/runs/$run", "").object()["steps"].([]any) {
					if step := step.(map[string]any); step["step_id"] == "lines[1].reserve" && fmt.Sprint(step) != fmt.Sprint(a.object()) {
						w.t.Errorf("got %v, the run shows %v", a.object(), step)
					}
				}
			},
			contains: `{"step_id": "lines[1].reserve", "status": "succeeded", "output": {"n": 2}, "attempts": [{"attempt": 1}]}`,
		},
		missing("a step that there is not is step_not_found", "/v1/runs/$run/steps/lines[2].reserve", "step_not_found"),
		missing("a step of a run that does not exist is run_not_found", "/v1/runs/run_01m7f9hb3mevr88y42wdngtn4v/steps/lines", "run_not_found"),
		{
			name: "a step that has not started is step_not_found", setup: func(w *testWorkspace) {
				w.workflow("wf", waitStep, `{"id": "after", "needs": ["pause"], "uses": "data.set", "with": {"values": {}}}`)
				w.runUntilWaiting("run", "wf")
			},
			request: "GET /v1/runs/$run/steps/after", status: 404, code: "step_not_found", message: "after",
		},
	})
}
