// Package cluster_test injects faults into nodes that share a PostgreSQL database:
// nodes are killed, paused and partitioned, and their database crashes, loses
// responses, runs out of connections or is slow. Afterwards everything that was
// acknowledged is compared with the database and with the calls that steps made. The
// tests assert no durations: `go run ./bench -promises` measures them.
package cluster_test

import (
	"cmp"
	"database/sql"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/faultproxy"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/installation"
	"github.com/stepmill/stepmill/test/postgres"
	"github.com/stepmill/stepmill/test/tables"
)

func TestMain(m *testing.M) {
	// These tests mostly wait for leases to expire.
	harness.SetParallel(4)
	harness.Main(m)
}

const (
	// longLease is how long a node keeps its runs without a heartbeat: long enough that
	// none loses them on a busy machine. shortLease is for tests of takeover.
	longLease, shortLease = time.Minute, 3 * time.Second
	// outageTimeout is the limit on the time of transactions in tests of a database that
	// does not respond. In others the limit is harness.Timeout.
	outageTimeout = 20 * time.Second

	lostLease    = "lost the lease of a run"
	releasedRuns = "dropping its runs"
	tookOver     = "a node has expired; took over its runs"
)

// options configures a cluster.
type options struct {
	nodes int
	// lease defaults to longLease.
	lease time.Duration
	// timeout is the limit on the time of transactions. It defaults to harness.Timeout.
	timeout time.Duration
	// server asks for a separate PostgreSQL server, for tests that stop it or exhaust
	// its connections.
	server *postgres.Options
	// proxied puts a proxy between each node and the database.
	proxied bool
	// release is that of the nodes, by its number; 0 for the present one.
	release int
	args    []string
}

// cluster is a database with the nodes that share it.
type cluster struct {
	t       *testing.T
	options options
	seed    uint64
	pg      *postgres.Server // nil unless the cluster has its own
	url     string
	db      *sql.DB // a direct connection
	key     string  // of the first workspace
	dir     string  // holds the master key
	nodes   []*member

	mu     sync.Mutex
	faults []fault
	losses []loss
	stalls []stall
}

// member is a node. Successive processes run under its name.
type member struct {
	*harness.Server
	name    string
	proxy   *faultproxy.Proxy
	release int // 0: the present one

	mu      sync.Mutex
	avoided bool // clients send no requests to it
}

// fault is a period in which a test disturbed one node or all of them.
type fault struct {
	node     string // all nodes if empty
	from, to time.Time
}

// loss is the moment at which a node released its runs because it could not renew its
// lease in time.
type loss struct {
	node string
	at   time.Time
}

// stall is a period in which the tests, and probably the nodes, got no CPU time.
type stall struct {
	until  time.Time
	length time.Duration
}

func newCluster(t *testing.T, o options) *cluster {
	t.Helper()
	o.lease, o.timeout = cmp.Or(o.lease, longLease), cmp.Or(o.timeout, harness.Timeout)
	c := &cluster{t: t, options: o, seed: harness.Seed(t)}
	if o.server == nil {
		made := installation.New(t)
		c.url, c.dir, c.key = made.URL, made.Dir, made.AdminKey
	} else {
		c.pg = postgres.Start(t, *o.server)
		c.url, c.dir = c.pg.NewDatabase(t), t.TempDir()
		if err := harness.WriteMasterKey(filepath.Join(c.dir, "master.key")); err != nil {
			t.Fatal(err)
		}
	}
	c.db = tables.OpenPostgres(t, c.url)
	for i := range o.nodes {
		m := &member{name: string(rune('a' + i)), release: o.release}
		if o.proxied {
			m.proxy = faultproxy.Start(t, faultproxy.Options{Target: c.address(), Postgres: true, Seed: c.seed + uint64(i)})
		}
		c.nodes = append(c.nodes, m)
		c.start(m)
		if c.key == "" {
			c.key = m.AwaitKey(t)
		}
		m.Key = c.key
	}
	go c.watch()
	return c
}

func (c *cluster) address() string {
	u, err := url.Parse(c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	return u.Host
}

// start starts a process for a node.
func (c *cluster) start(m *member) {
	c.t.Helper()
	database := c.url
	if m.proxy != nil {
		u, _ := url.Parse(c.url)
		u.Host = m.proxy.Addr()
		database = u.String()
	}
	s := harness.StartWith(c.t, harness.Options{
		Dir: c.dir, Database: database, Release: m.release,
		Args:       append(nodeArgs(m.name, c.options.lease, c.options.timeout), c.options.args...),
		CountLines: []string{lostLease, releasedRuns, tookOver},
	})
	s.Key = c.key
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Server, m.avoided = s, false
}

// nodeArgs returns the arguments of a node.
func nodeArgs(name string, lease, timeout time.Duration) []string {
	return []string{"--node-name", name, "--node-lease", lease.String(), "--database-timeout", timeout.String(), "--egress-allow=127.0.0.0/8"}
}

// avoid sets whether clients avoid a node. A new process of the node resets it.
func (m *member) avoid(avoided bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.avoided = avoided
}

// client returns a client of the node, or nil while clients avoid it.
func (m *member) client() *harness.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.avoided {
		return nil
	}
	return m.Client
}

// countLogged counts lines in the log of the current process.
func (m *member) countLogged(text string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.CountLogged(text)
}

// countLogged counts lines in the logs of the current processes.
func (c *cluster) countLogged(text string) int {
	n := 0
	for _, m := range c.nodes {
		n += m.countLogged(text)
	}
	return n
}
