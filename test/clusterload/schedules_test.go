package clusterload_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// scheduled makes active workflows with a schedule.
func (c *cluster) scheduled(count int, every string) []string {
	c.t.Helper()
	ids := make([]string, count)
	for i := range ids {
		ids[i] = define(c.t, c.nodes[0].Client, sets("one"))
		c.nodes[0].Expect(c.t, 200, "PATCH", "/v1/workflows/"+ids[i], map[string]any{
			"triggers": []any{map[string]any{"id": "tick", "type": "schedule", "every": every}},
		})
	}
	return ids
}

// due makes all these schedules due at one moment, and has every node know it.
func (c *cluster) due(workflows []string, at time.Time) {
	c.t.Helper()
	c.exec(`UPDATE triggers SET next_at = $1 WHERE workflow_id = ANY($2)`, at.UnixMicro(), workflows)
	c.exec(`SELECT pg_notify('stepmill', $1)`, "test\nt")
}

// soon is a moment by the clock of the database, with the digits that payloads
// have.
func (c *cluster) soon() time.Time {
	c.t.Helper()
	now := c.number(`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`)
	return time.UnixMilli(int64(now)).Add(400 * time.Millisecond).UTC()
}

// times are those that schedules have fired for, with how often.
func (c *cluster) times(workflows []string) map[string]map[time.Time]int {
	c.t.Helper()
	out := map[string]map[time.Time]int{}
	for _, id := range workflows {
		out[id] = map[time.Time]int{}
	}
	for _, line := range c.texts(`SELECT workflow_id || ' ' || (payload::json->>'scheduled_at') FROM runs WHERE workflow_id = ANY($1)`, workflows) {
		id, text, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			c.t.Fatal(err)
		}
		out[id][at]++
	}
	return out
}

// fired waits until schedules have fired for that many times in all.
func (c *cluster) fired(workflows []string, times int) {
	c.t.Helper()
	within(c.t, 20*time.Second*patience, fmt.Sprintf("%d schedules have fired for %d times in all", len(workflows), times), func() bool {
		return c.number(`SELECT count(DISTINCT (workflow_id, payload)) FROM runs WHERE workflow_id = ANY($1)`, workflows) >= times
	})
}

// Schedules come due at the same moment on nodes of which one dies while it
// fires them, and another one while it has just done so. Each time of each
// schedule has one run; none is missing, and none has two.
func TestSchedulesFireOnceOnTwoNodes(t *testing.T) {
	t.Parallel()
	random := harness.Random(harness.Seed(t), 0)
	const storm, steady, every = 60, 20, 10 * time.Second
	c := start(t, 1)
	crowd, beats := c.scheduled(storm, "1d"), c.scheduled(steady, every.String())
	// These have their first time now and the next ones by themselves.
	first := c.soon()
	c.due(beats, first)

	var rounds []time.Time
	round := func() {
		t.Helper()
		at := c.soon()
		rounds = append(rounds, at)
		c.due(crowd, at)
		c.fired(crowd, storm*len(rounds))
	}
	for _, point := range []string{"before_tick_commit", "after_tick_commit"} {
		o := c.options(nil)
		// Up to 32 are on their way at a time: there are some behind these.
		o.Fail = fmt.Sprintf("%s:kill:#%d", point, 1+random.IntN(storm/4))
		dying := harness.StartWith(t, o)
		for tries := 0; !gone(dying); tries++ {
			if tries == 10 {
				t.Fatal("a node that should have died while it fired schedules fired none")
			}
			round() // the other one may be faster with all of them
		}
		if exit := dying.Wait(t, 20*time.Second); exit.Code != -1 {
			t.Fatalf("exit code %d of a node that should have died while it fired schedules", exit.Code)
		}
	}
	c.add()
	round()
	// Nobody is told of the next times: each node has to know them.
	c.fired(beats, 2*steady)
	c.settle()

	for id, times := range c.times(crowd) {
		for _, at := range rounds {
			if times[at] != 1 {
				t.Errorf("%s has %d runs for %v", id, times[at], at)
			}
		}
		if len(times) != len(rounds) {
			t.Errorf("%s has runs for %d times, want %d", id, len(times), len(rounds))
		}
	}
	c.regular(beats, first, every)
	late := c.number(`SELECT max(started_at - (extract(epoch FROM (payload::json->>'scheduled_at')::timestamptz) * 1000000)::bigint) FROM runs`)
	t.Logf("%d runs; the latest started %s after its time", c.number(`SELECT count(*) FROM runs`), ms(time.Duration(late)*time.Microsecond))
	if late := time.Duration(late) * time.Microsecond; late > 2*time.Second*patience {
		t.Errorf("a run started %v after its time", late)
	}
}

// gone tells whether a node has ended.
func gone(node *harness.Server) bool {
	select {
	case <-node.Gone():
		return true
	default:
		return false
	}
}

// regular checks that schedules have fired once for each time from the first on
// up to the next one.
func (c *cluster) regular(workflows []string, first time.Time, every time.Duration) {
	c.t.Helper()
	next := time.UnixMicro(int64(c.number(`SELECT min(next_at) FROM triggers WHERE workflow_id = ANY($1)`, workflows)))
	for id, times := range c.times(workflows) {
		for at := first; at.Before(next); at = at.Add(every) {
			if times[at] != 1 {
				c.t.Errorf("%s has %d runs for %v", id, times[at], at)
			}
			delete(times, at)
		}
		for at, n := range times { // of some that have fired since
			if n != 1 || at.Before(next) || at.Sub(first)%every != 0 {
				c.t.Errorf("%s has %d runs for %v", id, n, at)
			}
		}
	}
	if passed := next.Sub(first); passed < 2*every {
		c.t.Errorf("only %v have passed by the times of schedules", passed)
	}
}
