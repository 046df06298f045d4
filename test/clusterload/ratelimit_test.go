package clusterload_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// tally is what became of the requests of one minute, by node.
type tally struct{ passed, refused [2]int }

// minutes has the tallies of a workspace by the end of their minutes, as the
// answers name it.
type minutes struct {
	mu sync.Mutex
	of map[string]*tally
}

func (m *minutes) note(end string, node int, passed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[end] == nil {
		m.of[end] = &tally{}
	}
	if passed {
		m.of[end].passed[node]++
	} else {
		m.of[end].refused[node]++
	}
}

// spent is a minute in which every node that is busy has refused that many
// requests, and every other one was asked too; nil while there is none.
func (m *minutes) spent(busy [2]bool, refused int) *tally {
	m.mu.Lock()
	defer m.mu.Unlock()
next:
	for _, t := range m.of {
		for node := range busy {
			if busy[node] && t.refused[node] < refused || t.passed[node]+t.refused[node] == 0 {
				continue next
			}
		}
		return t
	}
	return nil
}

// Many clients use up the limit of a workspace on two nodes at once. Together
// the nodes let through what the limit says and no more, and hardly less: also
// when one of them took some of it and then has nothing to do.
func TestRateLimitAcrossNodes(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	c := start(t, 2)
	for _, tc := range []struct {
		limit int
		// busy nodes are asked without end, others now and then.
		busy [2]bool
	}{
		{60, [2]bool{true, true}},
		{600, [2]bool{true, true}},
		{600, [2]bool{true, false}},
	} {
		var made struct {
			APIKey string `json:"api_key"`
		}
		c.nodes[0].Expect(t, 201, "POST", "/v1/workspaces", map[string]any{"name": "limited", "plan": "enterprise", "requests_per_minute": tc.limit}).Decode(t, &made)
		begun := time.Now()
		m := c.hammer(made.APIKey, tc.limit, tc.busy)
		for end, now := range m.of {
			if passed := now.passed[0] + now.passed[1]; passed > tc.limit {
				t.Errorf("%d and %d requests passed in the minute that ended at %s, with a limit of %d", now.passed[0], now.passed[1], end, tc.limit)
			}
		}
		last := m.spent(tc.busy, refusals)
		t.Logf("limit %d: %v passed and %v were refused after %s", tc.limit, last.passed, last.refused, ms(time.Since(begun)))
		if passed := last.passed[0] + last.passed[1]; passed < tc.limit*9/10 {
			t.Errorf("%d requests passed before others were refused, with a limit of %d", passed, tc.limit)
		}
		for node, busy := range tc.busy {
			if busy && last.passed[node] == 0 {
				t.Errorf("node %d let nobody through", node)
			}
		}
	}
}

// refusals is how many times a busy node has to refuse before it is believed
// that it lets nobody through any more.
const refusals = 100

// hammer has clients ask both nodes until the limit of a minute is used up.
func (c *cluster) hammer(key string, limit int, busy [2]bool) *minutes {
	c.t.Helper()
	const clients = 32 // on each busy node
	m := &minutes{of: map[string]*tally{}}
	deadline := time.Now().Add(30 * time.Second * patience)
	var group sync.WaitGroup
	for node, api := range c.nodes {
		client, many, pause := api.With(key), clients, time.Duration(0)
		if !busy[node] {
			many, pause = 1, 200*time.Millisecond
		}
		for range many {
			group.Go(func() {
				for m.spent(busy, refusals) == nil && !c.t.Failed() {
					if time.Now().After(deadline) {
						c.t.Errorf("the limit of %d is not used up", limit)
					}
					c.request(client, m, node, limit)
					time.Sleep(pause)
				}
			})
		}
	}
	group.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
	return m
}

// request sends one request, and holds its answer to what is said of limits.
func (c *cluster) request(client *harness.Client, m *minutes, node, limit int) {
	answer, err := client.Do(c.t.Context(), "GET", "/v1/workflows", nil)
	if err != nil {
		c.t.Error(err)
		return
	}
	h := answer.Header
	passed := answer.Status == 200
	refused := answer.Status == 429 && code(answer) == "rate_limited" && h.Get("Retry-After") != "" && h.Get("X-RateLimit-Remaining") == "0"
	if !passed && !refused || h.Get("X-RateLimit-Limit") != strconv.Itoa(limit) || h.Get("X-RateLimit-Reset") == "" {
		c.t.Errorf("a request was answered with %d %s %v", answer.Status, answer.Body, h)
		return
	}
	m.note(h.Get("X-RateLimit-Reset"), node, passed)
}
