package crash_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// execOffline executes a statement in the database of a stopped server.
func execOffline(t *testing.T, dir, statement string, args ...any) {
	t.Helper()
	db := openForWriting(t, dir)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// A server is killed while it fires due schedules, right before or after a commit. Each
// schedule has one run for each of its times.
func TestKillDuringSchedules(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	for stream, point := range []string{"before_tick_commit", "after_tick_commit", "before_accept_commit", "after_accept_commit"} {
		random := harness.Random(seed, stream)
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			const schedules = 60
			rounds := lane.Pick(1, 3)
			s := harness.Start(t, t.TempDir())
			var made struct{ ID string }
			for range schedules {
				s.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "ticks"}).Decode(t, &made)
				s.Expect(t, 200, "PATCH", "/v1/workflows/"+made.ID, map[string]any{
					"state": "active", "steps": []any{},
					"triggers": []any{map[string]any{"id": "tick", "type": "schedule", "every": "1d", "missed": "latest"}},
				})
			}
			for round := 1; round <= rounds; round++ {
				s.Stop(t)
				execOffline(t, s.Dir, `UPDATE triggers SET next_at = $1`, time.Now().UnixMicro())
				// Up to 32 fire at a time, so some are left for the next death.
				for _, most := range []int64{10, 5} {
					awaitDeath(t, startDoomed(t, s.Dir, fmt.Sprintf("%s:kill:#%d", point, 1+random.Int64N(most))))
				}
				s = restart(t, s)
				awaitRuns(t, s, round*schedules)
			}
			s.Stop(t)
			db := openCopy(t, s.Dir)
			checkTables(t, db, "")
			const uneven = `SELECT workflow_id || ' has ' || count(*) FROM runs GROUP BY workflow_id HAVING count(*) <> $1 OR count(DISTINCT payload) <> $1`
			if wrong := tables.Texts(t, db, uneven, rounds); len(wrong) != 0 {
				t.Errorf("INVARIANT: schedules without exactly one run for each of %d times: %v", rounds, wrong)
			}
		})
	}
}

// A server is killed while event triggers start runs. Each event has one run.
func TestKillDuringEventTriggers(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	for stream, point := range []string{"before_accept_commit", "after_accept_commit", "mid_checkpoint", "after_checkpoint"} {
		random := harness.Random(seed, stream)
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			const minStarts = 30
			rounds := lane.Pick(1, 4)
			s := harness.Start(t, t.TempDir())
			source := flow.Define(t, s.Client, []map[string]any{}...)
			var chain struct{ ID string }
			s.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "chain"}).Decode(t, &chain)
			s.Expect(t, 200, "PATCH", "/v1/workflows/"+chain.ID, map[string]any{
				"state": "active", "steps": []any{}, "triggers": []any{map[string]any{"id": "next", "type": "event", "events": []any{"run.succeeded"}}},
			})
			key := s.Key
			for range rounds {
				s.Stop(t)
				dying := startDoomed(t, s.Dir, fmt.Sprintf("%s:kill:#%d", point, 10+random.Int64N(minStarts)))
				if dying.Client != nil {
					dying.Key = key
					// Starts for several events may share a commit, so there is
					// no fixed number.
					for n := int64(0); !dying.Exited() && !t.Failed(); n++ {
						_, _ = dying.Do(t.Context(), "POST", "/v1/workflows/"+source+"/runs", payload(n))
					}
				}
				awaitDeath(t, dying)
				s = restart(t, s)
			}
			db := openTables(t, s.Dir)
			awaitRuns(t, s, 2*tables.Number(t, db, `SELECT count(*) FROM runs WHERE workflow_id = $1`, source))
			awaitNone(t, s.Dir, "events are pending", `SELECT count(*) FROM pending_triggers`)
			s.Stop(t)
			db = openCopy(t, s.Dir)
			checkTables(t, db, "")
			want := tables.Texts(t, db, `SELECT id FROM events WHERE type = 'run.succeeded' AND workflow_id <> $1 ORDER BY id`, chain.ID)
			var got []string
			for _, text := range tables.Texts(t, db, `SELECT payload FROM runs WHERE workflow_id = $1`, chain.ID) {
				var event struct{ ID string }
				if err := json.Unmarshal([]byte(text), &event); err != nil {
					t.Fatal(err)
				}
				got = append(got, event.ID)
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("INVARIANT: events with a run (-want +got):\n%s", diff)
			}
			t.Logf("%d runs", tables.Number(t, db, `SELECT count(*) FROM runs`))
		})
	}
}

// A server is killed while it starts runs for the items of a poll. Each item has one run.
func TestKillDuringPoll(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before_poll_commit", "after_poll_commit", "before_accept_commit", "after_accept_commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			var items atomic.Int64
			feed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				list := []any{}
				for n := range items.Load() {
					list = append(list, map[string]any{"n": n})
				}
				_ = json.NewEncoder(w).Encode(list)
			}))
			t.Cleanup(feed.Close)
			const old, each = 5, 150
			rounds := lane.Pick(1, 3)
			items.Store(old)
			s := harness.Start(t, t.TempDir(), egress)
			var made struct{ ID string }
			s.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "polls"}).Decode(t, &made)
			s.Expect(t, 200, "PATCH", "/v1/workflows/"+made.ID, map[string]any{
				"state": "active", "steps": []any{}, "triggers": []any{map[string]any{
					"id": "feed", "type": "poll", "every": "1d", "request": map[string]any{"url": feed.URL}, "items": "response.body", "key": "item.n",
				}},
			})
			const asked = `SELECT count(*) FROM triggers WHERE state IS NOT NULL`
			harness.Eventually(t, "the poll has sent a request", func() bool { return number(t, s.Dir, asked) > 0 })
			for round := 1; round <= rounds; round++ {
				s.Stop(t)
				items.Add(each)
				execOffline(t, s.Dir, `UPDATE triggers SET next_at = $1`, time.Now().UnixMicro())
				awaitDeath(t, startDoomed(t, s.Dir, point+":kill:#1"))
				// The dead server had claimed the poll, which delays the next one.
				execOffline(t, s.Dir, `UPDATE triggers SET next_at = $1`, time.Now().UnixMicro())
				s = restart(t, s, egress)
				awaitRuns(t, s, round*each)
			}
			s.Stop(t)
			db := openCopy(t, s.Dir)
			checkTables(t, db, "")
			found := tables.Texts(t, db, `SELECT payload FROM runs GROUP BY payload`)
			for n := range int64(old) {
				if slices.Contains(found, fmt.Sprintf(`{"n":%d}`, n)) {
					t.Errorf("item %d has a run although it is older than the trigger", n)
				}
			}
			if len(found) != rounds*each {
				t.Errorf("INVARIANT: %d of %d items have a run", len(found), rounds*each)
			}
		})
	}
}

// awaitRuns waits until there are that many runs and all of them have ended.
func awaitRuns(t *testing.T, s *harness.Server, want int) {
	t.Helper()
	count := func() int { return number(t, s.Dir, `SELECT count(*) FROM runs`) }
	if left := harness.AwaitZero(func() int { return want - count() }); left > 0 {
		t.Fatalf("%d runs, want %d", want-left, want)
	}
	awaitNone(t, s.Dir, "runs have not ended", `SELECT count(*) FROM run_queue`)
	if got := count(); got != want {
		t.Fatalf("%d runs, want %d", got, want)
	}
}
