package uid_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/uid"
)

func TestIDsAreValidAndOrdered(t *testing.T) {
	t.Parallel()
	var source uid.Source
	at := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	last := ""
	for i := range 20_000 {
		moment := at
		if i%7 == 0 {
			moment = at.Add(-time.Hour) // a clock that was set back
		}
		if i%1000 == 0 {
			at = at.Add(time.Millisecond)
		}
		id := source.New(uid.Run, moment)
		if !uid.Valid(uid.Run, id) {
			t.Fatalf("%q is not valid", id)
		}
		if id <= last {
			t.Fatalf("id %d: %q is not after %q", i, id, last)
		}
		last = id
	}
}

// A process generates its node id before it knows the clock of the database, from
// a local clock that may be far ahead.
func TestKindsAreOrderedIndependently(t *testing.T) {
	t.Parallel()
	var source uid.Source
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	source.New(uid.Node, now.Add(10*time.Minute))
	for _, kind := range []uid.Kind{uid.Run, uid.Request, uid.Run} {
		if id := source.New(kind, now); id < uid.LowerBound(kind, now) || id >= uid.LowerBound(kind, now.Add(time.Millisecond)) {
			t.Errorf("%q does not carry the time it was generated for", id)
		}
	}
}

func TestIDsAreUniqueAcrossGoroutines(t *testing.T) {
	t.Parallel()
	var (
		mu   sync.Mutex
		seen = map[string]bool{}
		wg   sync.WaitGroup
	)
	for range 8 {
		wg.Go(func() {
			for range 2_000 {
				id := uid.New(uid.Event)
				mu.Lock()
				if seen[id] {
					t.Errorf("%q was generated twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	var source uid.Source
	early := source.New(uid.Workflow, time.UnixMilli(1_000_000_000_000))
	late := source.New(uid.Workflow, time.UnixMilli(1_800_000_000_000))
	if early >= late {
		t.Fatalf("%q does not sort before %q", early, late)
	}
}

func TestValidRejectsOtherForms(t *testing.T) {
	t.Parallel()
	good := uid.New(uid.Run)
	body := strings.TrimPrefix(good, "run_")
	for _, id := range []string{
		"", "run_", "wf_" + body, "run" + body, good + "0", good[:len(good)-1],
		strings.ToUpper(good), "run_" + strings.Repeat("z", 26), "run_" + body[:25] + "u", "run_" + body[:25] + "'",
	} {
		if uid.Valid(uid.Run, id) {
			t.Errorf("%q was accepted as a run id", id)
		}
	}
	if !uid.Valid(uid.Run, good) {
		t.Errorf("%q was rejected", good)
	}
}

func TestLowerBound(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 11, 15, 9, 30, 0, int(5*time.Millisecond), time.UTC)
	idAt := func(at time.Time) string { return (&uid.Source{}).New(uid.Run, at) }
	for range 1000 {
		least := uid.LowerBound(uid.Run, moment)
		if idAt(moment) < least || idAt(moment.Add(999*time.Microsecond)) < least || idAt(moment.Add(-time.Nanosecond)) >= least {
			t.Fatalf("%s does not separate earlier from later ids", least)
		}
		if idAt(moment.Add(999*time.Microsecond)) >= uid.LowerBound(uid.Run, moment.Add(time.Nanosecond)) {
			t.Fatal("a fraction of a millisecond is not rounded up")
		}
	}
	first := uid.LowerBound(uid.Run, time.Time{})
	if !uid.Valid(uid.Run, first) || first > uid.LowerBound(uid.Run, time.UnixMilli(0)) || uid.LowerBound(uid.Run, time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)) <= idAt(moment) {
		t.Error("the bounds of the earliest and latest times are wrong")
	}
}
