package clusterload_test

import (
	"testing"

	"github.com/stepmill/stepmill/test/flow"
)

// A workspace uses up its rate limit on two nodes. Together they allow as many requests
// as the limit says, no more and hardly fewer.
func TestRateLimitAcrossNodes(t *testing.T) {
	t.Parallel()
	const limit = 60
	c := startCluster(t, 2)
	for range 3 {
		passed, conclusive := c.exhaustLimit(limit)
		if !conclusive {
			continue
		}
		if passed > limit || passed < limit*9/10 {
			t.Errorf("%d requests passed, want at most %d and at least 90%% of that", passed, limit)
		}
		return
	}
	t.Log("inconclusive: each time the minute ended, or the database was too slow, before the limit was reached")
}

// exhaustLimit makes a workspace with a limit and sends requests to both nodes in turn
// until both reject them. It returns how many passed, and whether all of that took place
// within one minute and without database timeouts.
func (c *cluster) exhaustLimit(limit int) (passed int, conclusive bool) {
	c.t.Helper()
	var made struct {
		APIKey string `json:"api_key"`
	}
	expect(c.t, c.nodes[0].Client, 201, "POST", "/v1/workspaces", map[string]any{"name": "limited", "plan": "enterprise", "requests_per_minute": limit}).Decode(c.t, &made)
	window, rejected := "", [2]bool{}
	for i := 0; !rejected[0] || !rejected[1]; i++ {
		response, err := c.nodes[i%2].With(made.APIKey).Do(c.t.Context(), "GET", "/v1/workflows", nil)
		if err != nil {
			c.t.Fatal(err)
		}
		end := response.Header.Get("X-RateLimit-Reset")
		switch {
		case response.Status == 503, window != "" && end != window:
			return 0, false
		case response.Status == 200:
			passed++
		case response.Status == 429 && flow.ErrorCode(response) == "rate_limited":
			rejected[i%2] = true
		default:
			c.t.Fatalf("response is %d %s", response.Status, response.Body)
		}
		window = end
	}
	return passed, true
}
