package api_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFollowEvents(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	w.workflow("before", setStep)
	w.runToEnd("run", "before", "") // before the stream: not sent

	s := w.client.follow("/v1/events/stream")
	other.workflow("wf", setStep)
	other.runToEnd("run", "wf", "")
	w.workflow("wf", setStep)
	w.patch("wf", `{"state": "active"}`)
	w.runToEnd("first", "wf", "")
	w.workflow("bad", failStep)
	w.runToEnd("second", "bad", "")
	w.patch("wf", `{"state": "paused"}`)
	want := []string{"workflow.activated", "run.started", "run.succeeded", "run.started", "run.failed", "workflow.paused"}
	var received []sseEvent
	for range want {
		e, ok := s.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		received = append(received, e)
	}
	if diff := cmp.Diff(want, eventNames(received)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	bodies := firstColumn(w.server.query(t, `SELECT body FROM events WHERE workspace_id = ? ORDER BY seq`, w.id))[2:]
	for i, e := range received {
		if e.data != bodies[i] {
			t.Errorf("%s was sent as %s but stored as %s", e.name, e.data, bodies[i])
		}
	}

	// A stream can resume from every id.
	for i, e := range received[:len(received)-1] {
		again := w.client.follow("/v1/events/stream", "Last-Event-ID", e.id)
		for _, want := range received[i+1:] {
			if got, _ := again.next(); got != want {
				t.Errorf("after %s: got %+v, want %+v", e.id, got, want)
			}
		}
		again.disconnect()
	}
}

// A client that disconnects before the first event resumes from where the
// stream started.
func TestFollowEventsResumeBeforeFirstEvent(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep)
	s := w.client.follow("/v1/events/stream")
	for s.lastID == "" { // the id is sent without an event
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscanf(line, "id: %s", &s.lastID)
	}
	s.disconnect()
	w.runToEnd("run", "wf", "")
	again := w.client.follow("/v1/events/stream", "Last-Event-ID", s.lastID)
	if first := again.waitFor("run.started"); first.str(t, "event") != "run.started" {
		t.Error(first.data)
	}
	again.waitFor("run.succeeded")
}

func TestFollowEventsWithFilters(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep)
	w.workflow("other", setStep)
	failed := w.client.follow("/v1/events/stream?types=run.failed,run.cancelled")
	ofOne := w.client.follow("/v1/events/stream?workflow_id=" + w.names["wf"])
	both := w.client.follow("/v1/events/stream?types=run.succeeded&workflow_id=" + w.names["wf"])
	w.runToEnd("a", "other", "")
	w.runToEnd("b", "wf", "")
	w.workflow("waits", waitStep)
	w.runUntilWaiting("c", "waits")
	w.call("POST", "/v1/runs/$c/cancel", "").wantStatus(200)
	if e, _ := failed.next(); e.name != "run.cancelled" {
		t.Errorf("with a filter by type: %+v", e)
	}
	started, _ := ofOne.next()
	ended, _ := ofOne.next()
	only, _ := both.next()
	for _, e := range []sseEvent{started, ended, only} {
		if body := w.eventBodies(e.name); !slices.ContainsFunc(body, func(b map[string]any) bool {
			data, _ := b["data"].(map[string]any)
			return data["run_id"] == w.names["b"]
		}) {
			t.Errorf("with a filter by workflow: %+v", e)
		}
	}
	if started.name != "run.started" || ended.name != "run.succeeded" || only != ended {
		t.Errorf("with a filter by workflow: %v", []sseEvent{started, ended, only})
	}
}

func TestFollowEventsErrors(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	other.workflow("wf")
	for _, query := range []string{"?types=run.finished", "?types=", "?types=run.failed,", "?types=run.failed,%20run.started", "?type=run.failed", "?workflow_id="} {
		w.call("GET", "/v1/events/stream"+query, "").wantStatus(400, "invalid_request")
	}
	for _, id := range []string{"x", "-1"} {
		w.call("GET", "/v1/events/stream", "", "Last-Event-ID", id).wantStatus(400, "invalid_request")
	}
	for _, id := range []string{"nonsense", "wf_01m7f8njhve3pt0yekqqme4qcm", other.names["wf"]} {
		w.call("GET", "/v1/events/stream?workflow_id="+id, "").wantStatus(404, "workflow_not_found")
	}
}

// If events were deleted, the stream reports the gap and continues with the
// remaining ones.
func TestFollowEventsGap(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	w.workflow("wf", setStep)
	for i := range 3 {
		w.runToEnd(fmt.Sprint("run", i), "wf", "")
	}
	s.query(t, `DELETE FROM events WHERE seq <= 4`)
	for id, want := range map[string]string{"0": `{"after":"0","through":"4"}`, "2": `{"after":"2","through":"4"}`, "99": `{"after":"99","through":"6"}`} {
		stream := w.client.follow("/v1/events/stream", "Last-Event-ID", id)
		if e, _ := stream.next(); e.name != "gap" || e.data != want {
			t.Errorf("after %s: %+v, want %s", id, e, want)
		}
		if id != "99" {
			if e, _ := stream.next(); e.name != "run.started" || e.id != "5" {
				t.Errorf("after the gap comes %+v", e)
			}
		}
	}
	for _, id := range []string{"4", "5"} {
		if e, _ := w.client.follow("/v1/events/stream", "Last-Event-ID", id).next(); e.name == "gap" {
			t.Errorf("after %s there is a gap: %s", id, e.data)
		}
	}
}
