package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
)

func newNode(id string) node.Node {
	return node.Node{ID: id, Name: "a machine", Version: "v1", Role: node.RoleServe, StartedAt: clock.Now()}
}

func beat(t *testing.T, db *postgres.DB, id string, life time.Duration) node.Heartbeat {
	t.Helper()
	b, err := db.Heartbeat(t.Context(), newNode(id), 10, life, clock.Current())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func expired(t *testing.T, db *postgres.DB) []string {
	t.Helper()
	expiredNodes, err := db.Expired(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(expiredNodes)
	return expiredNodes
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgrestest.New(t))
	b := beat(t, db, "a", time.Minute)
	if b.Nodes != 1 || b.Capacity != 10 || b.NextExpiry != nil || b.Dead {
		t.Errorf("alone: %+v", b)
	}
	exec(t, db, `DELETE FROM recovery`) // as after a crash
	beat(t, db, "b", -time.Second)      // it is late from the start
	if n := number(t, db, `SELECT count(*) FROM recovery`); n != 1 {
		t.Error("a heartbeat did not insert the recovery mark")
	}
	b = beat(t, db, "a", time.Minute)
	if b.Nodes != 2 || b.Capacity != 20 || b.NextExpiry == nil || b.NextExpiry.After(b.Now) {
		t.Errorf("with another: %+v", b)
	}
	if b := beat(t, db, "b", time.Minute); b.Dead {
		t.Error("a late node is dead although it was not marked")
	}
	beat(t, db, "b", -time.Second)
	if expiredNodes := expired(t, db); !slices.Equal(expiredNodes, []string{"b"}) {
		t.Errorf("expired: %v", expiredNodes)
	}
	if b := beat(t, db, "b", time.Minute); !b.Dead {
		t.Error("a node that was marked as dead is alive again")
	}
	if expiredNodes := expired(t, db); !slices.Equal(expiredNodes, []string{"b"}) {
		t.Errorf("expired, but not yet forgotten: %v", expiredNodes)
	}
	alive, err := db.Nodes(t.Context())
	if err != nil || len(alive) != 1 || alive[0].ID != "a" || alive[0].Name != "a machine" {
		t.Errorf("alive: %+v, %v", alive, err)
	}
	exec(t, db, `INSERT INTO webhook_owners (webhook_id, node) VALUES ('w', 'b'), ('v', 'a')`)
	if removed, err := db.Forget(t.Context(), "b", river.ReleaseJobs); err != nil || !removed {
		t.Fatal(removed, err)
	}
	if n := number(t, db, `SELECT count(*) FROM webhook_owners`); n != 1 {
		t.Errorf("%d webhooks are owned", n)
	}
	if b := beat(t, db, "b", time.Minute); b.Dead || b.Nodes != 2 {
		t.Errorf("a forgotten node came back: %+v", b)
	}
	if removed, err := db.Forget(t.Context(), "b", river.ReleaseJobs); err != nil || removed {
		t.Fatal(removed, err)
	}
	if b := beat(t, db, "a", time.Minute); b.Nodes != 2 {
		t.Errorf("a live node was forgotten: %+v", b)
	}
}

// TestForgetRequeuesJobs checks that jobs a node had fetched when it died are
// available to others at once.
func TestForgetRequeuesJobs(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgrestest.New(t))
	for _, by := range []string{"{b}", "{a,b}", "{b,a}"} {
		exec(t, db, `INSERT INTO `+river.Schema+`.river_job (kind, args, max_attempts, state, attempted_at, attempted_by, attempt)
			VALUES ('wake_up', '{}', 10, 'running', now(), $1::text::text[], 1)`, by)
	}
	count := func(state string) int {
		return number(t, db, `SELECT count(*) FROM `+river.Schema+`.river_job WHERE state = $1::text::`+river.Schema+`.river_job_state`, state)
	}
	beat(t, db, "b", time.Minute)
	if _, err := db.Forget(t.Context(), "b", river.ReleaseJobs); err != nil || count("running") != 3 {
		t.Errorf("a live node lost its jobs: %v", err)
	}
	if err := db.Retire(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Forget(t.Context(), "b", river.ReleaseJobs); err != nil || count("running") != 1 || count("available") != 2 {
		t.Errorf("%d jobs are available, %d are running: %v", count("available"), count("running"), err)
	}
}

// TestTerminateSessions checks that the transaction of a node that stalls while
// sending, which no database timeout covers, is terminated once the node is dead,
// and not before.
func TestTerminateSessions(t *testing.T) {
	t.Parallel()
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprint("pooled ", pooled), func(t *testing.T) {
			t.Parallel()
			opts := postgrestest.New(t)
			db := postgrestest.Open(t, opts)
			opts.Name, opts.Pooled = "b", pooled
			stopped := connect(t, opts)
			sent := stopped.PgConn().StartPipeline(t.Context())
			for _, text := range append(postgrestest.Open(t, opts).BeginStatements(), "SELECT pg_advisory_xact_lock(7)") {
				sent.SendQueryParams(text, nil, nil, nil, nil)
			}
			if err := sent.Flush(); err != nil { // the rest is never sent
				t.Fatal(err)
			}
			locked := func() bool {
				return number(t, db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7`) > 0
			}
			postgrestest.Eventually(t, "it has its lock", locked)
			sever := func() {
				t.Helper()
				if err := db.TerminateSessions(t.Context(), "b"); err != nil {
					t.Fatal(err)
				}
			}
			beat(t, db, "b", time.Minute)
			sever()
			time.Sleep(100 * time.Millisecond)
			if !locked() {
				t.Error("the transaction of a live node was terminated")
			}
			if err := db.Retire(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			sever()
			postgrestest.Eventually(t, "the lock is free", func() bool { return !locked() })
		})
	}
}

func TestTryLead(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgrestest.New(t))
	serve := func(id string, life time.Duration, want bool) {
		t.Helper()
		mine, err := db.TryLead(t.Context(), "tend", id, life)
		if err != nil || mine != want {
			t.Errorf("%s leads: %t, %v; want %t", id, mine, err, want)
		}
	}
	serve("a", time.Minute, true)
	serve("b", time.Minute, false)
	serve("a", -time.Second, true)
	serve("b", time.Minute, true)
	serve("a", time.Minute, false)
	beat(t, db, "b", time.Minute)
	if err := db.Retire(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Forget(t.Context(), "b", river.ReleaseJobs); err != nil {
		t.Fatal(err)
	}
	serve("a", time.Minute, true)
}
