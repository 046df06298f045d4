package clusterload_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// newSchedules makes active workflows with a schedule.
func (c *cluster) newSchedules(count int, every string) []string {
	c.t.Helper()
	ids := make([]string, count)
	for i := range ids {
		ids[i] = flow.Define(c.t, c.nodes[0].Client, flow.Set("one", 1))
		expect(c.t, c.nodes[0].Client, 200, "PATCH", "/v1/workflows/"+ids[i], map[string]any{
			"triggers": []any{map[string]any{"id": "tick", "type": "schedule", "every": every}},
		})
	}
	return ids
}

// makeDue makes the schedules due at one moment and notifies every node.
func (c *cluster) makeDue(workflows []string, at time.Time) {
	c.t.Helper()
	c.exec(`UPDATE triggers SET next_at = $1 WHERE workflow_id = ANY($2)`, at.UnixMicro(), workflows)
	c.exec(`SELECT pg_notify('stepmill', $1)`, "test\nt")
}

// soon returns a moment in the near future by the clock of the database, with the
// precision of payloads.
func (c *cluster) soon() time.Time {
	c.t.Helper()
	now := c.number(`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`)
	return time.UnixMilli(int64(now)).Add(400 * time.Millisecond).UTC()
}

// firedTimes returns how many runs each schedule has for each of its times.
func (c *cluster) firedTimes(workflows []string) map[string]map[time.Time]int {
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

// awaitFired waits until the schedules together have fired for that many times.
func (c *cluster) awaitFired(workflows []string, times int) {
	c.t.Helper()
	harness.Eventually(c.t, fmt.Sprintf("%d schedules have fired %d times", len(workflows), times), func() bool {
		return c.number(`SELECT count(DISTINCT (workflow_id, payload)) FROM runs WHERE workflow_id = ANY($1)`, workflows) >= times
	})
}

// awaitEachFiredTwice waits until each of the schedules has fired for two times from the
// first one on.
func (c *cluster) awaitEachFiredTwice(workflows []string, first time.Time) {
	c.t.Helper()
	left := harness.AwaitZero(func() int {
		return len(workflows) - c.number(`SELECT count(*) FROM (SELECT FROM runs WHERE workflow_id = ANY($1)
			AND (payload::json->>'scheduled_at')::timestamptz >= $2 GROUP BY workflow_id HAVING count(DISTINCT payload) >= 2) f`, workflows, first)
	})
	if left > 0 {
		c.t.Fatalf("%d of %d schedules have not fired twice, unchanged for %v", left, len(workflows), harness.Timeout)
	}
}

// Many schedules are due at the same moment. One node dies while it fires them, and
// another one right after. Each schedule has exactly one run for each of its times.
func TestSchedulesFireOnceOnTwoNodes(t *testing.T) {
	t.Parallel()
	random := harness.Random(harness.Seed(t), 0)
	const every = 10 * time.Second
	burstCount, regularCount := lane.Pick(40, 60), lane.Pick(5, 20)
	c := startCluster(t, 1, shortLease)
	burst, regular := c.newSchedules(burstCount, "1d"), c.newSchedules(regularCount, every.String())
	// These are made due once and then fire at their interval.
	first := c.soon()
	c.makeDue(regular, first)

	var rounds []time.Time
	round := func() {
		t.Helper()
		at := c.soon()
		rounds = append(rounds, at)
		c.makeDue(burst, at)
		c.awaitFired(burst, burstCount*len(rounds))
	}
	for _, point := range []string{"before_tick_commit", "after_tick_commit"} {
		o := c.options([]string{"--node-name=" + point})
		// Up to 32 fire at a time, so there are more behind these.
		o.Failpoint = fmt.Sprintf("%s:kill:#%d", point, 1+random.IntN(burstCount/4))
		dying := harness.StartProcess(t, o)
		// The regular schedules may kill it before it is ready.
		harness.Eventually(t, "the node has joined", func() bool {
			return dying.Exited() || c.number(`SELECT count(*) FROM nodes WHERE name = $1`, point) > 0
		})
		for attempt := 0; !dying.Exited(); attempt++ {
			if attempt == 20 {
				t.Logf("inconclusive: the other node was always faster, and none died at %s", point)
				dying.Kill(t)
				break
			}
			round() // the other node may fire all of them
		}
	}
	c.addNode()
	round()
	// No notification announces the next times: each node has to know them.
	c.awaitEachFiredTwice(regular, first)
	c.awaitIdle()

	for id, times := range c.firedTimes(burst) {
		for _, at := range rounds {
			if times[at] != 1 {
				t.Errorf("%s has %d runs for %v, want 1", id, times[at], at)
			}
		}
		if len(times) != len(rounds) {
			t.Errorf("%s has runs for %d times, want %d", id, len(times), len(rounds))
		}
	}
	c.checkInterval(regular, first, every)
	t.Logf("%d runs in %d rounds", c.number(`SELECT count(*) FROM runs`), len(rounds))
}

// checkInterval checks that schedules fired once for each of their times. A time may
// be missing: it is skipped if the next one is due before it could fire. On a busy
// machine schedules already fire before they are made due for the first time.
func (c *cluster) checkInterval(workflows []string, first time.Time, every time.Duration) {
	c.t.Helper()
	for id, times := range c.firedTimes(workflows) {
		for at, n := range times {
			if n != 1 {
				c.t.Errorf("%s has %d runs for %v, want 1", id, n, at)
			}
			if at.After(first) && at.Sub(first)%every != 0 {
				c.t.Errorf("%s has a run for %v, which is not a multiple of %v after %v", id, at, every, first)
			}
		}
	}
}
