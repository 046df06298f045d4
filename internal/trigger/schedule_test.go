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
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Time begins at 2000-01-01T00:00:00Z in all of these tests.

func schedule(members string) string { return `[{"id": "s", "type": "schedule", ` + members + `}]` }

// Schedules fire once for each of their times, and say for which.
func TestASchedule(t *testing.T) {
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
				w := newWorld(t)
				if tc.from != "" {
					sleepUntil(t, tc.from)
				}
				w.start()
				made := w.workflow(workflow.Active, schedule(tc.members))
				sleepUntil(t, tc.to)
				same(t, "times", w.times(made.ID), strings.Fields(tc.want))
			})
		})
	}
}

// Each run starts a few seconds after its time, always the same for one trigger.
func TestJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		moved := map[time.Duration]bool{}
		var ids []string
		for range 20 {
			ids = append(ids, w.workflow(workflow.Active, schedule(`"cron": "0 * * * *"`)).ID)
		}
		exact := w.workflow(workflow.Active, schedule(`"cron": "0 * * * *", "jitter": "0s"`))
		time.Sleep(3*time.Hour + time.Minute)
		for _, id := range ids {
			for i, r := range w.started(id) {
				late := r.StartedAt.Sub(time.Date(2000, 1, 1, i+1, 0, 0, 0, time.UTC))
				if late < 0 || late >= 5*time.Second {
					t.Errorf("started %s late", late)
				}
				moved[late] = true
			}
			same(t, "runs", len(w.started(id)), 3)
		}
		if len(moved) < 15 || len(moved) > 20 {
			t.Errorf("%d different delays of 20 triggers", len(moved))
		}
		for i, r := range w.started(exact.ID) {
			same(t, "start", r.StartedAt, time.Date(2000, 1, 1, i+1, 0, 0, 0, time.UTC))
		}
	})
}

// A thousand schedules of the same minute, and three processes: each fires once.
func TestAThousandSchedulesOfTheSameMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var ids []string
		for range 1000 {
			ids = append(ids, w.workflow(workflow.Active, schedule(`"cron": "0 * * * *", "missed": "latest"`)).ID)
		}
		for range 3 {
			w.start()
		}
		time.Sleep(61 * time.Minute)
		check := func(want int) {
			t.Helper()
			for _, id := range ids {
				if runs := w.times(id); len(runs) != want {
					t.Fatalf("%s has runs for %v, want %d", id, runs, want)
				}
			}
		}
		check(1)
		// Stopped for six hours: each catches up once, also after another restart.
		w.halt()
		time.Sleep(6 * time.Hour)
		for range 2 {
			w.start()
			time.Sleep(time.Second)
			w.halt()
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
		{"skip is the default", `"cron": "0 * * * *"`, 3*time.Hour + 30*time.Minute, "", "nothing could fire from 2000-01-01T01:00:00.000Z to 2000-01-01T03:00:00.000Z, and that is too long ago"},
		{"skip of one", `"cron": "0 1 * * *", "missed": "skip"`, 2 * time.Hour, "", "nothing could fire at 2000-01-01T01:00:00.000Z, and that is too long ago"},
		{"a little late is not missed", `"cron": "0 1 * * *"`, time.Hour + 4*time.Minute, "2000-01-01T01:00:00.000Z", ""},
		{"latest makes up for the last", `"cron": "0 * * * *", "missed": "latest"`, 3*time.Hour + 30*time.Minute, "2000-01-01T03:00:00.000Z",
			"nothing could fire from 2000-01-01T01:00:00.000Z on; of the times that passed only the latest is made up for"},
		{"latest of one", `"cron": "0 1 * * *", "missed": "latest"`, 12 * time.Hour, "2000-01-01T01:00:00.000Z", ""},
		{"an interval keeps its beat", `"every": "1h", "missed": "latest"`, 3*time.Hour + 30*time.Minute, "2000-01-01T03:00:00.000Z",
			"nothing could fire from 2000-01-01T01:00:00.000Z on; of the times that passed only the latest is made up for"},
		{"every minute goes on at once", `"cron": "* * * * *"`, 90*time.Minute + 10*time.Second, "2000-01-01T01:30:00.000Z",
			"nothing could fire from 2000-01-01T00:01:00.000Z on; of the times that passed only the latest is made up for"},
		{"a year of minutes", `"cron": "* * * * *", "missed": "latest"`, 365*24*time.Hour + 10*time.Second, "2000-12-31T00:00:00.000Z",
			"nothing could fire from 2000-01-01T00:01:00.000Z on; of the times that passed only the latest is made up for"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				made := w.workflow(workflow.Active, schedule(tc.members+`, "jitter": "0s"`))
				time.Sleep(tc.stopped)
				w.start()
				time.Sleep(time.Second)
				same(t, "times", w.times(made.ID), strings.Fields(tc.want))
				kept := w.trigger(made.ID)
				if kept.NextAt == nil || !kept.NextAt.After(clock.Now()) {
					t.Errorf("it fires next at %v", kept.NextAt)
				}
				switch {
				case tc.idle == "" && kept.Idle != nil:
					t.Errorf("it says %+v", kept.Idle)
				case tc.idle != "" && (kept.Idle == nil || kept.Idle.Code != trigger.CodeMissed || kept.Idle.Message != tc.idle):
					t.Errorf("it says %+v, want %s", kept.Idle, tc.idle)
				}
				before := len(w.times(made.ID))
				w.halt()
				w.start()
				time.Sleep(time.Second)
				same(t, "runs after another start", len(w.times(made.ID)), before)
			})
		})
	}
}

func TestEditsOfASchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		made := w.workflow(workflow.Draft, schedule(`"cron": "0 12 * * *", "jitter": "0s"`))
		same(t, "time of a draft", w.trigger(made.ID).NextAt, (*time.Time)(nil))
		w.setState(made.ID, workflow.Active)
		sleepUntil(t, "2000-01-01T11:00:00Z")

		// An edit of something else changes nothing.
		other := "Renamed"
		w.update(made.ID, workflow.Patch{Name: &other, Settings: &workflow.SettingsPatch{SetTimeout: true, Timeout: "5m"}})
		sleepUntil(t, "2000-01-01T12:30:00Z")
		same(t, "times", w.times(made.ID), []string{"2000-01-01T12:00:00.000Z"})

		// Another time counts from then on, sooner or later.
		w.update(made.ID, w.patch(schedule(`"cron": "45 12 * * *", "jitter": "0s"`)))
		sleepUntil(t, "2000-01-01T13:00:00Z")
		same(t, "times", w.times(made.ID)[1:], []string{"2000-01-01T12:45:00.000Z"})
		w.update(made.ID, w.patch(schedule(`"cron": "0 20 * * *", "jitter": "0s"`)))

		// What passes during a pause is gone.
		sleepUntil(t, "2000-01-01T19:59:59Z")
		w.setState(made.ID, workflow.Paused)
		sleepUntil(t, "2000-01-01T20:00:01Z")
		w.setState(made.ID, workflow.Active)
		sleepUntil(t, "2000-01-02T20:00:01Z")
		same(t, "times", w.times(made.ID)[2:], []string{"2000-01-02T20:00:00.000Z"})

		// Runs are of the version that is current.
		runs := w.started(made.ID)
		if first, last := runs[0].WorkflowVersion, runs[len(runs)-1].WorkflowVersion; last <= first {
			t.Errorf("versions %d and then %d", first, last)
		}
		w.update(made.ID, w.patch(`[]`))
		sleepUntil(t, "2000-01-04T00:00:00Z")
		same(t, "runs", len(w.times(made.ID)), 3)
	})
}

// A run that may not start is not lost without a word.
func TestARefusedScheduleSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		made := w.workflow(workflow.Active, schedule(`"every": "1m"`), `{"concurrency": {"on_limit": "drop"}}`)
		time.Sleep(61 * time.Second)
		same(t, "runs", len(w.started(made.ID)), 1)
		time.Sleep(time.Minute)
		kept := w.trigger(made.ID)
		if kept.Idle == nil || kept.Idle.Code != "concurrency_limit" || !kept.Idle.At.After(*kept.FiredAt) {
			t.Errorf("it says %+v", kept.Idle)
		}
		same(t, "runs", len(w.started(made.ID)), 1)

		w.full.Store(true)
		full := w.workflow(workflow.Active, schedule(`"every": "1m"`))
		time.Sleep(61 * time.Second)
		kept = w.trigger(full.ID)
		if kept.Idle == nil || kept.Idle.Code != "run_queue_full" {
			t.Errorf("it says %+v", kept.Idle)
		}
		w.full.Store(false)
		time.Sleep(time.Minute)
		same(t, "runs", len(w.started(full.ID)), 1)

		// A key that cannot be worked out from what a schedule brings.
		keyed := w.workflow(workflow.Active, schedule(`"every": "1m"`), `{"concurrency": {"key": "${{ trigger.payload.a + 1 }}"}}`)
		time.Sleep(61 * time.Second)
		kept = w.trigger(keyed.ID)
		if kept.Idle == nil || kept.Idle.Code != "invalid_request" {
			t.Errorf("it says %+v", kept.Idle)
		}
	})
}

// flaky is a store that is out of order for a while.
type flaky struct {
	trigger.Store
	broken atomic.Bool
}

func (f *flaky) DueTriggers(ctx context.Context, kind string, now time.Time, limit int) ([]trigger.Trigger, error) {
	if f.broken.Load() {
		return nil, errors.New("the disk is gone")
	}
	return f.Store.DueTriggers(ctx, kind, now, limit)
}

// unsure starts runs and says that it did not work.
type unsure struct {
	trigger.Runs
	times atomic.Int64
}

func (u *unsure) Fire(ctx context.Context, f run.Firing) (run.Started, error) {
	if u.times.Add(1) <= 3 {
		started, err := u.Runs.Fire(ctx, f)
		return started, errors.Join(err, errors.New("the answer was lost"))
	}
	return u.Runs.Fire(ctx, f)
}

func TestAStoreThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		made := w.workflow(workflow.Active, schedule(`"cron": "0 1 * * *", "jitter": "0s"`))
		st, runs := &flaky{Store: w.store}, &unsure{Runs: w.runs}
		st.broken.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := trigger.NewScheduler(st, w.plans, runs, slog.New(slog.DiscardHandler))
		go func() { _ = s.Run(ctx) }()
		sleepUntil(t, "2000-01-01T01:02:00Z")
		same(t, "runs", len(w.times(made.ID)), 0)
		st.broken.Store(false)
		sleepUntil(t, "2000-01-01T01:02:30Z")
		same(t, "times", w.times(made.ID), []string{"2000-01-01T01:00:00.000Z"})
		same(t, "attempts", runs.times.Load(), 1)
	})
}

// Another workspace with the smallest plan is bounded like by requests.
func TestSchedulesAreOnePerTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		made := w.workflow(workflow.Active, `[{"id": "a", "type": "schedule", "cron": "0 1 * * *"}, {"id": "b", "type": "schedule", "cron": "0 1 * * *"}]`)
		sleepUntil(t, "2000-01-01T01:01:00Z")
		runs := w.started(made.ID)
		if len(runs) != 2 || runs[0].Trigger.ID == runs[1].Trigger.ID {
			t.Errorf("%d runs", len(runs))
		}
		for _, r := range runs {
			same(t, "trigger", fmt.Sprint(r.Trigger.Type, r.Trigger.Test), fmt.Sprint("schedule", false))
		}
		if err := w.flows.Delete(t.Context(), w.actor, made.ID, workflow.Match{}); err == nil {
			t.Error("an active workflow was deleted")
		}
		w.setState(made.ID, workflow.Paused)
		w.must(w.flows.Delete(t.Context(), w.actor, made.ID, workflow.Match{}))
		found, err := w.store.Triggers(t.Context(), w.actor.Workspace.ID, made.ID)
		if err != nil || len(found) != 0 {
			t.Errorf("triggers of a deleted workflow: %v, %v", found, err)
		}
	})
}
