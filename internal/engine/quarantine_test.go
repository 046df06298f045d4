package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// live starts an engine that a test can crash.
func (w *world) live() (*node, *hooked) {
	st := &hooked{Store: w.store.Leases}
	n := w.start(st)
	synctest.Wait()
	return n, st
}

// gated returns a step that runs until a test opens its gate.
func gated(name string) string {
	return fmt.Sprintf(`{"id": %q, "timeout": "15m", "uses": "test.effect", "with": {"call": %q, "gate": %q}}`, name, name, name)
}

// TestRunThatCrashesProcessIsQuarantined is running each time the process crashes.
func TestRunThatCrashesProcessIsQuarantined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bad := w.startRun(w.workflow(`[`+gated("bad")+`]`), "{}")
		waits := w.startRun(w.workflow(`[{"id": "rest", "uses": "flow.wait", "with": {"for": "5d"}}]`), "{}")
		for generation := 1; generation <= 5; generation++ {
			n, st := w.live()
			if got := w.effects.count("bad"); got != generation {
				t.Fatalf("engine %d: executed %d times", generation, got)
			}
			if got := w.get(bad).Crashes; got != generation-1 {
				t.Errorf("engine %d: the run has %d crashes", generation, got)
			}
			w.crash(n, st, bad)
		}
		w.live()
		d := w.get(bad)
		if d.Status != run.Failed || d.Error.Code != run.CodeQuarantined || w.effects.count("bad") != 5 || d.Steps[0].Status != run.StepCancelled {
			t.Fatalf("%s after %d calls: %+v", d.Status, w.effects.count("bad"), d.Error)
		}
		// A retry executes it again.
		again, err := w.runs.Retry(context.WithoutCancel(t.Context()), w.actor, bad, run.RetryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.effects.open("bad")
		if d := w.endOf(again.ID); d.Status != run.Succeeded || w.effects.count("bad") != 6 {
			t.Errorf("%s after %d calls: %+v", d.Status, w.effects.count("bad"), d.Error)
		}
		if d := w.endOf(waits); d.Status != run.Succeeded {
			t.Errorf("the one that waited: %+v", d.Error)
		}
	})
}

// TestIsolatedRunsOneAtATime has two runs that were running when the process crashed
// twice. From then on only one of them runs at a time, to find the culprit.
func TestIsolatedRunsOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		names := map[string]string{}
		for _, name := range []string{"one", "two"} {
			names[name] = w.startRun(w.workflow(`[`+gated(name)+`]`), "{}")
		}
		for range 2 {
			n, st := w.live()
			w.crash(n, st, names["one"], names["two"])
		}
		begun := func() int { return w.effects.count("one") + w.effects.count("two") }
		if begun() != 4 {
			t.Fatalf("%d calls", begun())
		}
		w.live()
		if begun() != 5 {
			t.Fatalf("%d isolated runs are running", begun()-4)
		}
		first, second := "one", "two"
		if w.effects.count("two") == 3 {
			first, second = second, first
		}
		if held := w.get(names[second]).WaitingFor(); held == nil || held.StepID != "" {
			t.Errorf("the other waits for %+v", held)
		}
		fresh := w.startRun(w.workflow(`[{"id": "a", "uses": "test.effect", "with": {}}]`), "{}")
		synctest.Wait()
		if d := w.get(fresh); d.Status != run.Succeeded {
			t.Errorf("a run that is not isolated is %s", d.Status)
		}
		w.effects.open(first)
		synctest.Wait()
		if w.effects.count(second) != 3 {
			t.Error("the other was not executed after the first had ended")
		}
		w.effects.open(second)
		for name, id := range names {
			if d := w.endOf(id); d.Status != run.Succeeded {
				t.Errorf("%s: %+v", name, d.Error)
			}
		}
	})
}

// TestRunsWithProgressAreNotQuarantined has runs that make progress between crashes: one
// finishes a step each time, one finishes an attempt, one is only queued.
func TestRunsWithProgressAreNotQuarantined(t *testing.T) {
	t.Parallel()
	const generations = 12
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		steps := gated("s0")
		for i := 1; i <= generations; i++ {
			steps += "," + gated(fmt.Sprint("s", i))
		}
		walks := w.startRun(w.workflow(`[`+steps+`]`), "{}")
		tries := w.startRun(w.workflow(`[{"id": "a", "timeout": "30s", "retry": {"max_attempts": 20, "initial": "1s", "max_delay": "1s"}, "uses": "test.effect", "with": {"call": "tries", "gate": "tries"}}]`), "{}")
		for generation := range generations {
			n, st := w.live()
			w.effects.open(fmt.Sprint("s", generation))
			// By now the attempt has ended and the next one is running.
			time.Sleep(40 * time.Second)
			for name, id := range map[string]string{"walks": walks, "tries": tries} {
				if d := w.get(id); d.Status != run.Running || d.Crashes != 0 {
					t.Fatalf("engine %d: %s is %s with %d crashes: %+v", generation, name, d.Status, d.Crashes, d.Error)
				}
			}
			w.crash(n, st, walks, tries)
		}
		w.effects.open(fmt.Sprint("s", generations))
		w.effects.open("tries")
		w.live()
		for name, id := range map[string]string{"walks": walks, "tries": tries} {
			if d := w.endOf(id); d.Status != run.Succeeded {
				t.Errorf("%s: %+v", name, d.Error)
			}
		}
	})
}

// TestCorruptRowFailsOnlyItsRun corrupts one of fifty runs in the store.
func TestCorruptRowFailsOnlyItsRun(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"payload": `UPDATE runs SET payload = '{"broken' WHERE id = $1`,
		"output":  `UPDATE steps SET output = 'not json' WHERE run_id = $1 AND path = 'a'`,
		"input":   `UPDATE steps SET input = '{"for": ' WHERE run_id = $1 AND path = 'rest'`,
		"answer":  `UPDATE steps SET answer = '{' WHERE run_id = $1 AND path = 'rest'`,
		"path":    `UPDATE steps SET path = 'a[0].b' WHERE run_id = $1 AND path = 'a'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(w.store.Leases)
				flow := w.workflow(`[
					{"id": "a", "uses": "data.set", "with": {"values": {"n": "${{ trigger.payload.n }}"}}},
					{"id": "rest", "uses": "flow.wait", "with": {"for": "1h"}},
					{"id": "b", "uses": "data.set", "with": {"values": {"n": "${{ steps.a.output.n }}"}}}]`)
				var ids []string
				for i := range 50 {
					ids = append(ids, w.startRun(flow, fmt.Sprintf(`{"n": %d}`, i)))
				}
				synctest.Wait()
				err := w.db.Write(context.WithoutCancel(t.Context()), func(c database.Conn) error {
					_, err := c.Exec(damage, ids[17])
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour + 10*time.Second)
				for i, id := range ids {
					switch d := w.get(id); {
					case i == 17 && (d.Status != run.Failed || d.Error.Code != run.CodeCorruptState):
						t.Errorf("the corrupt run is %s: %+v", d.Status, d.Error)
					case i != 17 && d.Status != run.Succeeded:
						t.Errorf("run %d is %s: %+v", i, d.Status, d.Error)
					}
				}
			})
		})
	}
}
