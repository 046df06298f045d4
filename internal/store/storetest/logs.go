package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

func testLogs(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r := w.start(t, wf, "node_1")
	line := func(path, message string) run.LogLine {
		return run.LogLine{Path: path, Attempt: 1, At: clock.Now(), Level: "info", Message: message}
	}
	first := []run.LogLine{line("a", "1"), line("b", "2"), line("a", "3")}
	second := []run.LogLine{line("b", "4"), line("a", "5")}
	for i, lines := range [][]run.LogLine{first, second} {
		decision := run.Decision{Rev: i + 1, Logs: lines}
		returns(w.Commit(ctx, firstLease(r), r, decision))(t, "commit", true)
		returns(w.Commit(ctx, firstLease(r), r, decision))(t, "the same commit again", true)
	}
	late := run.Decision{Rev: 9, Logs: []run.LogLine{line("a", "too late")}}
	returns(w.Commit(ctx, run.Lease{RunID: r.ID, Epoch: 9}, r, late))(t, "a commit under a lost lease", false)
	for path, want := range map[string][]run.LogLine{
		"":     {first[0], first[1], first[2], second[0], second[1]},
		"a":    {first[0], first[2], second[1]},
		"none": nil,
	} {
		for limit := 1; limit <= 6; limit++ {
			var seen []run.LogLine
			for page := (paging.Request{Limit: limit}); ; {
				got, ok, err := w.Runs.Logs(ctx, ws.ID, r.ID, path, page)
				returns(ok, err)(t, "logs", true)
				seen = append(seen, got.Items...)
				if page.After = got.Next; got.Next == "" {
					break
				}
			}
			equal(t, "lines of "+path, seen, want)
		}
	}
	w.checkNoLogs(t, "an unknown run", ws.ID, "run_none")
	w.checkNoLogs(t, "another's run", w.workspace(t).ID, r.ID)
	w.deleteWorkflow(t, wf)
	w.checkNoLogs(t, "a run of a deleted workflow", ws.ID, r.ID)
	w.notified.take()
}

func (w *harness) checkNoLogs(t *testing.T, what, workspaceID, runID string) {
	t.Helper()
	lines, ok, err := w.Runs.Logs(t.Context(), workspaceID, runID, "", fullPage)
	returns(ok, err)(t, "logs of "+what, false)
	empty(lines, err)(t, "logs of "+what)
}
