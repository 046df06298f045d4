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

	"github.com/stepmill/stepmill/test/harness"
)

// alter writes into the database of a server that is not running.
func alter(t *testing.T, dir, statement string, args ...any) {
	t.Helper()
	db := change(t, dir)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// A server is killed while it fires schedules that are due, just before the
// commit of one and just after. Each of them has one run for each of its times.
func TestKillDuringATick(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	for stream, point := range []string{"before_tick_commit", "after_tick_commit", "before_accept_commit", "after_accept_commit"} {
		random := harness.Random(seed, stream)
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			const schedules, rounds = 60, 3
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
				alter(t, s.Dir, `UPDATE triggers SET next_at = $1`, time.Now().UnixMicro())
				// Up to 32 are on their way at a death, so there are some left for another.
				for _, most := range []int64{10, 5} {
					awaitDeath(t, spawn(t, s.Dir, fmt.Sprintf("%s:kill:#%d", point, 1+random.Int64N(most))))
				}
				s = restart(t, s)
				awaitTicks(t, s, round*schedules)
			}
			s.Stop(t)
			tables := checkFile(t, s.Dir)
			checkTables(t, tables, "")
			const uneven = `SELECT workflow_id || ' has ' || count(*) FROM runs GROUP BY workflow_id HAVING count(*) <> $1 OR count(DISTINCT payload) <> $1`
			if wrong := texts(t, tables, uneven, rounds); len(wrong) != 0 {
				t.Errorf("each schedule has one run for each of %d times; not so: %v", rounds, wrong)
			}
		})
	}
}

// A server is killed while runs are started for events of other runs. Each event
// has one run.
func TestKillDuringAChain(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	for stream, point := range []string{"before_accept_commit", "after_accept_commit", "mid_checkpoint", "after_checkpoint"} {
		random := harness.Random(seed, stream)
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			const rounds, orders = 4, 30
			s := harness.Start(t, t.TempDir())
			source := define(t, s.Client, nil, []map[string]any{}...)
			var chain struct{ ID string }
			s.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "chain"}).Decode(t, &chain)
			s.Expect(t, 200, "PATCH", "/v1/workflows/"+chain.ID, map[string]any{
				"state": "active", "steps": []any{}, "triggers": []any{map[string]any{"id": "next", "type": "event", "events": []any{"run.succeeded"}}},
			})
			key := s.Key
			for range rounds {
				s.Stop(t)
				dying := spawn(t, s.Dir, fmt.Sprintf("%s:kill:#%d", point, 10+random.Int64N(orders)))
				if dying.Client != nil {
					dying.Key = key
					for n := 0; n < orders && !gone(dying); n++ {
						_, _ = dying.Do(t.Context(), "POST", "/v1/workflows/"+source+"/runs", payload(int64(n)))
					}
				}
				awaitDeath(t, dying)
				s = restart(t, s)
			}
			tables := openTables(t, s.Dir)
			awaitTicks(t, s, 2*number(t, tables, `SELECT count(*) FROM runs WHERE workflow_id = $1`, source))
			s.Stop(t)
			tables = checkFile(t, s.Dir)
			checkTables(t, tables, "")
			if left := number(t, tables, `SELECT count(*) FROM occasions`); left != 0 {
				t.Errorf("%d occasions are left", left)
			}
			want := texts(t, tables, `SELECT id FROM events WHERE type = 'run.succeeded' AND workflow_id <> $1 ORDER BY id`, chain.ID)
			var got []string
			for _, text := range texts(t, tables, `SELECT payload FROM runs WHERE workflow_id = $1`, chain.ID) {
				var event struct{ ID string }
				if err := json.Unmarshal([]byte(text), &event); err != nil {
					t.Fatal(err)
				}
				got = append(got, event.ID)
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("each event has one run; not so (-events +runs):\n%s", diff)
			}
			t.Logf("%d runs", number(t, tables, `SELECT count(*) FROM runs`))
		})
	}
}

// A server is killed while it starts runs for what a poll has found. Each item
// has one run.
func TestKillDuringAPoll(t *testing.T) {
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
			const old, rounds, each = 5, 3, 150
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
			for deadline := time.Now().Add(settleTime); number(t, openTables(t, s.Dir), asked) == 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the poll did not ask")
				}
			}
			for round := 1; round <= rounds; round++ {
				s.Stop(t)
				items.Add(each)
				alter(t, s.Dir, `UPDATE triggers SET next_at = $1`, time.Now().UnixMicro())
				awaitDeath(t, spawn(t, s.Dir, point+":kill:#1"))
				// It died with the poll in its hands: nobody else asks for a while.
				alter(t, s.Dir, `UPDATE triggers SET next_at = $1`, time.Now().UnixMicro())
				s = restart(t, s, egress)
				awaitTicks(t, s, round*each)
			}
			s.Stop(t)
			tables := checkFile(t, s.Dir)
			checkTables(t, tables, "")
			found := texts(t, tables, `SELECT payload FROM runs GROUP BY payload`)
			for n := range int64(old) {
				if slices.Contains(found, fmt.Sprintf(`{"n":%d}`, n)) {
					t.Errorf("item %d was there before", n)
				}
			}
			if len(found) != rounds*each {
				t.Errorf("%d of %d items have a run", len(found), rounds*each)
			}
		})
	}
}

// awaitTicks waits until there are so many runs, and then for one too many.
func awaitTicks(t *testing.T, s *harness.Server, want int) {
	t.Helper()
	tables := openTables(t, s.Dir)
	deadline := time.Now().Add(settleTime)
	for number(t, tables, `SELECT count(*) FROM runs`) < want {
		if time.Now().After(deadline) {
			t.Fatalf("%d runs, want %d", number(t, tables, `SELECT count(*) FROM runs`), want)
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	if got := number(t, tables, `SELECT count(*) FROM runs`); got != want {
		t.Fatalf("%d runs, want %d", got, want)
	}
}
