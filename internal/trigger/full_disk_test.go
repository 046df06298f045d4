package trigger_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// While the disk has no space for new runs, triggers are postponed: nothing is lost, and
// nothing is recorded as an error.
func TestTriggersOnFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		var space atomic.Int64 // for how many runs
		w.runs.AdmitStarts(func() error {
			if space.Add(-1) < 0 {
				return fault.New(fault.StorageFull, "the disk is almost full")
			}
			return nil
		})
		w.startNode()
		w.api.respond(200, itemList(1, 3))
		source := w.workflow(workflow.Active, `[]`)
		daily := w.workflow(workflow.Active, schedule(`"cron": "0 1 * * *", "jitter": "0s"`))
		polled := w.workflow(workflow.Active, poll(byID))
		notified := w.workflow(workflow.Active, eventTrigger(`"run.started"`, `, "workflows": ["`+source.ID+`"]`))
		sleepUntil(t, "2000-01-01T00:58:30Z")

		w.api.respond(200, itemList(1, 5))
		space.Store(1)
		w.startRun(source.ID)
		time.Sleep(4 * time.Minute)
		for _, of := range []workflow.Workflow{daily, polled, notified} {
			wantEqual(t, "runs on a full disk", len(w.startedRuns(of.ID)), 0)
			if stored := w.trigger(of.ID); stored.Error != nil || stored.NotFired != nil {
				t.Errorf("the trigger is %+v", stored)
			}
		}
		space.Store(100)
		time.Sleep(5 * time.Minute)
		wantEqual(t, "scheduled times", w.scheduledTimes(daily.ID), []string{"2000-01-01T01:00:00.000Z"})
		wantEqual(t, "items", w.startedItems(polled.ID), intRange(4, 5))
		wantEqual(t, "events", len(w.startedRuns(notified.ID)), 1)
	})
}
