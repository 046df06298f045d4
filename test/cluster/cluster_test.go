// Package cluster_test does to nodes that share a PostgreSQL database what
// happens to such nodes: they are killed, paused and cut off, their database is
// stopped, loses answers, is full or slow. Afterwards everything that was
// acknowledged is held against the database and against what was seen outside.
package cluster_test

import (
	"context"
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/test/faultproxy"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	// lease is the life of a node in most tests: as short as a busy machine
	// allows.
	lease = 3 * time.Second
	// settleTime is how soon after the last fault every run must have ended.
	settleTime = 60 * time.Second
	// slack is what a busy machine may add to a promise.
	slack = 3

	lostLease = "the lease of a run is lost"
	letGo     = "it lets go of them"
	tookOver  = "a node is gone; others go on with its runs"
)

// soak tells that there is time for more of everything.
func soak() bool { return os.Getenv("STEPMILL_SOAK") != "" }

// rounds is how often something is done.
func rounds(few int) int {
	if soak() {
		return 10 * few
	}
	return few
}

// options say what a cluster is made of.
type options struct {
	nodes    int
	lease    time.Duration
	postgres postgres.Options
	// proxied puts a proxy between each node and the database.
	proxied bool
	// errors are those that nodes log because of what is done to them.
	errors string
	args   []string
}

// cluster is a database with nodes that share it.
type cluster struct {
	t       *testing.T
	options options
	seed    uint64
	pg      *postgres.Server
	url     string
	tables  *pgxpool.Pool // straight to the database
	key     string        // of the first workspace
	master  string
	nodes   []*member

	mu     sync.Mutex
	faults []fault
}

// member is one of the nodes: a process after the other under one name.
type member struct {
	*harness.Server
	name  string
	proxy *faultproxy.Proxy

	mu   sync.Mutex
	away bool // nobody should ask it
}

// fault is a time in which something was wrong.
type fault struct{ from, to time.Time }

func newCluster(t *testing.T, o options) *cluster {
	t.Helper()
	c := &cluster{t: t, options: o, seed: harness.Seed(t), pg: postgres.Start(t, o.postgres)}
	c.url = c.pg.NewDatabase(t)
	c.master = filepath.Join(t.TempDir(), "master.key")
	if err := os.WriteFile(c.master, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.tables, err = pgxpool.New(context.Background(), c.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.tables.Close)
	for i := range o.nodes {
		m := &member{name: string(rune('a' + i))}
		if o.proxied {
			m.proxy = faultproxy.Start(t, faultproxy.Options{Target: c.address(), Postgres: true, Seed: c.seed + uint64(i)})
		}
		c.nodes = append(c.nodes, m)
		c.start(m)
		if i == 0 {
			c.key = m.AwaitKey(t)
		}
		m.Key = c.key
	}
	return c
}

func (c *cluster) address() string {
	u, err := url.Parse(c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	return u.Host
}

// start starts a process under the name of a node.
func (c *cluster) start(m *member) {
	c.t.Helper()
	database := c.url
	if m.proxy != nil {
		u, _ := url.Parse(c.url)
		u.Host = m.proxy.Addr()
		database = u.String()
	}
	s := harness.StartWith(c.t, harness.Options{
		Args: append([]string{
			"--listen", "127.0.0.1:0", "--database-url", database, "--master-key-file", c.master, "--node-name", m.name,
			"--node-lease", c.options.lease.String(), "--egress-allow=127.0.0.0/8",
		}, c.options.args...),
		Notice: []string{lostLease, letGo, tookOver},
	})
	if c.options.errors != "" {
		s.ExpectErrors(c.options.errors)
	}
	s.Key = c.key
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Server, m.away = s, false
}

// leave has nobody ask a node until it is started again or is back.
func (m *member) leave(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

// client is how to reach the node, nil while nobody should.
func (m *member) client() *harness.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil
	}
	return m.Client
}

// suffer notes a fault: it lasts from now until the function it returns is
// called and every node had time for a heartbeat, after which what it did to runs
// is over.
func (c *cluster) suffer() (over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.faults)
	c.faults = append(c.faults, fault{from: time.Now()})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults[n].to = time.Now().Add(lease / 10)
	}
}

// faultBetween tells whether something was wrong between two moments.
func (c *cluster) faultBetween(from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		if f.from.Before(to) && (f.to.IsZero() || f.to.After(from)) {
			return true
		}
	}
	return false
}

// noticed counts lines in the logs of the processes that run now.
func (c *cluster) noticed(text string) int {
	n := 0
	for _, m := range c.nodes {
		n += m.Noticed(text)
	}
	return n
}
