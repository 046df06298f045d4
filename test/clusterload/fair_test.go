package clusterload_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// scale is how many runs make a crowd: more with CLUSTER_RUNS.
func scale(t *testing.T, usual int) int {
	t.Helper()
	if text := os.Getenv("CLUSTER_RUNS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual
}

// One workspace has thousands of runs queued; another starts one. It is not
// behind the others.
func TestOneRunIsNotBehindThousands(t *testing.T) {
	harness.Seed(t)
	runs := scale(t, 2000)
	outside := newSink(t)
	c := start(t, 2)
	many, few := c.tenant("enterprise"), c.tenant("free")
	crowd := define(t, c.nodes[0].With(many), calls("hang", outside.URL+"/hang?hang"), calls("one", outside.URL+"/crowd?ms=500"), calls("two", outside.URL+"/crowd?ms=500"))
	single := define(t, c.nodes[0].With(few), calls("one", outside.URL+"/single"))
	c.flood(many, crowd, runs, 16)
	outside.release() // now they are queued, they move
	var slowest time.Duration
	queued := 0
	for i := range 10 {
		left := c.number(`SELECT count(*) FROM run_queue`)
		if left < 100 {
			break
		}
		queued++
		client := c.nodes[i%2].With(few)
		begun := time.Now()
		id := begin(t, client, single).ID
		within(t, 20*time.Second, "the single run has started", func() bool { return len(outside.of(id)) > 0 })
		slowest = max(slowest, time.Since(begun))
		if end := ended(t, client, id, 20*time.Second); end.Status != "succeeded" {
			t.Errorf("the single run is %s", end.Status)
		}
	}
	t.Logf("%d single runs beside %d others, the slowest was under way after %s", queued, runs, ms(slowest))
	if queued < 3 {
		t.Errorf("the queue was empty too soon for this to mean anything")
	}
	if slowest > time.Second*patience {
		t.Errorf("a single run was under way only after %v", slowest)
	}
	c.settle()
}

// patience is what a busy machine may add to a promise.
const patience = 3

// All steps of one workspace hang. It has its share of runs under way and no
// more, over all nodes; another one does not notice.
func TestHangingStepsKeepToTheirShare(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	outside := newSink(t)
	c := start(t, 2)
	bad, good := c.tenant("pro"), c.tenant("free")
	hangs := define(t, c.nodes[0].With(bad), calls("one", outside.URL+"/hang?hang"))
	fine := define(t, c.nodes[0].With(good), calls("one", outside.URL+"/fine"), calls("two", outside.URL+"/fine"))
	c.flood(bad, hangs, 300, 8)
	within(t, 30*time.Second, "all places are taken", func() bool { now, _ := outside.at("/hang"); return now == 50 })
	var slowest time.Duration
	for i := range 20 {
		client := c.nodes[i%2].With(good)
		begun := time.Now()
		if end := ended(t, client, begin(t, client, fine).ID, 20*time.Second); end.Status != "succeeded" {
			t.Errorf("a run beside those that hang is %s", end.Status)
		}
		slowest = max(slowest, time.Since(begun))
	}
	if slowest > time.Second*patience {
		t.Errorf("a run beside those that hang took %v", slowest)
	}
	now, most := outside.at("/hang")
	t.Logf("%d calls hang, at most %d did; the slowest run beside them took %s", now, most, ms(slowest))
	if now != 50 || most != 50 {
		t.Errorf("%d calls hang, at most %d did at once; the plan allows 50", now, most)
	}
	outside.release()
	c.settle()
}

// As many runs of a workspace are under way as its plan says, never more,
// whichever nodes they are on, while they come, wait, are cancelled and end.
func TestConcurrencyIsExact(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	const runs, limit = 400, 5
	outside := newSink(t)
	c := start(t, 2)
	c.worker()
	key := c.tenant("free")
	api := c.nodes[0].With(key)
	id := define(t, api, calls("one", outside.URL+"/x?ms=15"),
		map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "200ms"}}, calls("two", outside.URL+"/x?ms=15"))
	done, stopped := make(chan struct{}), make(chan struct{})
	cancelled := 0
	go func() { // cancels some, so that slots are freed in every way
		defer close(stopped)
		random := harness.Random(seed, 1)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			var list struct{ Data []struct{ ID string } }
			answer, err := api.Do(t.Context(), "GET", "/v1/workflows/"+id+"/runs?status=running&limit=20", nil)
			if err != nil || json.Unmarshal(answer.Body, &list) != nil || len(list.Data) == 0 {
				continue
			}
			answer, err = c.nodes[random.IntN(2)].With(key).Do(t.Context(), "POST", "/v1/runs/"+list.Data[random.IntN(len(list.Data))].ID+"/cancel", nil)
			if err == nil && answer.Status == http.StatusOK {
				cancelled++
			}
		}
	}()
	c.flood(key, id, runs, 12)
	c.settle()
	close(done)
	<-stopped
	_, most := outside.at("/x")
	t.Logf("%d runs on three nodes, %d cancelled, at most %d calls at once", runs, cancelled, most)
	if most != limit {
		t.Errorf("%d calls were under way at once; the plan allows %d runs", most, limit)
	}
	if succeeded := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); succeeded+cancelled != runs || cancelled < 5 || succeeded < runs/2 {
		t.Errorf("%d of %d runs succeeded, %d were cancelled", succeeded, runs, cancelled)
	}
	for key, n := range outside.counted() {
		if n != 1 {
			t.Errorf("%s was called %d times", key, n)
		}
	}
}

// Many clients on two nodes run into the cap of the queue at once. What is
// beyond it is refused and leaves nothing behind.
func TestCapOfTheQueue(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	const limit, queue, clients = 5, 1000, 64
	outside := newSink(t)
	c := start(t, 2)
	key := c.tenant("free")
	id := define(t, c.nodes[0].With(key), calls("one", outside.URL+"/hang?hang"))
	c.flood(key, id, limit+queue-100, 16)
	var (
		mu                sync.Mutex
		accepted, refused int
		group             sync.WaitGroup
	)
	for i := range clients {
		api := c.nodes[i%2].With(key)
		group.Go(func() {
			for range 5 {
				answer, err := api.Do(t.Context(), "POST", "/v1/workflows/"+id+"/runs", nil)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				switch {
				case answer.Status == 201:
					accepted++
				case answer.Status == 429 && code(answer) == "run_queue_full" && answer.Header.Get("Retry-After") != "":
					refused++
				default:
					t.Errorf("a start was answered with %d %s, Retry-After %q", answer.Status, answer.Body, answer.Header.Get("Retry-After"))
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d more were accepted, %d refused", accepted, refused)
	if accepted != 100 || refused != clients*5-100 {
		t.Errorf("%d more were accepted and %d refused, want 100 and %d", accepted, refused, clients*5-100)
	}
	if n := c.number(`SELECT count(*) FROM runs`); n != limit+queue {
		t.Errorf("%d runs are stored, want %d", n, limit+queue)
	}
	if n := c.number(`SELECT count(*) FROM run_queue WHERE parked`); n != queue {
		t.Errorf("%d runs are queued, want %d", n, queue)
	}
	c.check()
}

// code is that of an error.
func code(answer harness.Answer) string {
	var body struct{ Error struct{ Code string } }
	_ = json.Unmarshal(answer.Body, &body)
	return body.Error.Code
}
