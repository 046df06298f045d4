package crash_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// Runs share two places. Over kills and stops never more than two are under way,
// those that wait come in the order in which they started, and none is left
// behind.
func TestSharedPlacesSurviveKills(t *testing.T) {
	t.Parallel()
	const rounds, perRound, limit = 6, 8, 2
	random := harness.Random(harness.Seed(t), 0)
	outside := sink.New(t)
	var mu sync.Mutex
	var most int
	outside.Begun = func(all []*sink.Call) {
		runs := map[string]bool{}
		for _, c := range all {
			if c.Ended.IsZero() {
				runs[c.Run()] = true
			}
		}
		mu.Lock()
		defer mu.Unlock()
		most = max(most, len(runs))
	}
	s := harness.Start(t, t.TempDir(), egress)
	settings := map[string]any{"concurrency": map[string]any{"limit": limit, "on_limit": "queue"}}
	id := define(t, s.Client, settings, calls("one", outside.URL+"?ms=20"), calls("two", outside.URL+"?ms=20"))

	var runs []string
	for round := range rounds {
		for n := range int64(perRound) {
			runs = append(runs, startRun(t, s.Client, id, n).ID)
		}
		time.Sleep(time.Duration(random.Int64N(int64(150 * time.Millisecond))))
		if round%2 == 0 {
			s.Kill(t)
		} else {
			s.Stop(t)
		}
		outside.Quiet(t)
		checkTables(t, checkFile(t, s.Dir), "")
		s = restart(t, s, egress)
	}
	for _, run := range runs {
		if end := awaitEnd(t, s.Client, run, settleTime); end.Status != succeeded {
			t.Errorf("run %s is %s: %+v", run, end.Status, end.Error)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if most != limit {
		t.Errorf("at most %d runs were under way at a time, want %d", most, limit)
	}
	var order []string
	for _, c := range outside.Seen(func(*sink.Call) bool { return true }) {
		if !slices.Contains(order, c.Run()) {
			order = append(order, c.Run())
		}
	}
	// Two that have their places at the same time may call in either order.
	for i, run := range order {
		if at := slices.Index(runs, run); at-i >= limit || i-at >= limit {
			t.Errorf("run %d came as number %d", at, i)
		}
	}
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}
