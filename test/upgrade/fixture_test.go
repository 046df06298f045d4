package upgrade_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// fixture describes data that a release wrote: what a later release must find in it.
type fixture struct {
	Key      string            `json:"key"`      // an API key
	Hook     string            `json:"hook"`     // the path of a webhook trigger
	Ended    map[string]string `json:"ended"`    // statuses of runs that had ended, by id
	Outputs  map[string]string `json:"outputs"`  // the outputs of their last steps, as JSON
	Asking   string            `json:"asking"`   // a run that waits for an approval
	Waiting  string            `json:"waiting"`  // a run that waits for a time that has passed
	Sleeping string            `json:"sleeping"` // a run that waits for a year
	Holding  string            `json:"holding"`  // a run that waits for an approval and holds a concurrency limit of 1
	Queued   string            `json:"queued"`   // a run that is queued behind it
}

type runBody struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Steps  []struct {
		StepID string          `json:"step_id"`
		Output json.RawMessage `json:"output"`
	} `json:"steps"`
}

func (r runBody) lastOutput() string {
	if len(r.Steps) == 0 {
		return ""
	}
	return string(r.Steps[len(r.Steps)-1].Output)
}

// usesSecret is a step whose output shows that a secret can be decrypted.
var usesSecret = flow.Step("after", "code.js",
	`{"code": "return input.token.length + \" in \" + input.region", "input": {"token": "${{ secrets.token }}", "region": "${{ vars.region }}"}}`)

// secretOutput is the output of usesSecret.
const secretOutput = `{"value":"23 in eu"}`

// fill makes the data of a fixture with features that every release has.
func fill(t *testing.T, c *harness.Client) fixture {
	t.Helper()
	f := fixture{Key: c.Key, Ended: map[string]string{}, Outputs: map[string]string{}}
	c.Expect(t, http.StatusCreated, "PUT", "/v1/secrets/token", map[string]any{"value": "a secret of the fixture"})
	c.Expect(t, http.StatusCreated, "PUT", "/v1/variables/region", map[string]any{"value": "eu"})
	for _, steps := range [][]map[string]any{
		{flow.Set("one", "${{ trigger.payload.n + 1 }}"), flow.Set("two", "${{ [steps.one.output, upper(\"ok\")] }}")},
		{{"id": "all", "foreach": "1..3", "steps": []any{flow.Set("each", "${{ item * 2 }}")}}},
		{flow.Step("stop", "flow.stop", `{"status": "failed", "message": "as intended"}`)},
		{usesSecret},
	} {
		var run runBody
		c.Expect(t, http.StatusOK, "POST", "/v1/workflows/"+flow.Define(t, c, steps...)+"/runs", map[string]any{"payload": map[string]any{"n": 41}}, "Prefer", "wait=60").Decode(t, &run)
		f.Ended[run.ID], f.Outputs[run.ID] = run.Status, run.lastOutput()
	}
	f.Asking = start(t, c, flow.Step("ask", "flow.approval", `{"message": "Go on?"}`), usesSecret)
	f.Waiting = start(t, c, flow.Wait("wait", "5s"), usesSecret)
	f.Sleeping = start(t, c, flow.Wait("sleep", "8760h"), usesSecret)
	f.Holding, f.Queued = fillLimit(t, c)
	hooked := flow.Define(t, c, usesSecret)
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+hooked, map[string]any{"state": "active", "triggers": []any{
		map[string]any{"id": "hook", "type": "webhook", "respond": "result", "verify": map[string]any{"scheme": "none"}},
		map[string]any{"id": "yearly", "type": "schedule", "cron": "0 0 1 1 *"},
	}})
	f.Hook = flow.HookPath(t, c, hooked)
	return f
}

// fillLimit starts two runs of a workflow that allows one at a time.
func fillLimit(t *testing.T, c *harness.Client) (holding, queued string) {
	t.Helper()
	limited := flow.Define(t, c, flow.Step("ask", "flow.approval", `{"message": "Next?"}`), usesSecret)
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+limited, map[string]any{"settings": map[string]any{"concurrency": map[string]any{"limit": 1, "key": "${{ trigger.payload.customer }}"}}})
	holding = startOf(t, c, limited)
	var run runBody
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+limited+"/runs", map[string]any{"payload": map[string]any{"customer": "acme"}}).Decode(t, &run)
	return holding, run.ID
}

// start starts a run and waits until it waits.
func start(t *testing.T, c *harness.Client, steps ...map[string]any) string {
	t.Helper()
	return startOf(t, c, flow.Define(t, c, steps...))
}

// startOf is like start for a workflow.
func startOf(t *testing.T, c *harness.Client, workflow string) string {
	t.Helper()
	var run runBody
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": map[string]any{"customer": "acme"}}).Decode(t, &run)
	harness.Eventually(t, "a run waits", func() bool {
		var now struct {
			Steps []struct{ Status string } `json:"steps"`
		}
		c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run.ID, nil).Decode(t, &now)
		return len(now.Steps) > 0 && now.Steps[0].Status == "waiting"
	})
	return run.ID
}

// check checks that a server has the data of a fixture and goes on with it.
func (f fixture) check(t *testing.T, c *harness.Client) {
	t.Helper()
	for id, status := range f.Ended {
		run := f.run(t, c, id)
		if run.Status != status || run.lastOutput() != f.Outputs[id] {
			t.Errorf("run %s is %s with %s; it was %s with %s", id, run.Status, run.lastOutput(), status, f.Outputs[id])
		}
	}
	var again runBody
	for id, status := range f.Ended {
		if status == "failed" {
			c.Expect(t, http.StatusCreated, "POST", "/v1/runs/"+id+"/retry", nil).Decode(t, &again)
		}
	}
	f.awaitEnd(t, c, again.ID, "failed")
	c.Expect(t, http.StatusOK, "POST", fmt.Sprintf("/v1/runs/%s/steps/ask/resume", f.Asking), map[string]any{"approved": true})
	ended := []string{f.Asking, f.Waiting}
	if f.Queued != "" { // not in 0.2.0
		if steps := f.run(t, c, f.Queued).Steps; len(steps) > 0 {
			t.Errorf("the queued run has started: %+v", steps)
		}
		for _, id := range []string{f.Holding, f.Queued} {
			approve(t, c, id)
		}
		ended = append(ended, f.Holding, f.Queued)
	}
	for _, id := range ended {
		if got := f.awaitEnd(t, c, id, "succeeded").lastOutput(); got != secretOutput {
			t.Errorf("run %s has the output %s, want %s", id, got, secretOutput)
		}
	}
	if run := f.run(t, c, f.Sleeping); run.Status != "running" {
		t.Errorf("the run that waits for a year is %s", run.Status)
	}
	c.Expect(t, http.StatusOK, "POST", "/v1/runs/"+f.Sleeping+"/cancel", nil)
	response, err := c.With("").Do(t.Context(), "POST", f.Hook, map[string]any{})
	if err != nil || response.Status != http.StatusOK {
		t.Errorf("a call of the webhook trigger: %d %s %v", response.Status, response.Body, err)
	}
}

// approve waits until a run asks and answers.
func approve(t *testing.T, c *harness.Client, id string) {
	t.Helper()
	harness.Eventually(t, "run "+id+" asks", func() bool {
		response, err := c.Do(t.Context(), "POST", "/v1/runs/"+id+"/steps/ask/resume", map[string]any{"approved": true})
		return err == nil && response.Status == http.StatusOK
	})
}

func (f fixture) run(t *testing.T, c *harness.Client, id string) (run runBody) {
	t.Helper()
	c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+id, nil).Decode(t, &run)
	return run
}

func (f fixture) awaitEnd(t *testing.T, c *harness.Client, id, status string) (run runBody) {
	t.Helper()
	harness.Eventually(t, "run "+id+" ends", func() bool {
		run = f.run(t, c, id)
		return run.Status != "running"
	})
	if run.Status != status {
		t.Errorf("run %s is %s, want %s", id, run.Status, status)
	}
	return run
}
