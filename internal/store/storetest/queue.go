package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

func testQueue(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	now := clock.Now()

	t.Run("when it is empty", func(t *testing.T) {
		same(t, "due", must(w.Due(ctx, now, nil, plenty))(t), nil)
		gone(w.NextDue(ctx, now))(t, "next due")
		same(t, "orphans", must(w.Orphans(ctx, "node_1", "", plenty))(t), nil)
	})

	// Started in another order than they wake.
	waits := map[time.Duration]run.Wake{}
	for _, wait := range []time.Duration{time.Hour, -time.Hour, time.Microsecond, 0, -time.Microsecond, -time.Minute} {
		r := w.start(t, wf, "node_1")
		answers(w.Commit(ctx, firstLease(r), r, run.Decision{Release: true, WakeAt: now.Add(wait)}))(t, "release", true)
		waits[wait] = run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: now.Add(wait), Plan: ws.Plan}
	}
	due := []run.Wake{waits[-time.Hour], waits[-time.Minute], waits[-time.Microsecond], waits[0]}

	t.Run("due", func(t *testing.T) {
		same(t, "now", must(w.Due(ctx, now, nil, plenty))(t), due)
		same(t, "the first two", must(w.Due(ctx, now, nil, 2))(t), due[:2])
		same(t, "a little later", must(w.Due(ctx, now.Add(time.Microsecond), nil, plenty))(t), append(due[:4:4], waits[time.Microsecond]))
		same(t, "long ago", must(w.Due(ctx, now.Add(-24*time.Hour), nil, plenty))(t), nil)
	})

	t.Run("next due", func(t *testing.T) {
		for _, tc := range []struct{ after, want time.Duration }{
			{-2 * time.Hour, -time.Hour}, {-time.Hour, -time.Minute}, {0, time.Microsecond}, {time.Microsecond, time.Hour},
		} {
			same(t, "after "+tc.after.String(), found(w.NextDue(ctx, now.Add(tc.after)))(t), now.Add(tc.want))
		}
		gone(w.NextDue(ctx, now.Add(time.Hour)))(t, "after the last")
	})

	t.Run("what is taken up is not due", func(t *testing.T) {
		_, ok, err := w.Activate(ctx, waits[-time.Hour], "node_1")
		answers(ok, err)(t, "activate", true)
		same(t, "due", must(w.Due(ctx, now, nil, plenty))(t), due[1:])
		same(t, "next due", found(w.NextDue(ctx, now.Add(-2*time.Hour)))(t), now.Add(-time.Minute))
	})

	t.Run("orphans", func(t *testing.T) {
		taken := waits[-time.Hour]
		orphans := []run.Wake{{RunID: taken.RunID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 2, Plan: ws.Plan}}
		for range 4 {
			r := w.start(t, wf, "node_1")
			orphans = append(orphans, run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, Plan: ws.Plan})
		}
		w.start(t, wf, "node_2")
		w.start(t, wf, "")
		slices.SortFunc(orphans, func(a, b run.Wake) int {
			if a.RunID < b.RunID {
				return -1
			}
			return 1
		})
		same(t, "of others than node_2", must(w.Orphans(ctx, "node_2", "", plenty))(t), orphans)
		same(t, "the first two", must(w.Orphans(ctx, "node_2", "", 2))(t), orphans[:2])
		same(t, "the rest", must(w.Orphans(ctx, "node_2", orphans[1].RunID, plenty))(t), orphans[2:])
		same(t, "of others than node_1", len(must(w.Orphans(ctx, "node_1", "", plenty))(t)), 1)
		same(t, "after a restart", len(must(w.Orphans(ctx, "node_3", "", plenty))(t)), len(orphans)+1)
		for _, orphan := range orphans {
			_, ok, err := w.Activate(ctx, orphan, "node_2")
			answers(ok, err)(t, "take over", true)
		}
		same(t, "once all are taken over", must(w.Orphans(ctx, "node_2", "", plenty))(t), nil)
	})
}
