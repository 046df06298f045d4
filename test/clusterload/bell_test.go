package clusterload_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/harness"
)

// ringing is what nodes tell each other, as one hears it who listens too.
type ringing struct {
	mu  sync.Mutex
	at  map[string][]time.Time // by node
	end func()
}

func (c *cluster) ringing() *ringing {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := conn.Exec(c.t.Context(), `LISTEN stepmill`); err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(c.t.Context())
	r, over := &ringing{at: map[string][]time.Time{}}, make(chan struct{})
	go func() {
		defer close(over)
		defer conn.Close(context.Background())
		for {
			heard, err := conn.WaitForNotification(ctx)
			if err != nil {
				if ctx.Err() == nil {
					c.t.Error(err)
				}
				return
			}
			from, _, _ := strings.Cut(heard.Payload, "\n")
			r.mu.Lock()
			r.at[from] = append(r.at[from], time.Now())
			r.mu.Unlock()
		}
	}()
	r.end = sync.OnceFunc(func() {
		stop()
		<-over
	})
	c.t.Cleanup(r.end)
	return r
}

// most is how many rings were heard within a second.
func most(at []time.Time) (n int) {
	for i, first := range at {
		end, _ := slices.BinarySearchFunc(at, first.Add(time.Second), time.Time.Compare)
		n = max(n, end-i)
	}
	return n
}

// However many runs start and end, a node tells the others of it ten times a
// second at most.
func TestManyEndsAreToldTogether(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	const perSecond, runs = 10, 1500
	c := start(t, 2)
	key := c.tenant("enterprise")
	id := define(t, c.nodes[0].With(key), sets("one"), sets("two"))
	nodes := c.texts(`SELECT id FROM nodes`)
	if len(nodes) != 2 {
		t.Fatalf("there are the nodes %v", nodes)
	}
	heard := c.ringing()
	begun := time.Now()
	c.flood(key, id, runs, 12)
	c.settle()
	took := time.Since(begun)
	heard.end()

	allowed, total := int(took.Seconds()*perSecond)+2, 0
	for _, node := range nodes {
		rings := heard.at[node]
		total += len(rings)
		t.Logf("node %s rang %d times in %s, at most %d times within a second", node, len(rings), ms(took), most(rings))
		if len(rings) > allowed {
			t.Errorf("a node told the others %d times in %s, %d are allowed", len(rings), ms(took), allowed)
		}
		// What was sent a second ago may be heard together with what is sent now.
		if n := most(rings); n > 2*perSecond {
			t.Errorf("a node told the others %d times within a second", n)
		}
		if len(rings) < perSecond {
			t.Errorf("a node told the others only %d times: nothing happened there", len(rings))
		}
	}
	if ended := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); ended != runs || total > ended/3 {
		t.Errorf("%d runs ended and were told of %d times: that is no crowd", ended, total)
	}
}
