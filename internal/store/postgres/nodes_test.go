package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/store/postgres"
)

func newNode(id string) node.Node {
	return node.Node{ID: id, Name: "a machine", Version: "v1", Role: node.RoleServe, StartedAt: clock.Now()}
}

func beat(t *testing.T, db *postgres.DB, id string, life time.Duration) node.Beat {
	t.Helper()
	b, err := db.Beat(t.Context(), newNode(id), 10, life)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func expired(t *testing.T, db *postgres.DB) []string {
	t.Helper()
	gone, err := db.Expired(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(gone)
	return gone
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	b := beat(t, db, "a", time.Minute)
	if b.Nodes != 1 || b.Capacity != 10 || b.NextExpiry != nil || b.Dead {
		t.Errorf("alone: %+v", b)
	}
	exec(t, db, `DELETE FROM recovery`) // as a crash does
	beat(t, db, "b", time.Millisecond)
	if n := number(t, db, `SELECT count(*) FROM recovery`); n != 1 {
		t.Error("a heartbeat leaves no mark")
	}
	b = beat(t, db, "a", time.Minute)
	if b.Nodes != 2 || b.Capacity != 20 || b.NextExpiry == nil || b.NextExpiry.After(b.Now.Add(time.Second)) {
		t.Errorf("with another: %+v", b)
	}
	time.Sleep(5 * time.Millisecond)
	if b := beat(t, db, "b", time.Minute); b.Dead {
		t.Error("nobody has noticed that it was late, and it is dead")
	}
	beat(t, db, "b", -time.Second)
	if gone := expired(t, db); !slices.Equal(gone, []string{"b"}) {
		t.Errorf("expired: %v", gone)
	}
	if b := beat(t, db, "b", time.Minute); !b.Dead {
		t.Error("one that was taken for dead lives on")
	}
	if gone := expired(t, db); !slices.Equal(gone, []string{"b"}) {
		t.Errorf("expired, while nobody has finished with it: %v", gone)
	}
	alive, err := db.Nodes(t.Context())
	if err != nil || len(alive) != 1 || alive[0].ID != "a" || alive[0].Name != "a machine" {
		t.Errorf("alive: %+v, %v", alive, err)
	}
	exec(t, db, `INSERT INTO couriers (webhook_id, node) VALUES ('w', 'b'), ('v', 'a')`)
	if removed, err := db.Forget(t.Context(), "b"); err != nil || !removed {
		t.Fatal(removed, err)
	}
	if n := number(t, db, `SELECT count(*) FROM couriers`); n != 1 {
		t.Errorf("%d webhooks are taken", n)
	}
	if b := beat(t, db, "b", time.Minute); b.Dead || b.Nodes != 2 {
		t.Errorf("one that was forgotten comes back: %+v", b)
	}
	if removed, err := db.Forget(t.Context(), "b"); err != nil || removed {
		t.Fatal(removed, err)
	}
	if b := beat(t, db, "a", time.Minute); b.Nodes != 2 {
		t.Errorf("one that is alive was forgotten: %+v", b)
	}
}

// What a node had fetched when it died goes to another, which does not wait until
// it is overdue.
func TestForgetPutsJobsBack(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	for _, by := range []string{"{b}", "{a,b}", "{b,a}"} {
		exec(t, db, `INSERT INTO `+postgres.JobSchema+`.river_job (kind, args, max_attempts, state, attempted_at, attempted_by, attempt)
			VALUES ('wake_up', '{}', 10, 'running', now(), $1::text::text[], 1)`, by)
	}
	count := func(state string) int {
		return number(t, db, `SELECT count(*) FROM `+postgres.JobSchema+`.river_job WHERE state = $1::text::`+postgres.JobSchema+`.river_job_state`, state)
	}
	beat(t, db, "b", time.Minute)
	if _, err := db.Forget(t.Context(), "b"); err != nil || count("running") != 3 {
		t.Errorf("a node that is alive lost its jobs: %v", err)
	}
	if err := db.Retire(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Forget(t.Context(), "b"); err != nil || count("running") != 1 || count("available") != 2 {
		t.Errorf("%d jobs wait for a node, %d are with one: %v", count("available"), count("running"), err)
	}
}

// A node that stops in the middle of what it sends keeps what it has locked: no
// timer of the database runs. It is ended with the node, and not before.
func TestSever(t *testing.T) {
	t.Parallel()
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprint("pooled ", pooled), func(t *testing.T) {
			t.Parallel()
			opts := newDatabase(t)
			db := open(t, opts)
			opts.Name, opts.Pooled = "b", pooled
			stopped := connect(t, opts)
			sent := stopped.PgConn().StartPipeline(t.Context())
			for _, text := range append(open(t, opts).Opening(), "SELECT pg_advisory_xact_lock(7)") {
				sent.SendQueryParams(text, nil, nil, nil, nil)
			}
			if err := sent.Flush(); err != nil { // and the rest does not come
				t.Fatal(err)
			}
			locked := func() bool {
				return number(t, db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7`) > 0
			}
			eventually(t, "it has its lock", locked)
			sever := func() {
				t.Helper()
				if err := db.Sever(t.Context(), "b"); err != nil {
					t.Fatal(err)
				}
			}
			beat(t, db, "b", time.Minute)
			sever()
			time.Sleep(100 * time.Millisecond)
			if !locked() {
				t.Error("the transaction of a node that is alive was ended")
			}
			if err := db.Retire(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			sever()
			eventually(t, "the lock is free", func() bool { return !locked() })
		})
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	serve := func(id string, life time.Duration, want bool) {
		t.Helper()
		mine, err := db.Serve(t.Context(), "tend", id, life)
		if err != nil || mine != want {
			t.Errorf("%s serves: %t, %v; want %t", id, mine, err, want)
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
	if _, err := db.Forget(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	serve("a", time.Minute, true)
}
