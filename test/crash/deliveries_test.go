package crash_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// A server dies before or after it sends a delivery. The delivery is sent again,
// unchanged.
func TestKillAroundDelivery(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		point   string
		arrived int // before the server died
	}{{"before_outbox_send", 0}, {"after_2xx_before_mark", 1}} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			hooks := newReceiver(t)
			s := harness.Start(t, t.TempDir(), egress)
			workflow := createWorkflow(t, s.Client, "adds", chain{{"add", 1}})
			hooks.Subscribe(s.Client, path(1), "run.succeeded")
			s.Stop(t)

			doomed, err := harness.Launch(t.Context(), harness.Options{Dir: s.Dir, Args: []string{egress}, Failpoint: test.point + ":kill"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { doomed.Close(t) })
			doomed.Key = s.Key
			_, _ = doomed.Do(t.Context(), "POST", "/v1/workflows/"+workflow+"/runs", payload(1)) // it may die before it responds
			if exit := doomed.Wait(t); exit.Code != -1 {
				t.Fatalf("exit code %d, want death by a signal", exit.Code)
			}
			id := tables.Texts(t, openTables(t, s.Dir), "SELECT id FROM deliveries WHERE status = 'pending' AND attempts = 0")
			if len(id) != 1 || len(hooks.Attempts(id[0])) != test.arrived {
				t.Fatalf("pending deliveries are %v, want one that arrived %d times", id, test.arrived)
			}

			s = restart(t, s, egress)
			awaitDelivered(t, s)
			hooks.checkDeliveries(s.Dir)
			if got := len(hooks.Attempts(id[0])); got != test.arrived+1 {
				t.Errorf("the delivery arrived %d times, want %d", got, test.arrived+1)
			}
		})
	}
}

const (
	hooksPerRun = 3
	// minDeliveries is how many deliveries arrive before the last round ends.
	minDeliveries = 100
)

// rounds repeatedly starts runs and ends the server during their deliveries. It returns
// the last server once everything has arrived.
func (r *receiver) rounds(random *rand.Rand, end func(*harness.Server)) *harness.Server {
	t := r.t
	s := harness.Start(t, t.TempDir(), egress)
	workflow := createWorkflow(t, s.Client, "adds", chain{{"add", 1}, {"times", 2}})
	for n := range hooksPerRun {
		r.Subscribe(s.Client, path(n), "run.started", "run.succeeded")
	}
	rounds := lane.Pick(3, 10)
	for round := range rounds {
		clients := newStarters(s, workflow)
		time.Sleep(minDelay + time.Duration(random.Int64N(int64(maxDelay-minDelay))))
		harness.Eventually(t, "enough deliveries have arrived", func() bool {
			arrived, _ := r.Count()
			return arrived >= minDeliveries*(round+1)/rounds
		})
		end(s)
		clients.Wait()
		s = restart(t, s, egress)
	}
	awaitDelivered(t, s)
	return s
}

// newStarters starts runs from several clients until the server exits.
func newStarters(s *harness.Server, workflow string) *sync.WaitGroup {
	group := &sync.WaitGroup{}
	for range clients {
		api := harness.NewClient(s.URL, s.Key)
		group.Go(func() {
			for n := int64(0); ; n++ {
				if _, err := api.Do(context.Background(), "POST", "/v1/workflows/"+workflow+"/runs", payload(n)); err != nil {
					return
				}
			}
		})
	}
	return group
}

func (r *receiver) summarize() (repeated int) {
	r.t.Helper()
	all, repeated := r.Count()
	r.t.Logf("%d deliveries arrived, %d of them more than once", all, repeated)
	return repeated
}

// Every event of every run is delivered, even if the server is killed many times.
func TestKillDuringDeliveries(t *testing.T) {
	t.Parallel()
	random := harness.Random(harness.Seed(t), 0)
	hooks := newReceiver(t)
	s := hooks.rounds(random, func(s *harness.Server) { s.Kill(t) })
	hooks.checkDeliveries(s.Dir)
	hooks.summarize()
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// shutdownGrace is how long a stopping server waits for deliveries in flight.
const shutdownGrace = 5 * time.Second

// A server that is asked to stop finishes its deliveries: nothing is lost, and nothing is
// sent twice.
func TestTerminateDuringDeliveries(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	random := harness.Random(harness.Seed(t), 0)
	hooks := newReceiver(t)
	var slowest time.Duration
	s := hooks.rounds(random, func(s *harness.Server) {
		begun := time.Now()
		s.Stop(t)
		slowest = max(slowest, time.Since(begun))
	})
	hooks.checkDeliveries(s.Dir)
	switch repeated := hooks.summarize(); {
	case repeated > 0 && slowest >= shutdownGrace:
		t.Logf("inconclusive: a stop took %v, and the server did not wait for all deliveries", slowest)
	case repeated > 0:
		t.Errorf("%d deliveries arrived more than once", repeated)
	}
}

// webhookLifetime is the lifetime of a webhook that is made and deleted while runs are
// started one after the other. Runs are counted in the order of their starts.
type webhookLifetime struct {
	id string
	// Runs before this one were accepted before the webhook was requested.
	after int
	// Starts from this one on were sent after the delete was acknowledged.
	before int
}

// starts counts the runs that a test starts one after the other.
type starts struct {
	mu       sync.Mutex
	sent     int
	accepted []string
}

func (s *starts) progress() (sent, accepted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, len(s.accepted)
}

func (s *starts) start(t *testing.T, c *harness.Client, workflow string) {
	t.Helper()
	s.mu.Lock()
	s.sent++
	s.mu.Unlock()
	id := startRun(t, c, workflow, 1).ID
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted = append(s.accepted, id)
}

// Webhooks are made and deleted while runs start and end. A webhook that exists all the
// time gets every event, and the others get none from before or after their lifetime.
func TestSubscribeAndUnsubscribeUnderLoad(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	const workers = 3
	rounds := lane.Pick(5, 15)
	hooks := newReceiver(t)
	s := harness.Start(t, t.TempDir(), egress)
	workflow := createWorkflow(t, s.Client, "waits", chain{{"add", 1}, {"wait", 5}, {"times", 2}})
	kinds := []string{"run.started", "run.succeeded"}
	always := hooks.Subscribe(s.Client, "/always", kinds...)

	var mu sync.Mutex
	var lifetimes []webhookLifetime
	started := &starts{}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for n := range rounds {
				var p webhookLifetime
				_, p.after = started.progress()
				p.id = hooks.Subscribe(s.Client, fmt.Sprintf("/passing/%d/%d", worker, n), kinds...)
				// Some exist for at least a few runs, others only for a moment.
				sent, _ := started.progress()
				harness.Eventually(t, "runs are started", func() bool {
					_, accepted := started.progress()
					return t.Failed() || accepted >= sent+n%4
				})
				s.Expect(t, 204, "DELETE", "/v1/webhooks/"+p.id, nil)
				p.before, _ = started.progress()
				mu.Lock()
				lifetimes = append(lifetimes, p)
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for busy := true; busy; {
		started.start(t, s.Client, workflow)
		select {
		case <-done:
			busy = false
		default:
		}
	}
	awaitDelivered(t, s)

	hooks.checkDeliveries(s.Dir)
	db := openTables(t, s.Dir)
	checkTables(t, db, always)
	for _, p := range lifetimes {
		p.check(t, db, started.accepted)
	}
	most := tables.Number(t, db, `SELECT count(*) FROM deliveries WHERE webhook_id <> $1`, always)
	t.Logf("%d deliveries to %d temporary webhooks during %d runs", most, len(lifetimes), len(started.accepted))
	if most == 0 || len(lifetimes) != workers*rounds {
		t.Error("temporary webhooks got no deliveries")
	}
}

// check compares the deliveries of a webhook with its lifetime.
func (p webhookLifetime) check(t *testing.T, db *sql.DB, runs []string) {
	t.Helper()
	const sent = `SELECT e.run_id FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.webhook_id = $1`
	for _, run := range tables.Texts(t, db, sent+` AND e.type = 'run.started'`, p.id) {
		if slices.Index(runs, run) < p.after {
			t.Errorf("webhook %s got the start of run %s from before it existed", p.id, run)
		}
	}
	for _, run := range tables.Texts(t, db, sent, p.id) {
		if slices.Index(runs, run) >= p.before {
			t.Errorf("webhook %s got an event of run %s from after its delete", p.id, run)
		}
	}
}
