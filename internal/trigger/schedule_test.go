package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	scheduling "github.com/stepmill/stepmill/internal/trigger/schedule"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// Time starts at 2000-01-01T00:00:00Z in these tests.

func schedule(members string) string { return `[{"id": "s", "type": "schedule", ` + members + `}]` }

// A schedule fires once for each of its times and passes that time on.
func TestSchedule(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, members, from, to, want string
	}{
		{"daily", `"cron": "30 4 * * *"`, "", "2000-01-02T05:00:00Z", "2000-01-01T04:30:00.000Z 2000-01-02T04:30:00.000Z"},
		{"at month ends", `"cron": "0 0 31 * *"`, "2000-01-30T22:00:00Z", "2000-01-31T02:00:00Z", "2000-01-31T00:00:00.000Z"},
		{"on a leap day", `"cron": "0 12 29 2 *"`, "2000-02-29T10:00:00Z", "2000-02-29T14:00:00Z", "2000-02-29T12:00:00.000Z"},
		{"at an interval, from its activation on", `"every": "90m"`, "2000-01-01T00:10:00Z", "2000-01-01T05:00:00Z",
			"2000-01-01T01:40:00.000Z 2000-01-01T03:10:00.000Z 2000-01-01T04:40:00.000Z"},
		{"at an interval in cron", `"cron": "@every 2h"`, "", "2000-01-01T05:00:00Z", "2000-01-01T02:00:00.000Z 2000-01-01T04:00:00.000Z"},
		{"where clocks are set forward", `"cron": "30 2 * * *", "timezone": "Europe/Paris"`, "2000-03-26T00:00:00Z", "2000-03-26T04:00:00Z",
			"2000-03-26T01:00:00.000Z"},
		{"where clocks are set back", `"cron": "30 2 * * *", "timezone": "Europe/Paris"`, "2000-10-28T23:00:00Z", "2000-10-29T04:00:00Z",
			"2000-10-29T00:30:00.000Z"},
		{"where clocks are set back, every hour", `"cron": "0 * * * *", "timezone": "America/New_York"`, "2000-10-29T04:30:00Z", "2000-10-29T08:30:00Z",
			"2000-10-29T05:00:00.000Z 2000-10-29T06:00:00.000Z 2000-10-29T07:00:00.000Z 2000-10-29T08:00:00.000Z"},
		{"where clocks are set by half an hour", `"cron": "15 2 * * *", "timezone": "Australia/Lord_Howe"`, "2000-08-26T14:00:00Z", "2000-08-26T18:00:00Z",
			"2000-08-26T15:30:00.000Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t)
				if tc.from != "" {
					sleepUntil(t, tc.from)
				}
				w.startNode()
				made := w.workflow(workflow.Active, schedule(tc.members))
				sleepUntil(t, tc.to)
				wantEqual(t, "times", w.scheduledTimes(made.ID), strings.Fields(tc.want))
			})
		})
	}
}

// Each run starts with a delay that is constant for a trigger.
func TestJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		moved := map[time.Duration]bool{}
		var ids []string
		for range 20 {
			ids = append(ids, w.workflow(workflow.Active, schedule(`"cron": "0 * * * *"`)).ID)
		}
		exact := w.workflow(workflow.Active, schedule(`"cron": "0 * * * *", "jitter": "0s"`))
		time.Sleep(3*time.Hour + time.Minute)
		for _, id := range ids {
			for i, r := range w.startedRuns(id) {
				late := r.StartedAt.Sub(time.Date(2000, 1, 1, i+1, 0, 0, 0, time.UTC))
				if late < 0 || late >= 5*time.Second {
					t.Errorf("started %s late", late)
				}
				moved[late] = true
			}
			wantEqual(t, "runs", len(w.startedRuns(id)), 3)
		}
		if len(moved) < 15 || len(moved) > 20 {
			t.Errorf("%d different delays of 20 triggers", len(moved))
		}
		for i, r := range w.startedRuns(exact.ID) {
			wantEqual(t, "start", r.StartedAt, time.Date(2000, 1, 1, i+1, 0, 0, 0, time.UTC))
		}
	})
}

// With many schedules and three nodes, each schedule fires once.
func TestManySchedulesOfSameMinute(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		var ids []string
		for range lane.Pick(600, 1000) { // more than are read at once
			ids = append(ids, w.workflow(workflow.Active, schedule(`"cron": "0 * * * *", "missed": "latest"`)).ID)
		}
		for range 3 {
			w.startNode()
		}
		time.Sleep(61 * time.Minute)
		check := func(want int) {
			t.Helper()
			for _, id := range ids {
				runs, err := w.store.Runs.Runs(t.Context(), w.actor.Workspace.ID, id, "", paging.Request{Limit: want + 1})
				w.must(err)
				if len(runs.Items) != want {
					t.Fatalf("%s has runs for %v, want %d", id, w.scheduledTimes(id), want)
				}
			}
		}
		check(1)
		// After six hours of downtime, each schedule catches up once, even
		// after another restart.
		w.stopNodes()
		time.Sleep(6 * time.Hour)
		for range 2 {
			w.startNode()
			time.Sleep(time.Second)
			w.stopNodes()
		}
		check(2)
	})
}

func TestMissedTimes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, members string
		stopped       time.Duration
		want          string // the times after the stop
		idle          string
	}{
		{"skip is the default", `"cron": "0 * * * *"`, 3*time.Hour + 30*time.Minute, "", "the trigger could not fire from 2000-01-01T01:00:00.000Z to 2000-01-01T03:00:00.000Z, which is too long ago to catch up"},
		{"skip of one", `"cron": "0 1 * * *", "missed": "skip"`, 2 * time.Hour, "", "the trigger could not fire at 2000-01-01T01:00:00.000Z, which is too long ago to catch up"},
		{"a little late is not missed", `"cron": "0 1 * * *"`, time.Hour + 4*time.Minute, "2000-01-01T01:00:00.000Z", ""},
		{"latest makes up for the last", `"cron": "0 * * * *", "missed": "latest"`, 3*time.Hour + 30*time.Minute, "2000-01-01T03:00:00.000Z",
			"the trigger could not fire from 2000-01-01T01:00:00.000Z on; of the missed times, only the latest starts a run"},
		{"latest of one", `"cron": "0 1 * * *", "missed": "latest"`, 12 * time.Hour, "2000-01-01T01:00:00.000Z", ""},
		{"an interval keeps its beat", `"every": "1h", "missed": "latest"`, 3*time.Hour + 30*time.Minute, "2000-01-01T03:00:00.000Z",
			"the trigger could not fire from 2000-01-01T01:00:00.000Z on; of the missed times, only the latest starts a run"},
		{"every minute goes on at once", `"cron": "* * * * *"`, 90*time.Minute + 10*time.Second, "2000-01-01T01:30:00.000Z",
			"the trigger could not fire from 2000-01-01T00:01:00.000Z on; of the missed times, only the latest starts a run"},
		{"a year of minutes", `"cron": "* * * * *", "missed": "latest"`, 365*24*time.Hour + 10*time.Second, "2000-12-31T00:00:00.000Z",
			"the trigger could not fire from 2000-01-01T00:01:00.000Z on; of the missed times, only the latest starts a run"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t)
				made := w.workflow(workflow.Active, schedule(tc.members+`, "jitter": "0s"`))
				time.Sleep(tc.stopped)
				w.startNode()
				time.Sleep(time.Second)
				wantEqual(t, "times", w.scheduledTimes(made.ID), strings.Fields(tc.want))
				stored := w.trigger(made.ID)
				if stored.NextAt == nil || !stored.NextAt.After(clock.Now()) {
					t.Errorf("it fires next at %v", stored.NextAt)
				}
				switch {
				case tc.idle == "" && stored.NotFired != nil:
					t.Errorf("it says %+v", stored.NotFired)
				case tc.idle != "" && (stored.NotFired == nil || stored.NotFired.Code != trigger.CodeMissed || stored.NotFired.Message != tc.idle):
					t.Errorf("it says %+v, want %s", stored.NotFired, tc.idle)
				}
				before := len(w.scheduledTimes(made.ID))
				w.stopNodes()
				w.startNode()
				time.Sleep(time.Second)
				wantEqual(t, "runs after another start", len(w.scheduledTimes(made.ID)), before)
			})
		})
	}
}

func TestEditSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		made := w.workflow(workflow.Draft, schedule(`"cron": "0 12 * * *", "jitter": "0s"`))
		wantEqual(t, "time of a draft", w.trigger(made.ID).NextAt, (*time.Time)(nil))
		w.setState(made.ID, workflow.Active)
		sleepUntil(t, "2000-01-01T11:00:00Z")

		// An unrelated edit changes nothing.
		other := "Renamed"
		w.update(made.ID, workflow.Patch{Name: &other, Settings: &workflow.SettingsPatch{SetTimeout: true, Timeout: "5m"}})
		sleepUntil(t, "2000-01-01T12:30:00Z")
		wantEqual(t, "times", w.scheduledTimes(made.ID), []string{"2000-01-01T12:00:00.000Z"})

		// A new time applies immediately.
		w.update(made.ID, w.patch(schedule(`"cron": "45 12 * * *", "jitter": "0s"`)))
		sleepUntil(t, "2000-01-01T13:00:00Z")
		wantEqual(t, "times", w.scheduledTimes(made.ID)[1:], []string{"2000-01-01T12:45:00.000Z"})
		w.update(made.ID, w.patch(schedule(`"cron": "0 20 * * *", "jitter": "0s"`)))

		// Times that pass during a pause do not fire.
		sleepUntil(t, "2000-01-01T19:59:59Z")
		w.setState(made.ID, workflow.Paused)
		sleepUntil(t, "2000-01-01T20:00:01Z")
		w.setState(made.ID, workflow.Active)
		sleepUntil(t, "2000-01-02T20:00:01Z")
		wantEqual(t, "times", w.scheduledTimes(made.ID)[2:], []string{"2000-01-02T20:00:00.000Z"})

		// Runs use the current version.
		runs := w.startedRuns(made.ID)
		if first, last := runs[0].WorkflowVersion, runs[len(runs)-1].WorkflowVersion; last <= first {
			t.Errorf("versions %d and then %d", first, last)
		}
		w.update(made.ID, w.patch(`[]`))
		sleepUntil(t, "2000-01-04T00:00:00Z")
		wantEqual(t, "runs", len(w.scheduledTimes(made.ID)), 3)
	})
}

// The reason why a run could not start is recorded.
func TestScheduleNotFired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		made := w.workflow(workflow.Active, schedule(`"every": "1m"`), `{"concurrency": {"on_limit": "drop"}}`)
		time.Sleep(61 * time.Second)
		wantEqual(t, "runs", len(w.startedRuns(made.ID)), 1)
		time.Sleep(time.Minute)
		stored := w.trigger(made.ID)
		if stored.NotFired == nil || stored.NotFired.Code != "concurrency_limit" || !stored.NotFired.At.After(*stored.FiredAt) {
			t.Errorf("it says %+v", stored.NotFired)
		}
		wantEqual(t, "runs", len(w.startedRuns(made.ID)), 1)

		w.queueFull.Store(true)
		full := w.workflow(workflow.Active, schedule(`"every": "1m"`))
		time.Sleep(61 * time.Second)
		stored = w.trigger(full.ID)
		if stored.NotFired == nil || stored.NotFired.Code != "run_queue_full" {
			t.Errorf("it says %+v", stored.NotFired)
		}
		w.queueFull.Store(false)
		time.Sleep(time.Minute)
		wantEqual(t, "runs", len(w.startedRuns(full.ID)), 1)

		// A concurrency key that cannot be evaluated for the payload of a
		// schedule.
		keyed := w.workflow(workflow.Active, schedule(`"every": "1m"`), `{"concurrency": {"key": "${{ trigger.payload.a + 1 }}"}}`)
		time.Sleep(61 * time.Second)
		stored = w.trigger(keyed.ID)
		if stored.NotFired == nil || stored.NotFired.Code != "invalid_request" {
			t.Errorf("it says %+v", stored.NotFired)
		}
	})
}

// flakyStore fails for a while.
type flakyStore struct {
	trigger.Store
	broken atomic.Bool
}

func (f *flakyStore) DueTriggers(ctx context.Context, kind string, now time.Time, limit int) ([]trigger.Trigger, error) {
	if f.broken.Load() {
		return nil, errors.New("the disk is gone")
	}
	return f.Store.DueTriggers(ctx, kind, now, limit)
}

// uncertainRuns starts runs and reports a failure.
type uncertainRuns struct {
	trigger.Runs
	times atomic.Int64
}

func (u *uncertainRuns) Fire(ctx context.Context, f run.Firing) (run.Started, error) {
	if u.times.Add(1) <= 3 {
		started, err := u.Runs.Fire(ctx, f)
		return started, errors.Join(err, errors.New("the answer was lost"))
	}
	return u.Runs.Fire(ctx, f)
}

func TestScheduleStoreFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		made := w.workflow(workflow.Active, schedule(`"cron": "0 1 * * *", "jitter": "0s"`))
		st, runs := &flakyStore{Store: w.store.Triggers}, &uncertainRuns{Runs: w.runs}
		st.broken.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := scheduling.NewScheduler(st, w.programs, runs, slog.New(slog.DiscardHandler))
		go func() { _ = s.Run(ctx) }()
		sleepUntil(t, "2000-01-01T01:02:00Z")
		wantEqual(t, "runs", len(w.scheduledTimes(made.ID)), 0)
		st.broken.Store(false)
		sleepUntil(t, "2000-01-01T01:02:30Z")
		wantEqual(t, "times", w.scheduledTimes(made.ID), []string{"2000-01-01T01:00:00.000Z"})
		wantEqual(t, "attempts", runs.times.Load(), 1)
	})
}

// The limits of the plan apply as for API requests.
func TestSchedulePlanLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t)
		w.startNode()
		made := w.workflow(workflow.Active, `[{"id": "a", "type": "schedule", "cron": "0 1 * * *"}, {"id": "b", "type": "schedule", "cron": "0 1 * * *"}]`)
		sleepUntil(t, "2000-01-01T01:01:00Z")
		runs := w.startedRuns(made.ID)
		if len(runs) != 2 || runs[0].Trigger.ID == runs[1].Trigger.ID {
			t.Errorf("%d runs", len(runs))
		}
		for _, r := range runs {
			wantEqual(t, "trigger", fmt.Sprint(r.Trigger.Type, r.Trigger.Test), fmt.Sprint("schedule", false))
		}
		if err := w.flows.Delete(t.Context(), w.actor, made.ID, etag.Match{}); err == nil {
			t.Error("an active workflow was deleted")
		}
		w.setState(made.ID, workflow.Paused)
		w.must(w.flows.Delete(t.Context(), w.actor, made.ID, etag.Match{}))
		found, err := w.store.Triggers.Triggers(t.Context(), w.actor.Workspace.ID, made.ID)
		if err != nil || len(found) != 0 {
			t.Errorf("triggers of a deleted workflow: %v, %v", found, err)
		}
	})
}
