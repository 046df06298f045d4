package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLogs(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf",
		`{"id": "plain", "uses": "log.write", "with": {"message": "Hello ${{ trigger.payload.name }}"}}`,
		`{"id": "debug", "uses": "log.write", "with": {"message": "d", "level": "debug"}}`,
		`{"id": "warn", "uses": "log.write", "with": {"message": "w", "level": "${{ 'warn' }}"}}`,
		`{"id": "error", "uses": "log.write", "with": {"message": "", "level": "error"}}`,
		`{"id": "each", "foreach": "[1, 2, 3]", "steps": [{"id": "note", "uses": "log.write", "with": {"message": "item ${{ item }}"}}]}`,
		`{"id": "long", "uses": "log.write", "with": {"message": "${{ trigger.payload.long }}"}}`,
		`{"id": "stop", "uses": "flow.stop", "with": {"message": "Enough"}}`)
	w.runToEnd("run", "wf", `{"payload": {"name": "Ada", "long": "x`+strings.Repeat("é", 1500)+`"}}`)
	all := w.call("GET", "/v1/runs/$run/logs", "").wantStatus(200)
	wantContains(t, all.json(), `{"next_cursor": null, "data": [
		{"step_id": "plain", "attempt": 1, "level": "info", "message": "Hello Ada", "at": "~.+Z"},
		{"step_id": "debug", "level": "debug", "message": "d"}, {"step_id": "warn", "level": "warn"}, {"step_id": "error", "level": "error", "message": ""},
		{"step_id": "each[0].note", "message": "item 1"}, {"step_id": "each[1].note", "message": "item 2"}, {"step_id": "each[2].note", "message": "item 3"},
		{"step_id": "long"}, {"step_id": "stop", "level": "info", "message": "Enough"}]}`)
	wantKeys(t, all.items()[0], "step_id attempt at level message")
	t.Run("a line longer than 2 KiB is truncated between characters", func(t *testing.T) {
		if got := all.items()[7]["message"].(string); got != "x"+strings.Repeat("é", 1023) {
			t.Errorf("%d bytes are stored: %.20q…", len(got), got)
		}
	})
	t.Run("the lines of one step", func(t *testing.T) {
		for _, path := range []string{"each[1].note", "each%5B1%5D.note"} {
			wantContains(t, w.withT(t).call("GET", "/v1/runs/$run/logs?step_id="+path, "").json(), `{"data": [{"step_id": "each[1].note"}], "next_cursor": null}`)
		}
		wantContains(t, w.withT(t).call("GET", "/v1/runs/$run/logs?step_id=none", "").json(), `{"data": []}`)
		w.withT(t).call("GET", "/v1/runs/$run/logs?step_id=", "").wantStatus(400, "invalid_request")
	})
	t.Run("page by page", func(t *testing.T) {
		for _, limit := range []int{1, 2, 4, 9} {
			pages := readPages(w.client.withT(t), w.expand(fmt.Sprintf("/v1/runs/$run/logs?limit=%d", limit)), "step_id")
			if got := slices.Concat(pages...); !slices.Equal(got, all.column("step_id")) || len(pages) != (8+limit)/limit {
				t.Errorf("with limit=%d: %v", limit, pages)
			}
		}
		first := w.withT(t).call("GET", "/v1/runs/$run/logs?limit=1", "").str("next_cursor")
		w.withT(t).call("GET", "/v1/runs/$run/logs?step_id=plain&cursor="+first, "").wantStatus(400, "invalid_cursor")
		w.withT(t).call("GET", "/v1/approvals?cursor="+first, "").wantStatus(400, "invalid_cursor")
		w.withT(t).call("GET", "/v1/runs/$run/logs?limit=101", "").wantStatus(400, "invalid_request")
	})
	t.Run("a run without a log", func(t *testing.T) {
		w := w.withT(t)
		w.workflow("none")
		w.runToEnd("silent", "none", "")
		wantContains(t, w.call("GET", "/v1/runs/$silent/logs", "").wantStatus(200).json(), `{"data": [], "next_cursor": null}`)
	})
	t.Run("of an unknown run", func(t *testing.T) {
		newTestWorkspace(t).client.call("GET", w.expand("/v1/runs/$run/logs"), "").wantStatus(404, "run_not_found")
		w.withT(t).call("DELETE", "/v1/workflows/$wf", "").wantStatus(204)
		w.withT(t).call("GET", "/v1/runs/$run/logs", "").wantStatus(404, "run_not_found")
	})
}

// An unknown level fails the step, and nothing is logged.
func TestLogLevels(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("bad", `{"id": "note", "uses": "log.write", "with": {"message": "m", "level": "${{ trigger.payload.level }}"}}`)
	wantContains(t, w.runToEnd("run", "bad", `{"payload": {"level": "loud"}}`).json(), `{"status": "failed", "error": {"code": "invalid_input", "step_id": "note"}}`)
	wantContains(t, w.call("GET", "/v1/runs/$run/logs", "").json(), `{"data": []}`)
}
