package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/test/faultproxy"
	"github.com/stepmill/stepmill/test/lane"
)

// throughProxy opens a database behind an unreliable network.
func throughProxy(t *testing.T, seed uint64) (*postgres.DB, *faultproxy.Proxy, postgres.Options) {
	t.Helper()
	direct := postgrestest.New(t)
	table(t, direct)
	at, err := url.Parse(direct.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.Start(t, faultproxy.Options{Target: at.Host, Postgres: true, Seed: seed})
	at.Host = proxy.Addr()
	opts := direct
	opts.URL = at.String()
	return postgrestest.Open(t, opts), proxy, direct
}

// TestLostCommitResponses checks that the outcome of a COMMIT without a response
// is resolved: the transaction was committed or is retried. The caller gets the
// correct result, and nothing is written twice.
func TestLostCommitResponses(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]float64{"response lost": 0, "request lost": 1, "both": 0.5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, proxy, opts := throughProxy(t, 7)
			look := postgrestest.Open(t, opts)
			proxy.LoseCommits(faultproxy.Commits{Probability: 0.3, Early: early})
			outcomes := writeTogether(t, db, notes(30))
			enough := func() bool {
				failed, _ := countFailed(outcomes)
				return proxy.Counts().Lost >= 5 && len(outcomes)-failed >= 80
			}
			for i := 0; i < 30 || !enough() && i < 300; i++ {
				id := fmt.Sprint("alone ", i)
				outcomes[id] = db.Write(t.Context(), func(c database.Conn) error { return note(c, id) })
				id = fmt.Sprint("at once ", i)
				outcomes[id] = db.Write(t.Context(), func(c database.Conn) error { return c.Do(`INSERT INTO notes (id) VALUES ($1)`, id) })
			}
			if !enough() {
				failed, _ := countFailed(outcomes)
				t.Errorf("%d responses were lost, and %d of %d transactions failed", proxy.Counts().Lost, failed, len(outcomes))
			}
			proxy.LoseCommits(faultproxy.Commits{})
			checkNotes(t, look, outcomes)
		})
	}
}

// countFailed returns the number of transactions that failed, and how many of them are
// known to have changed nothing.
func countFailed(outcomes map[string]error) (failed, unchanged int) {
	for _, err := range outcomes {
		if err == nil {
			continue
		}
		failed++
		if f, ok := fault.As(err); !ok || !strings.Contains(f.Message, "not known") {
			unchanged++
		}
	}
	return failed, unchanged
}

// TestBrokenConnections checks that connections which are cut or terminated
// during transactions are no reason to fail.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	db, proxy, opts := throughProxy(t, 9)
	look := postgrestest.Open(t, opts)
	stop := make(chan struct{})
	var (
		cutting  sync.WaitGroup
		finished atomic.Int64
	)
	cutting.Go(func() {
		for i, last := 0, int64(0); ; i++ {
			// However slow the machine is, most transactions are undisturbed.
			for finished.Load() < last+8 {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
			last = finished.Load()
			if i%2 == 0 {
				proxy.Cut()
				continue
			}
			exec(t, look, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'`)
		}
	})
	var (
		running  sync.WaitGroup
		mu       sync.Mutex
		outcomes = map[string]error{}
	)
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		_, unchanged := countFailed(outcomes)
		return proxy.Counts().Cut >= 8 && unchanged <= len(outcomes)/10
	}
	for worker := range 8 {
		running.Go(func() {
			for i := 0; i < 20 || i < 5000 && !enough(); i++ {
				id := fmt.Sprint(worker, " ", i)
				err := db.WriteRun(context.Background(), id, func(c database.Conn) error { return note(c, id) })
				finished.Add(1)
				mu.Lock()
				outcomes[id] = err
				mu.Unlock()
			}
		})
	}
	running.Wait()
	close(stop)
	cutting.Wait()
	for id, err := range outcomes {
		f, ok := fault.As(err)
		if err != nil && (!ok || f.Code != fault.Unavailable) {
			t.Errorf("%s: %v", id, err)
		}
		if err != nil && !strings.Contains(f.Message, "not known") {
			if n := number(t, look, `SELECT count(*) FROM notes WHERE id = $1`, id); n != 0 {
				t.Errorf("%s was written although it failed: %v", id, err)
			}
		}
		if n := number(t, look, `SELECT count(*) FROM notes WHERE id = $1`, id); err == nil && n != 1 {
			t.Errorf("%s succeeded but is missing", id)
		}
	}
	if !enough() {
		_, unchanged := countFailed(outcomes)
		t.Errorf("%d connections were cut, and %d of %d transactions failed", proxy.Counts().Cut, unchanged, len(outcomes))
	}
}

// TestAllConnectionsInUse checks that a transaction fails if it gets no
// connection in time, while reserved connections are available.
func TestAllConnectionsInUse(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := postgrestest.New(t)
	opts.Timeout = postgrestest.ShortTimeout
	db := table(t, opts)
	gate := make(chan struct{})
	var running sync.WaitGroup
	in := make(chan struct{}, 5)
	for range 5 {
		running.Go(func() {
			_ = db.Write(context.Background(), func(c database.Conn) error {
				if _, err := c.Exec(`SELECT 1`); err != nil {
					return err
				}
				in <- struct{}{}
				<-gate
				return nil
			})
		})
		<-in
	}
	err := db.Write(t.Context(), func(c database.Conn) error { return note(c, "a") })
	if f, ok := fault.As(err); !ok || f.Code != fault.Unavailable {
		t.Errorf("a transaction without a connection: %v", err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("a reserved connection: %v", err)
	}
	if _, err := db.Heartbeat(t.Context(), newNode("n"), 1, time.Minute, clock.Record{}); err != nil {
		t.Errorf("a heartbeat: %v", err)
	}
	close(gate)
	running.Wait()
	if err := db.Write(t.Context(), func(c database.Conn) error { return note(c, "a") }); err != nil {
		t.Error(err)
	}
}
