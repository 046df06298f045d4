package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// A server dies at the moments that matter to a delivery. What its receiver may
// have got already comes again, the same.
func TestKillAroundADelivery(t *testing.T) {
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

			doomed, err := harness.Launch(t.Context(), harness.Options{Dir: s.Dir, Args: []string{egress}, Fail: test.point + ":kill"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { doomed.Close(t) })
			doomed.Key = s.Key
			_, _ = doomed.Do(t.Context(), "POST", "/v1/workflows/"+workflow+"/runs", payload(1)) // it may die before it answers
			if exit := doomed.Wait(t, settleTime); exit.Code != -1 {
				t.Fatalf("exit code %d, want death by a signal", exit.Code)
			}
			db := openTables(t, s.Dir)
			id := texts(t, db, "SELECT id FROM deliveries WHERE status = 'pending' AND attempts = 0")
			if len(id) != 1 || len(hooks.Letters(id[0])) != test.arrived {
				t.Fatalf("pending are %v, arrived is not what should be", id)
			}
			_ = db.Close()

			s = restart(t, s, egress)
			awaitDelivered(t, s)
			hooks.checkDeliveries(s.Dir)
			if got := len(hooks.Letters(id[0])); got != test.arrived+1 {
				t.Errorf("it arrived %d times, want %d", got, test.arrived+1)
			}
		})
	}
}

const (
	deliveryRounds = 10
	hooksPerRun    = 3
)

// rounds starts runs and ends the server in the middle of their deliveries, many
// times, and returns the last server when everything has arrived.
func (r *receiver) rounds(random *rand.Rand, end func(*harness.Server)) *harness.Server {
	t := r.t
	s := harness.Start(t, t.TempDir(), egress)
	workflow := createWorkflow(t, s.Client, "adds", chain{{"add", 1}, {"times", 2}})
	for n := range hooksPerRun {
		r.Subscribe(s.Client, path(n), "run.started", "run.succeeded")
	}
	for range deliveryRounds {
		clients := newStarters(s, workflow)
		time.Sleep(soonest + time.Duration(random.Int64N(int64(latest-soonest))))
		end(s)
		clients.Wait()
		s = restart(t, s, egress)
	}
	awaitDelivered(t, s)
	return s
}

// newStarters starts runs from several clients until the server is gone.
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
	if all < 100 {
		r.t.Errorf("only %d deliveries: too few to mean anything", all)
	}
	return repeated
}

// Every event of every run arrives, however often the server is killed.
func TestKillWhileDelivering(t *testing.T) {
	random := harness.Random(harness.Seed(t), 0)
	hooks := newReceiver(t)
	s := hooks.rounds(random, func(s *harness.Server) { s.Kill(t) })
	hooks.checkDeliveries(s.Dir)
	hooks.summarize()
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// A server that is asked to stop lets deliveries come to their end: nothing is
// lost, and nothing is sent twice.
func TestTerminateWhileDelivering(t *testing.T) {
	random := harness.Random(harness.Seed(t), 0)
	hooks := newReceiver(t)
	s := hooks.rounds(random, func(s *harness.Server) { s.Stop(t) })
	hooks.checkDeliveries(s.Dir)
	if repeated := hooks.summarize(); repeated > 0 {
		t.Errorf("%d deliveries arrived more than once", repeated)
	}
}

// Webhooks come and go while runs start and end. Those that were there all the
// time get everything, those that were not there get nothing, and what the
// others get is what the tables say.
func TestWebhooksComeAndGo(t *testing.T) {
	const workers, rounds = 3, 15
	hooks := newReceiver(t)
	s := harness.Start(t, t.TempDir(), egress)
	workflow := createWorkflow(t, s.Client, "waits", chain{{"add", 1}, {"wait", 5}, {"times", 2}})
	kinds := []string{"run.started", "run.succeeded"}
	always := hooks.Subscribe(s.Client, "/always", kinds...)

	var mu sync.Mutex
	gone := map[string]bool{} // webhooks that were deleted before the last runs
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for n := range rounds {
				id := hooks.Subscribe(s.Client, fmt.Sprintf("/passing/%d/%d", worker, n), kinds...)
				time.Sleep(time.Duration(n%5) * 25 * time.Millisecond)
				s.Expect(t, 204, "DELETE", "/v1/webhooks/"+id, nil)
				mu.Lock()
				gone[id] = true
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for n, busy := int64(0), true; busy; n++ {
		startRun(t, s.Client, workflow, n)
		select {
		case <-done:
			busy = false
		default:
		}
	}
	awaitDelivered(t, s)
	late := startRun(t, s.Client, workflow, 1).ID
	awaitDelivered(t, s)

	hooks.checkDeliveries(s.Dir)
	db := openTables(t, s.Dir)
	checkTables(t, db, always)
	if got := texts(t, db, `SELECT DISTINCT webhook_id FROM deliveries d JOIN events e ON e.id = d.event_id WHERE e.run_id = $1`, late); len(got) != 1 || got[0] != always {
		t.Errorf("the last run was told to %v, want only %s", got, always)
	}
	// An event commits after the webhooks that it is for, and before their end.
	if got := texts(t, db, `SELECT d.id FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
		WHERE d.created_at < w.created_at - 1000000 OR d.created_at > w.deleted_at + 1000000`); len(got) != 0 {
		t.Errorf("deliveries to webhooks that were not there: %v", got)
	}
	passing := number(t, db, `SELECT count(*) FROM deliveries WHERE webhook_id <> $1`, always)
	t.Logf("%d deliveries to webhooks that came and went", passing)
	if passing == 0 || len(gone) != workers*rounds {
		t.Error("too little happened for the test to mean anything")
	}
}
