package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListEvents(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	other.workflow("wf", setStep)
	other.runToEnd("run", "wf", "")
	w.workflow("wf", setStep)
	w.workflow("idle")
	w.patch("wf", `{"state": "active"}`)
	w.runToEnd("a", "wf", "")
	w.runToEnd("b", "wf", "")
	w.patch("idle", `{"state": "paused"}`)

	list := w.call("GET", "/v1/events", "").wantStatus(200)
	want := []string{"workflow.paused", "run.succeeded", "run.started", "run.succeeded", "run.started", "workflow.activated"}
	if diff := cmp.Diff(want, list.column("event")); diff != "" {
		t.Error(diff)
	}
	wantKeys(t, list.items()[0], "id event timestamp workflow_id run_id data")
	wantContains(t, list.items()[0], w.expand(`{"workflow_id": "$idle", "run_id": null, "data": {"state": "paused", "previous_state": "draft"}}`))
	wantContains(t, list.items()[1], w.expand(`{"workflow_id": "$wf", "run_id": "$b", "data": {"run_id": "$b", "status": "succeeded"}}`))
	at := list.column("timestamp")
	for query, want := range map[string]int{
		"?types=run.started": 2, "?types=run.started,workflow.paused": 3, "?types=run.failed": 0, "?workflow_id=" + w.names["idle"]: 1,
		"?run_id=" + w.names["a"]: 2, "?run_id=" + other.names["run"]: 0, "?run_id=" + w.names["a"] + "&types=run.started": 1,
		"?after=" + at[5]: 6, "?before=" + at[5]: 0, "?after=2100-01-01T00:00:00Z": 0, "?after=2020-01-01T00:00:00Z&before=2100-01-01T00:00:00Z": 6,
	} {
		if got := len(w.call("GET", "/v1/events"+query, "").wantStatus(200).items()); got != want {
			t.Errorf("%s: %d events, want %d", query, got, want)
		}
	}
	var walked []string
	for query := "?limit=4"; query != ""; {
		page := w.call("GET", "/v1/events"+query, "").wantStatus(200)
		walked = append(walked, page.column("id")...)
		query = ""
		if cursor, ok := page.object()["next_cursor"].(string); ok {
			query = "?limit=4&cursor=" + cursor
		}
	}
	if diff := cmp.Diff(list.column("id"), walked); diff != "" {
		t.Errorf("the pages are not the list (-list +pages):\n%s", diff)
	}
}

func TestListEventsErrors(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	other.workflow("wf")
	w.lenient = true
	for _, query := range []string{"types=run.done", "types=", "after=now", "before=2026", "limit=101", "cursor=x", "run_id=" + strings.Repeat("x", 201), "type=run.failed"} {
		code := "invalid_request"
		if query == "cursor=x" {
			code = "invalid_cursor"
		}
		w.call("GET", "/v1/events?"+query, "").wantStatus(400, code)
	}
	for _, id := range []string{"nonsense", "wf_01m7f8njhve3pt0yekqqme4qcm", other.names["wf"]} {
		w.call("GET", fmt.Sprintf("/v1/events?workflow_id=%s", id), "").wantStatus(404, "workflow_not_found")
	}
}
