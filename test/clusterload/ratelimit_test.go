package clusterload_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// tally counts the requests of one minute by node.
type tally struct{ passed, rejected [2]int }

// windows has the tallies of a workspace by the end of the minute, X-RateLimit-Reset.
type windows struct {
	mu sync.Mutex
	of map[string]*tally
	// unavailable counts requests that failed because the database was too slow.
	unavailable int
}

func (m *windows) record(end string, node int, passed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[end] == nil {
		m.of[end] = &tally{}
	}
	if passed {
		m.of[end].passed[node]++
	} else {
		m.of[end].rejected[node]++
	}
}

// minutes returns how many minutes there were requests in.
func (m *windows) minutes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.of)
}

// exhausted returns a minute in which every busy node rejected that many requests and
// every other node got at least one. It returns nil if there is none.
func (m *windows) exhausted(busy [2]bool, rejected int) *tally {
	m.mu.Lock()
	defer m.mu.Unlock()
next:
	for _, t := range m.of {
		for node := range busy {
			if busy[node] && t.rejected[node] < rejected || t.passed[node]+t.rejected[node] == 0 {
				continue next
			}
		}
		return t
	}
	return nil
}

// Many clients exhaust the rate limit of a workspace on two nodes. Together the nodes
// allow as many requests as the limit says, no more and hardly fewer, even if one
// node leased part of the limit and then gets no more requests.
func TestRateLimitAcrossNodes(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	c := startCluster(t, 2)
	for _, tc := range []struct {
		limit int
		// busy nodes get requests continuously, others now and then.
		busy [2]bool
	}{
		{60, [2]bool{true, true}},
		{600, [2]bool{true, true}},
		{600, [2]bool{true, false}},
	} {
		for attempt := 1; !c.exhaustLimit(tc.limit, tc.busy); attempt++ {
			if attempt == 3 {
				t.Logf("inconclusive: each time the minute ended, or the database was too slow, before the limit of %d was reached", tc.limit)
				break
			}
		}
	}
}

// exhaustLimit makes a workspace with a limit, sends one request to each node, and
// then has clients use up the rest. It reports whether that took place within one
// minute and without database timeouts.
func (c *cluster) exhaustLimit(limit int, busy [2]bool) bool {
	c.t.Helper()
	var made struct {
		APIKey string `json:"api_key"`
	}
	expect(c.t, c.nodes[0].Client, 201, "POST", "/v1/workspaces", map[string]any{"name": "limited", "plan": "enterprise", "requests_per_minute": limit}).Decode(c.t, &made)
	m := &windows{of: map[string]*tally{}}
	// Otherwise a fast node may leave nothing for the other one.
	for node, api := range c.nodes {
		c.request(api.With(made.APIKey), m, node, limit)
	}
	c.hammer(m, made.APIKey, limit, busy)
	for end, now := range m.of {
		if passed := now.passed[0] + now.passed[1]; passed > limit {
			c.t.Errorf("%d and %d requests passed in the minute that ended at %s, want at most %d", now.passed[0], now.passed[1], end, limit)
		}
	}
	last := m.exhausted(busy, minRejections)
	if last == nil || len(m.of) > 1 || m.unavailable > 0 {
		return false
	}
	c.t.Logf("limit %d: %v passed and %v were rejected", limit, last.passed, last.rejected)
	if passed := last.passed[0] + last.passed[1]; passed < limit*9/10 {
		c.t.Errorf("%d requests passed, want at least 90%% of %d", passed, limit)
	}
	for node := range busy {
		if last.passed[node] == 0 {
			c.t.Errorf("node %d allowed no request", node)
		}
	}
	return true
}

// minRejections is how many rejections of a busy node show that it allows no more
// requests.
const minRejections = 100

// hammer sends requests to both nodes until the limit of a minute is exhausted, or until
// that has taken too many minutes.
func (c *cluster) hammer(m *windows, key string, limit int, busy [2]bool) {
	c.t.Helper()
	const clients = 32 // on each busy node
	deadline := time.Now().Add(harness.Timeout)
	var group sync.WaitGroup
	for node, api := range c.nodes {
		client, many, pause := api.With(key), clients, time.Duration(0)
		if !busy[node] {
			many, pause = 1, 200*time.Millisecond
		}
		for range many {
			group.Go(func() {
				for m.exhausted(busy, minRejections) == nil && m.minutes() <= 3 && time.Now().Before(deadline) && !c.t.Failed() {
					c.request(client, m, node, limit)
					time.Sleep(pause)
				}
			})
		}
	}
	group.Wait()
	if m.minutes() == 0 {
		c.t.Errorf("no request was allowed or rejected for %v", harness.Timeout)
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// request sends one request and checks the rate limit headers of the response.
func (c *cluster) request(client *harness.Client, m *windows, node, limit int) {
	response, err := client.Do(c.t.Context(), "GET", "/v1/workflows", nil)
	if err != nil {
		c.t.Error(err)
		return
	}
	h := response.Header
	if response.Status == 503 && h.Get("Retry-After") != "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.unavailable++
		return
	}
	passed := response.Status == 200
	rejected := response.Status == 429 && flow.ErrorCode(response) == "rate_limited" && h.Get("Retry-After") != "" && h.Get("X-RateLimit-Remaining") == "0"
	if !passed && !rejected || h.Get("X-RateLimit-Limit") != strconv.Itoa(limit) || h.Get("X-RateLimit-Reset") == "" {
		c.t.Errorf("response is %d %s %v", response.Status, response.Body, h)
		return
	}
	m.record(h.Get("X-RateLimit-Reset"), node, passed)
}
