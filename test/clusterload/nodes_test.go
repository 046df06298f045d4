package clusterload_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/test/harness"
)

// Three nodes start at the same time on an empty database. One makes the tables
// and the first workspace, all serve.
func TestStartAtOnce(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	const times = 10
	for round := range times {
		c := empty(t)
		if round == times-1 { // one dies in the middle of it first
			o := c.options(nil)
			o.Fail = "during_migration:kill"
			dying, err := harness.Spawn(o)
			if err != nil {
				t.Fatal(err)
			}
			if exit := dying.Wait(t, 30*time.Second); exit.Code != -1 {
				t.Fatalf("exit code %d of a node that should have died in a migration", exit.Code)
			}
		}
		var nodes [3]*harness.Server
		var group sync.WaitGroup
		for i := range nodes {
			group.Go(func() {
				var err error
				if nodes[i], err = harness.Launch(t.Context(), c.options(nil)); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		group.Wait()
		if t.Failed() {
			t.FailNow()
		}
		keys := 0
		for _, node := range nodes {
			if key := node.PrintedKey(); key != "" {
				c.admin = key
				keys++
			}
		}
		if keys != 1 || c.number(`SELECT count(*) FROM workspaces`) != 1 {
			t.Fatalf("round %d: %d keys were shown and %d workspaces made", round, keys, c.number(`SELECT count(*) FROM workspaces`))
		}
		for _, node := range nodes {
			node.Key = c.admin
			define(t, node.Client, sets("one"))
			node.Stop(t)
			node.Close(t)
		}
	}
}

// The clocks of the nodes are wrong by ten minutes, each in its own way. Nobody
// notices: waits end at their time, a node that dies is missed in time, and what
// is told of runs has the time of the database.
func TestClocksAreWrong(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	outside := newSink(t)
	c := empty(t)
	for _, wrong := range []string{"10m", "-10m", "-600s"} {
		o := c.options(nil)
		o.Fail, o.Env = "at_start@nobody:exit", []string{"FP_CLOCK=" + wrong}
		node := harness.StartWith(t, o)
		if c.admin == "" {
			c.admin = node.AwaitKey(t)
		}
		node.Key = c.admin
		c.nodes = append(c.nodes, node)
	}
	var waits sync.WaitGroup
	for _, length := range []time.Duration{time.Second, 3 * time.Second, 14 * time.Second} {
		id := define(t, c.nodes[0].Client, map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": length.String()}}, calls("after", outside.URL+"/x"))
		for i := range 6 {
			waits.Go(func() {
				begun := time.Now()
				r := begin(t, c.nodes[i%3].Client, id)
				if off := time.Since(r.StartedAt); off.Abs() > 5*time.Second {
					t.Errorf("a run that was just started says %v", r.StartedAt)
				}
				if now := time.Now(); r.ID < uid.Least(uid.Run, now.Add(-5*time.Second)) || r.ID > uid.Least(uid.Run, now.Add(5*time.Second)) {
					t.Errorf("%s, started just now, is not of that time", r.ID)
				}
				within(t, length+20*time.Second, "the wait is over", func() bool { return len(outside.of(r.ID)) == 1 })
				if took := time.Since(begun); took < length-100*time.Millisecond || took > length+5*time.Second*patience {
					t.Errorf("a wait of %v took %v", length, took)
				}
			})
		}
	}
	waits.Wait()
	// A node dies.
	id := define(t, c.nodes[0].Client, calls("hang", outside.URL+"/hang?ms=8000"))
	r := begin(t, c.nodes[1].Client, id).ID
	within(t, 10*time.Second, "the call is under way", func() bool { return len(outside.of(r)) == 1 })
	c.nodes[1].Kill(t)
	died := time.Now()
	left := time.Duration(c.number(`SELECT n.expires_at - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
		FROM nodes n JOIN run_queue q ON q.node = n.id WHERE q.run_id = $1`, r)) * time.Microsecond
	within(t, 30*time.Second, "another node goes on", func() bool { return len(outside.of(r)) == 2 })
	took := time.Since(died)
	t.Logf("another node went on after %s, %s after the time of the one that died", ms(took), ms(took-left))
	if took < left || took > 4*time.Second*patience {
		t.Errorf("a node that died had %v left, and another went on after %v", left, took)
	}
}

// A key is revoked on one node. The others refuse it within five seconds, and
// end what was opened with it.
func TestRevocationOnAnotherNode(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	c := start(t, 2)
	var slowest time.Duration
	for i := range 3 {
		var made struct {
			ID  string `json:"id"`
			Key string `json:"key"`
		}
		c.nodes[0].Expect(t, 201, "POST", "/v1/api-keys", map[string]any{"name": fmt.Sprint("key ", i), "scopes": []string{"read"}}).Decode(t, &made)
		doomed := c.nodes[1].With(made.Key)
		doomed.Expect(t, 200, "GET", "/v1/workflows", nil)
		over := make(chan struct{})
		response, err := doomed.Open(t.Context(), http.MethodGet, "/v1/events/stream", http.NoBody)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("follow: %v", err)
		}
		go func() {
			defer close(over)
			defer response.Body.Close()
			buffer := make([]byte, 1024)
			for {
				if _, err := response.Body.Read(buffer); err != nil {
					return
				}
			}
		}()
		revoked := time.Now()
		answer, err := c.nodes[0].Do(context.Background(), "DELETE", "/v1/api-keys/"+made.ID, nil)
		if err != nil || answer.Status/100 != 2 {
			t.Fatalf("revoke: %v %d %s", err, answer.Status, answer.Body)
		}
		within(t, 20*time.Second, "the other node refuses the key", func() bool {
			answer, err := doomed.Do(t.Context(), "GET", "/v1/workflows", nil)
			return err == nil && answer.Status == 401
		})
		slowest = max(slowest, time.Since(revoked))
		select {
		case <-over:
			slowest = max(slowest, time.Since(revoked))
		case <-time.After(20 * time.Second):
			t.Fatal("a stream goes on with a key that was revoked")
		}
	}
	t.Logf("a key was of no use any more after %s at most", ms(slowest))
	if slowest > 5*time.Second {
		t.Errorf("a key that was revoked was good for %v more", slowest)
	}
}

// edited is a workflow that changes while its runs are under way.
type edited struct {
	id      string
	mu      sync.Mutex
	version int
	deleted time.Time
	runs    map[string]int // by their version
}

// Workflows are changed, paused and deleted on one node while their runs are
// started and executed on the other and on both. A run keeps to its version; of
// what is deleted nothing goes on.
func TestChangesOnTwoNodes(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	const workflows, versions = 6, 15
	outside := newSink(t)
	c := start(t, 2)
	steps := func(version int) []map[string]any {
		url := fmt.Sprintf("%s/v%d?ms=30", outside.URL, version)
		return []map[string]any{calls("one", url), calls("two", url), calls("three", url)}
	}
	var all []*edited
	var group sync.WaitGroup
	for i := range workflows {
		w := &edited{version: 2, runs: map[string]int{}}
		w.id = define(t, c.nodes[0].Client, steps(2)...)
		all = append(all, w)
		over := make(chan struct{})
		group.Go(func() {
			defer close(over)
			w.change(t, c, harness.Random(seed, i).Int64N, steps, versions)
			if i%2 == 0 {
				w.remove(t, c.nodes[0].Client)
			}
		})
		for n := range 2 {
			group.Go(func() { w.start(t, c.nodes[n].Client, over) })
		}
	}
	group.Wait()
	c.settleExcept()
	total, gone := 0, 0
	for _, w := range all {
		total += len(w.runs)
		for id, version := range w.runs {
			for _, made := range outside.of(id) {
				if !strings.HasPrefix(made.path, fmt.Sprintf("/v%d", version)) || len(made.path) != len(fmt.Sprintf("/v%d", version)) {
					t.Errorf("run %s of version %d called %s", id, version, made.path)
				}
				if late := made.at.Sub(w.deleted); !w.deleted.IsZero() && late > 3500*time.Millisecond {
					t.Errorf("run %s made a call %v after its workflow was deleted", id, late)
				}
			}
			if !w.deleted.IsZero() {
				gone++
				c.nodes[1].Expect(t, 404, "GET", "/v1/runs/"+id, nil)
				continue
			}
			if end := look(t, c.nodes[1].Client, id); end.Status != "succeeded" || end.WorkflowVersion != version || len(outside.of(id)) != 3 {
				t.Errorf("run %s of version %d is %s of version %d after %d calls", id, version, end.Status, end.WorkflowVersion, len(outside.of(id)))
			}
		}
	}
	t.Logf("%d runs of %d workflows with %d versions each, %d of them of workflows that were deleted", total, workflows, versions, gone)
	if total < 100 || gone < 20 {
		t.Errorf("too little happened")
	}
	c.check()
}

// settleExcept waits until no run is under way but those of workflows that are
// gone, and these are being removed.
func (c *cluster) settleExcept() {
	c.t.Helper()
	within(c.t, settleTime, "every run has ended", func() bool {
		return c.number(`SELECT count(*) FROM run_queue q JOIN workflows w ON w.id = q.workflow_id WHERE w.deleted_at IS NULL`) == 0
	})
	within(c.t, settleTime, "what was deleted is removed", func() bool { return c.number(`SELECT count(*) FROM workflows WHERE deleted_at IS NOT NULL`) == 0 })
}

func (w *edited) change(t *testing.T, c *cluster, random func(int64) int64, steps func(int) []map[string]any, versions int) {
	for !t.Failed() {
		time.Sleep(time.Duration(random(int64(80 * time.Millisecond))))
		w.mu.Lock()
		at, api := "/v1/workflows/"+w.id, c.nodes[random(2)]
		switch {
		case w.version >= versions:
			w.mu.Unlock()
			return
		case random(4) == 0: // a pause stops nothing that is under way
			api.Expect(t, 200, "PATCH", at, map[string]any{"state": "paused"})
			api.Expect(t, 200, "PATCH", at, map[string]any{"state": "active"})
		default:
			api.Expect(t, 200, "PATCH", at, map[string]any{"steps": steps(w.version + 1)})
			w.version++
		}
		w.mu.Unlock()
	}
}

func (w *edited) remove(t *testing.T, api *harness.Client) {
	at := "/v1/workflows/" + w.id
	w.mu.Lock()
	defer w.mu.Unlock()
	api.Expect(t, 200, "PATCH", at, map[string]any{"state": "paused"})
	if answer, err := api.Do(t.Context(), "DELETE", at, nil); err != nil || answer.Status/100 != 2 {
		t.Errorf("delete: %v %d %s", err, answer.Status, answer.Body)
	}
	w.deleted = time.Now()
}

// start starts runs until the workflow changes no more. A start and a change
// take turns, so that the version of a run is known.
func (w *edited) start(t *testing.T, api *harness.Client, over <-chan struct{}) {
	for !t.Failed() {
		select {
		case <-over:
			return
		case <-time.After(10 * time.Millisecond):
		}
		w.mu.Lock()
		if w.deleted.IsZero() {
			r := begin(t, api, w.id)
			w.runs[r.ID] = w.version
		}
		w.mu.Unlock()
	}
}
