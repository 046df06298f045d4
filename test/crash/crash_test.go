// Package crash_test kills and stops the real server, and then checks everything it has
// acknowledged: nothing is lost, nothing happens twice, and every accepted run ends
// exactly once.
package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) {
	harness.SetParallel(4) // most tests mostly wait
	harness.Main(m)
}

// timeout is how long a test waits for something that must happen.
const timeout = harness.Timeout

// status is the status of a run or a step.
type status string

const (
	running   status = "running"
	succeeded status = "succeeded"
	failed    status = "failed"
	cancelled status = "cancelled"
)

// runBody is a run as the API returns it.
type runBody struct {
	ID              string     `json:"id"`
	WorkflowID      string     `json:"workflow_id"`
	WorkflowVersion int        `json:"workflow_version"`
	Status          status     `json:"status"`
	StartedAt       time.Time  `json:"started_at"`
	FinishedAt      *time.Time `json:"finished_at"`
	Trigger         struct {
		Payload struct {
			N int64 `json:"n"`
		} `json:"payload"`
	} `json:"trigger"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	WaitingFor *struct {
		Reason string     `json:"reason"`
		StepID *string    `json:"step_id"`
		Until  *time.Time `json:"until"`
	} `json:"waiting_for"`
	RetryOf *string    `json:"retry_of"`
	Steps   []stepBody `json:"steps"`
}

type stepBody struct {
	StepID     string     `json:"step_id"`
	Status     status     `json:"status"`
	Attempt    int        `json:"attempt"`
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Output     struct {
		N           *int64     `json:"n"`
		WaitedUntil *time.Time `json:"waited_until"`
	} `json:"output"`
	Error *struct {
		Code string `json:"code"`
	} `json:"error"`
}

type workflowBody struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Version     int     `json:"version"`
	Steps       []step  `json:"steps"`
}

// page is a page of a list, with the members of items that tests use.
type page struct {
	Data []struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		URL    string `json:"url"`
		RunID  string `json:"run_id"`
		Status status `json:"status"`
	} `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// list reads a whole list, page by page.
func list(t *testing.T, c *harness.Client, path string) page {
	t.Helper()
	var all page
	for cursor := ""; ; {
		var next page
		c.Expect(t, 200, "GET", path+"?limit=100"+cursor, nil).Decode(t, &next)
		all.Data = append(all.Data, next.Data...)
		if next.NextCursor == nil {
			return all
		}
		cursor = "&cursor=" + *next.NextCursor
	}
}

// createWorkflow makes a workflow with the steps of a chain.
func createWorkflow(t *testing.T, c *harness.Client, name string, does chain) string {
	t.Helper()
	var w workflowBody
	c.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": name}).Decode(t, &w)
	c.Expect(t, 200, "PATCH", "/v1/workflows/"+w.ID, map[string]any{"steps": does.steps()})
	return w.ID
}

func startRun(t *testing.T, c *harness.Client, workflowID string, n int64) runBody {
	t.Helper()
	var r runBody
	c.Expect(t, 201, "POST", "/v1/workflows/"+workflowID+"/runs", payload(n)).Decode(t, &r)
	return r
}

func getRun(t *testing.T, c *harness.Client, id string) runBody {
	t.Helper()
	var r runBody
	c.Expect(t, 200, "GET", "/v1/runs/"+id, nil).Decode(t, &r)
	return r
}

// awaitEnd waits until a run has ended.
func awaitEnd(t *testing.T, c *harness.Client, id string) runBody {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; {
		r := getRun(t, c, id)
		if r.Status != running {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("INVARIANT: run %s is still running after %v: %+v", id, timeout, r)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func payload(n int64) map[string]any { return map[string]any{"payload": map[string]any{"n": n}} }

// restart starts a server on the directory of one that has exited, with the same admin
// key.
func restart(t *testing.T, was *harness.Server, args ...string) *harness.Server {
	t.Helper()
	s := harness.Start(t, was.Dir, args...)
	s.Key = was.Key
	return s
}

// copyData copies the database and its write-ahead log to a new directory.
func copyData(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{"stepmill.db", "stepmill.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) && name != "stepmill.db" {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("copy the data: %w", err))
		}
	}
	return to
}
