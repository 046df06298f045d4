package event_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/uid"
)

func TestTypes(t *testing.T) {
	t.Parallel()
	want := []event.Type{"run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated", "workflow.paused", "connection.broken", "connection.ending"}
	if diff := cmp.Diff(want, event.Types()); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	for _, kind := range want {
		if !event.Known(string(kind)) {
			t.Errorf("%s is unknown", kind)
		}
	}
	for _, name := range []string{"", "run", "run.", "run.finished", "Run.started", "run.started ", "*"} {
		if event.Known(name) {
			t.Errorf("%q is an event type", name)
		}
	}
}

// The body contains the id, the type, the time in UTC and the data. The subject is
// not part of it.
func TestNew(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 29, 2, 30, 15, 987_654_321, time.FixedZone("", 2*3600))
	about := event.Subject{WorkspaceID: "ws_1", WorkflowID: "wf_1", RunID: "run_1", Depth: 3, Draft: true}
	e, err := event.New(event.RunFailed, about, at, map[string]any{"run_id": "run_1", "error": `<b> & "quoted" é`})
	if err != nil {
		t.Fatal(err)
	}
	want := event.Event{
		ID: e.ID, Type: event.RunFailed, At: at, WorkspaceID: "ws_1", WorkflowID: "wf_1", RunID: "run_1", Depth: 3, Draft: true, Body: e.Body,
	}
	if diff := cmp.Diff(want, e); diff != "" || !uid.Valid(uid.Event, e.ID) {
		t.Errorf("the event (-want +got):\n%s", diff)
	}
	prefix := fmt.Sprintf(`{"id":%q,"event":"run.failed","timestamp":"2026-03-29T00:30:15.987Z","data":{`, e.ID)
	if !strings.HasPrefix(string(e.Body), prefix) {
		t.Errorf("the body is %s, want it to start with %s", e.Body, prefix)
	}
	var body struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(e.Body, &body); err != nil || body.Data["error"] != `<b> & "quoted" é` {
		t.Errorf("the data is %v, %v", body.Data, err)
	}
	again, err := event.New(event.RunFailed, about, at, nil)
	if err != nil || again.ID <= e.ID || !strings.HasSuffix(string(again.Body), `,"data":null}`) {
		t.Errorf("a second event at the same time is %s, %s, %v", again.ID, again.Body, err)
	}
}

func TestNewRejectsInvalidData(t *testing.T) {
	t.Parallel()
	e, err := event.New(event.RunStarted, event.Subject{}, time.Now(), map[string]any{"x": make(chan int)})
	if err == nil || !strings.Contains(err.Error(), "run.started") || e.ID != "" || e.Body != nil {
		t.Errorf("data that cannot be encoded: got %+v, %v", e, err)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	at := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	e := event.Event{Type: event.RunFailed, WorkflowID: "wf_1", RunID: "run_1", At: at}
	types := func(types ...event.Type) event.Filter { return event.Filter{Types: types} }
	for _, tc := range []struct {
		name  string
		query event.Query
		want  bool
	}{
		{"no condition", event.Query{}, true},
		{"its type", event.Query{Filter: types(event.RunFailed)}, true},
		{"one of two types", event.Query{Filter: types(event.RunStarted, event.RunFailed)}, true},
		{"another type", event.Query{Filter: types(event.RunStarted)}, false},
		{"its workflow", event.Query{Filter: event.Filter{WorkflowID: "wf_1"}}, true},
		{"another workflow", event.Query{Filter: event.Filter{WorkflowID: "wf_2"}}, false},
		{"its run", event.Query{RunID: "run_1"}, true},
		{"another run", event.Query{RunID: "run_2"}, false},
		{"its type and another run", event.Query{Filter: types(event.RunFailed), RunID: "run_2"}, false},
		{"after its time", event.Query{After: at}, true},
		{"after a later time", event.Query{After: at.Add(time.Microsecond)}, false},
		{"before its time", event.Query{Before: new(at)}, false},
		{"before a later time", event.Query{Before: new(at.Add(time.Microsecond))}, true},
		{"between two times", event.Query{After: at.Add(-time.Hour), Before: new(at.Add(time.Hour))}, true},
	} {
		if got := tc.query.Matches(e); got != tc.want {
			t.Errorf("%s: got %t", tc.name, got)
		}
	}
	activated := event.Event{Type: event.WorkflowActivated, WorkflowID: "wf_1", At: at}
	if !(event.Query{}).Matches(activated) || (event.Query{RunID: "run_1"}).Matches(activated) {
		t.Error("an event without a run is matched wrongly")
	}
}
