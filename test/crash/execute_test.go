package crash_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// execute starts a run and waits until it has ended.
func execute(t *testing.T, c *harness.Client, workflowID string) runBody {
	t.Helper()
	response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+workflowID+"/runs", payload(1), "Prefer", "wait=60")
	if err != nil || response.Status > 201 {
		t.Fatalf("start a run: %v %d %s", err, response.Status, response.Body)
	}
	var end runBody
	response.Decode(t, &end)
	harness.Eventually(t, "the run has ended", func() bool {
		if end.Status == running {
			time.Sleep(2 * time.Second) // the rate limit of a plan is low
			end = getRun(t, c, end.ID)
		}
		return end.Status != running
	})
	return end
}
