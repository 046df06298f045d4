package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

func testQueue(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	now := clock.Now()

	t.Run("when it is empty", func(t *testing.T) {
		equal(t, "due", must(w.Leases.Due(ctx, now, nil, noLimit))(t), nil)
		missing(w.Leases.NextDue(ctx, now))(t, "next due")
		equal(t, "orphans", must(w.Leases.Orphans(ctx, "node_1", "", noLimit))(t), nil)
	})

	// They start in a different order than they wake.
	waits := map[time.Duration]run.Wake{}
	for _, wait := range []time.Duration{time.Hour, -time.Hour, time.Microsecond, 0, -time.Microsecond, -time.Minute} {
		r := w.start(t, wf, "node_1")
		returns(w.Commit(ctx, firstLease(r), r, run.Decision{Release: true, WakeAt: now.Add(wait)}))(t, "release", true)
		waits[wait] = run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: now.Add(wait), Plan: ws.Plan}
	}
	due := []run.Wake{waits[-time.Hour], waits[-time.Minute], waits[-time.Microsecond], waits[0]}

	t.Run("due", func(t *testing.T) {
		equal(t, "now", must(w.Leases.Due(ctx, now, nil, noLimit))(t), due)
		equal(t, "the first two", must(w.Leases.Due(ctx, now, nil, 2))(t), due[:2])
		equal(t, "a little later", must(w.Leases.Due(ctx, now.Add(time.Microsecond), nil, noLimit))(t), append(due[:4:4], waits[time.Microsecond]))
		equal(t, "long ago", must(w.Leases.Due(ctx, now.Add(-24*time.Hour), nil, noLimit))(t), nil)
	})

	t.Run("next due", func(t *testing.T) {
		for _, tc := range []struct{ after, want time.Duration }{
			{-2 * time.Hour, -time.Hour}, {-time.Hour, -time.Minute}, {0, time.Microsecond}, {time.Microsecond, time.Hour},
		} {
			equal(t, "after "+tc.after.String(), found(w.Leases.NextDue(ctx, now.Add(tc.after)))(t), now.Add(tc.want))
		}
		missing(w.Leases.NextDue(ctx, now.Add(time.Hour)))(t, "after the last")
	})

	t.Run("activated runs are not due", func(t *testing.T) {
		_, ok, err := w.Leases.Activate(ctx, waits[-time.Hour], "node_1")
		returns(ok, err)(t, "activate", true)
		equal(t, "due", must(w.Leases.Due(ctx, now, nil, noLimit))(t), due[1:])
		equal(t, "next due", found(w.Leases.NextDue(ctx, now.Add(-2*time.Hour)))(t), now.Add(-time.Minute))
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
		equal(t, "of others than node_2", must(w.Leases.Orphans(ctx, "node_2", "", noLimit))(t), orphans)
		equal(t, "the first two", must(w.Leases.Orphans(ctx, "node_2", "", 2))(t), orphans[:2])
		equal(t, "the rest", must(w.Leases.Orphans(ctx, "node_2", orphans[1].RunID, noLimit))(t), orphans[2:])
		equal(t, "of others than node_1", len(must(w.Leases.Orphans(ctx, "node_1", "", noLimit))(t)), 1)
		equal(t, "after a restart", len(must(w.Leases.Orphans(ctx, "node_3", "", noLimit))(t)), len(orphans)+1)
		for _, orphan := range orphans {
			_, ok, err := w.Leases.Activate(ctx, orphan, "node_2")
			returns(ok, err)(t, "take over", true)
		}
		equal(t, "once all are taken over", must(w.Leases.Orphans(ctx, "node_2", "", noLimit))(t), nil)
	})
}
