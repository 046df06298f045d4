package cluster_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/postgres"
)

// Others take every connection that the database allows. The service says that
// it is unavailable, soon, and is back as soon as there are connections again.
func TestConnectionsExhausted(t *testing.T) {
	c := newCluster(t, options{
		nodes: 2, lease: lease, errors: databaseAway, args: []string{"--database-connections=12"},
		postgres: postgres.Options{MaxConnections: 40, Settings: map[string]string{"superuser_reserved_connections": "0"}},
	})
	l := newLoad(c, 8)
	l.begin()
	time.Sleep(2 * time.Second)
	for range rounds(2) {
		over := c.suffer()
		release := c.exhaust()
		told, slowest := 0, time.Duration(0)
		for began := time.Now(); time.Since(began) < 2*lease; {
			asked := time.Now()
			answer, err := c.nodes[0].With(l.tenants[0].key).Do(t.Context(), http.MethodGet, "/v1/workflows", nil)
			took := time.Since(asked)
			if err != nil || answer.Status != http.StatusOK && answer.Status != http.StatusServiceUnavailable {
				t.Errorf("without connections the answer is %d %s %v", answer.Status, answer.Body, err)
			}
			if slowest = max(slowest, took); answer.Status == http.StatusServiceUnavailable {
				told++
			}
			time.Sleep(20 * time.Millisecond)
		}
		release()
		back := time.Now()
		c.awaitReady(c.nodes[0], true, back)
		ready := c.awaitReady(c.nodes[1], true, back)
		over()
		t.Logf("%d times unavailable; slowest answer %v; ready %v after there were connections again", told, slowest.Round(time.Millisecond), ready.Round(time.Millisecond))
		if slowest > 6*time.Second || ready > 5*time.Second {
			t.Errorf("the slowest answer took %v, both nodes were ready after %v", slowest, ready)
		}
		if told == 0 {
			t.Error("the connections were not exhausted")
		}
		time.Sleep(time.Second)
	}
	l.end()
	l.verify(false)
}

// exhaust cuts the nodes off and takes every connection until it is told to give
// them back.
func (c *cluster) exhaust() (release func()) {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var held []*pgx.Conn
		defer func() {
			for _, conn := range held {
				_ = conn.Close(context.Background())
			}
		}()
		for ctx.Err() == nil {
			conn, err := pgx.Connect(ctx, c.url)
			if err == nil {
				held = append(held, conn)
			}
			if len(held) > 0 {
				_, _ = held[0].Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'stepmill%'`)
			}
		}
	}()
	return func() {
		stop()
		<-done
	}
}
