package clusterload_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// notifications counts what nodes publish, as received by another listener.
type notifications struct {
	mu  sync.Mutex
	by  map[string]int // node
	end func()
}

func (c *cluster) notifications() *notifications {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := conn.Exec(c.t.Context(), `LISTEN stepmill`); err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(c.t.Context())
	r, done := &notifications{by: map[string]int{}}, make(chan struct{})
	go func() {
		defer close(done)
		defer conn.Close(context.Background())
		for {
			received, err := conn.WaitForNotification(ctx)
			if err != nil {
				if ctx.Err() == nil {
					c.t.Error(err)
				}
				return
			}
			from, _, _ := strings.Cut(received.Payload, "\n")
			r.mu.Lock()
			r.by[from]++
			r.mu.Unlock()
		}
	}()
	r.end = sync.OnceFunc(func() {
		stop()
		<-done
	})
	c.t.Cleanup(r.end)
	return r
}

// A node publishes at most ten notifications a second, however many runs start and
// end.
func TestNotificationsAreBatched(t *testing.T) {
	lane.LongOnly(t)
	harness.Seed(t)
	const perSecond, runs = 10, 1500
	c := startCluster(t, 2)
	key := c.newTenant("enterprise")
	id := flow.Define(t, c.nodes[0].With(key), flow.Set("one", 1), flow.Set("two", 1))
	nodes := c.texts(`SELECT id FROM nodes`)
	if len(nodes) != 2 {
		t.Fatalf("nodes are %v, want 2", nodes)
	}
	received := c.notifications()
	started := time.Now()
	c.startRuns(key, id, runs, 12)
	c.awaitIdle()
	took := time.Since(started)
	received.end()

	allowed := int(took.Seconds()*perSecond) + 2
	for _, node := range nodes {
		sent := received.by[node]
		t.Logf("node %s published %d notifications in %s about %d runs", node, sent, ms(took), runs)
		if sent > allowed {
			t.Errorf("a node published %d notifications in %s, want at most %d", sent, ms(took), allowed)
		}
		if sent == 0 {
			t.Error("a node published no notifications")
		}
	}
	if n := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); n != runs {
		t.Errorf("%d of %d runs succeeded", n, runs)
	}
}
