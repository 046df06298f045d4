package cluster_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
)

// Another client takes every connection that the database allows. The service responds
// with 503 and recovers once connections are free.
func TestConnectionExhaustion(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	c := newCluster(t, options{
		nodes: 2, timeout: outageTimeout, args: []string{"--database-connections=12"},
		server: &postgres.Options{MaxConnections: 40, Settings: map[string]string{"superuser_reserved_connections": "0"}},
	})
	l := newLoad(c)
	l.startClients()
	for range lane.Pick(1, 5) {
		l.awaitMore(10)
		endFault := c.recordFault("")
		release := c.exhaustConnections()
		unavailable := 0
		harness.Eventually(t, "the service responds with 503", func() bool {
			response, err := c.nodes[0].With(l.tenants[0].key).Do(t.Context(), http.MethodGet, "/v1/workflows", nil)
			if err != nil || response.Status != http.StatusOK && response.Status != http.StatusServiceUnavailable {
				t.Errorf("response without connections is %d %s %v", response.Status, response.Body, err)
			}
			if response.Status == http.StatusServiceUnavailable {
				unavailable++
			}
			return unavailable >= 3
		})
		release()
		back := time.Now()
		for _, m := range c.nodes {
			c.awaitReady(m, true)
		}
		endFault()
		t.Logf("all nodes were ready %v after connections were free", time.Since(back).Round(time.Millisecond))
	}
	l.awaitMore(10)
	l.stopClients()
	l.verify(false)
}

// exhaustConnections terminates the connections of the nodes and takes all
// connections until release is called.
func (c *cluster) exhaustConnections() (release func()) {
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
