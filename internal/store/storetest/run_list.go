package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// seedRunSpec is a run that is written directly into the tables.
type seedRunSpec struct {
	of                workflow.Workflow
	status            run.Status
	started, finished time.Time
	trigger           string // defaults to manual
	code              string // error code
	steps, attempts   int
}

// seed writes many runs at once, each with the given number of steps, and returns
// their ids. The runs of one call are in the order of their start.
func (w *harness) seed(t *testing.T, runs ...seedRunSpec) []string {
	t.Helper()
	ids, source := make([]string, len(runs)), &uid.Source{}
	for i, r := range runs {
		ids[i] = source.New(uid.Run, r.started)
	}
	err := w.rows.Write(t.Context(), func(c database.Conn) error {
		for i, r := range runs {
			if err := seedRun(c, ids[i], r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func seedRun(c database.Conn, id string, r seedRunSpec) error {
	var finished, code any
	if r.status != run.Running {
		finished = r.finished
	}
	if r.code != "" {
		code = r.code
	}
	if r.trigger == "" {
		r.trigger = run.Manual
	}
	if _, err := c.Exec(`INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, finished_at, trigger_type, error_code, error_text, payload)
		VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, 'It failed.', '{}')`,
		id, r.of.WorkspaceID, r.of.ID, string(r.status), r.started, finished, r.trigger, code); err != nil {
		return err
	}
	if r.status == run.Running {
		if _, err := c.Exec(`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch) VALUES ($1, $2, $3, 1)`, id, r.of.WorkspaceID, r.of.ID); err != nil {
			return err
		}
	}
	for i := range r.steps {
		if _, err := c.Exec(`INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, finished_at, input, output)
			VALUES ($1, $2, $3, 'n', 'data.set', 'succeeded', 1, $4, $4, $4, '{}', '{}')`, id, fmt.Sprintf("lines[%d].x", i), i, r.started); err != nil {
			return err
		}
	}
	for i := range r.attempts {
		if _, err := c.Exec(`INSERT INTO step_attempts (run_id, path, attempt, started_at, finished_at, error_code, error_text)
			VALUES ($1, 'lines', $2, $3, $3, 'timed_out', 'x')`, id, i+1, r.started); err != nil {
			return err
		}
	}
	return nil
}

func listedIDs(page paging.Page[run.Listed]) []string {
	return mapped(page.Items, func(r run.Listed) string { return r.ID })
}

func testAllRuns(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	first, second := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	returns(w.Workflows.UpdateWorkflow(ctx, renamed(second, "Über_100%")))(t, "rename", true)
	stranger := w.workflow(t, w.workspace(t).ID)
	base := time.UnixMilli(clock.Now().UnixMilli()).UTC()
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	end := base.Add(time.Hour)
	ids := w.seed(t,
		seedRunSpec{of: first, status: run.Succeeded, started: at(0), finished: end},
		seedRunSpec{of: second, status: run.Failed, started: at(1), finished: end, code: "timed_out"},
		seedRunSpec{of: stranger, status: run.Failed, started: at(1), finished: end, code: "timed_out"},
		seedRunSpec{of: first, status: run.Cancelled, started: at(2), finished: end},
		seedRunSpec{of: second, status: run.Running, started: at(3), trigger: "schedule"},
		seedRunSpec{of: stranger, status: run.Running, started: at(3)},
		seedRunSpec{of: first, status: run.Failed, started: at(4), finished: end, code: "http_error"},
		seedRunSpec{of: second, status: run.Succeeded, started: at(5), finished: end, trigger: "schedule"},
	)
	tests := []struct {
		name   string
		filter run.Filter
		want   []int
	}{
		{"all", run.Filter{}, []int{7, 6, 4, 3, 1, 0}},
		{"running", run.Filter{Status: run.Running}, []int{4}},
		{"succeeded", run.Filter{Status: run.Succeeded}, []int{7, 0}},
		{"failed", run.Filter{Status: run.Failed}, []int{6, 1}},
		{"cancelled", run.Filter{Status: run.Cancelled}, []int{3}},
		{"of a workflow", run.Filter{WorkflowID: second.ID}, []int{7, 4, 1}},
		{"of a workflow, running", run.Filter{WorkflowID: second.ID, Status: run.Running}, []int{4}},
		{"of a workflow, failed", run.Filter{WorkflowID: second.ID, Status: run.Failed}, []int{1}},
		{"of another's workflow", run.Filter{WorkflowID: stranger.ID}, nil},
		{"of another's workflow, running", run.Filter{WorkflowID: stranger.ID, Status: run.Running}, nil},
		{"of another's workflow, failed", run.Filter{WorkflowID: stranger.ID, Status: run.Failed}, nil},
		{"by trigger", run.Filter{Trigger: "schedule"}, []int{7, 4}},
		{"by trigger and status", run.Filter{Trigger: "schedule", Status: run.Running}, []int{4}},
		{"from a time on", run.Filter{StartedAfter: new(at(4))}, []int{7, 6}},
		{"from a moment later on", run.Filter{StartedAfter: new(at(4).Add(time.Microsecond))}, []int{7}},
		{"up to a time", run.Filter{StartedBefore: new(at(2))}, []int{1, 0}},
		{"up to a moment later", run.Filter{StartedBefore: new(at(2).Add(time.Microsecond))}, []int{3, 1, 0}},
		{"between", run.Filter{StartedAfter: new(at(1)), StartedBefore: new(at(4)), Status: run.Running}, []int{4}},
		{"from the end on", run.Filter{StartedAfter: new(at(2)), StartedBefore: new(at(2))}, nil},
		{"by id", run.Filter{Text: ids[3]}, []int{3}},
		{"by id and another status", run.Filter{Text: ids[3], Status: run.Failed}, nil},
		{"by id of a running one", run.Filter{Text: ids[4], Status: run.Running}, []int{4}},
		{"by id and another time", run.Filter{Text: ids[3], StartedAfter: new(at(3))}, nil},
		{"by id of another's", run.Filter{Text: ids[2]}, nil},
		{"by name", run.Filter{Text: "üBER_1"}, []int{7, 4, 1}},
		{"by name with what is special elsewhere", run.Filter{Text: "über%"}, nil},
		{"by name and status", run.Filter{Text: "a work", Status: run.Failed}, []int{6}},
		{"by error code", run.Filter{Text: "timed_"}, []int{1}},
		{"by error code among the cancelled", run.Filter{Text: "timed_", Status: run.Cancelled}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w.checkListed(t, ws.ID, test.filter, mapped(test.want, func(i int) string { return ids[i] }))
		})
	}
	t.Run("the content of an item", func(t *testing.T) {
		page := must(w.Runs.AllRuns(ctx, ws.ID, run.Filter{Status: run.Failed}, fullPage))(t)
		equal(t, "item", page.Items[1], run.Listed{
			Item:         run.Item{ID: ids[1], WorkflowID: second.ID, Status: run.Failed, StartedAt: at(1), FinishedAt: &end},
			WorkflowName: "Über_100%", Trigger: run.Manual, Error: &run.Failure{Code: "timed_out", Message: "It failed."},
		})
	})
	t.Run("who started a run", func(t *testing.T) { testStartedBy(t, w) })
	t.Run("scans a bounded number of rows", func(t *testing.T) { testScanLimit(t, newHarness(t, w.open)) })
	t.Run("of a deleted workflow", func(t *testing.T) { testListedDeleted(t, w, first) })
}

func testListedDeleted(t *testing.T, w *harness, wf workflow.Workflow) {
	w.deleteWorkflow(t, wf)
	for _, status := range append(run.Statuses(), "") {
		for _, item := range must(w.Runs.AllRuns(t.Context(), wf.WorkspaceID, run.Filter{Status: status}, fullPage))(t).Items {
			if item.WorkflowID == wf.ID {
				t.Errorf("among the %s ones: %+v", status, item)
			}
		}
	}
	empty(w.Runs.AllRuns(t.Context(), wf.WorkspaceID, run.Filter{Status: run.Cancelled}, fullPage))(t, "cancelled")
}

// checkListed reads a list on one page and row by row.
func (w *harness) checkListed(t *testing.T, workspaceID string, filter run.Filter, want []string) {
	t.Helper()
	equal(t, "runs", listedIDs(must(w.Runs.AllRuns(t.Context(), workspaceID, filter, fullPage))(t)), want)
	var seen []string
	for next, first := "", true; first || next != ""; first = false {
		page := must(w.Runs.AllRuns(t.Context(), workspaceID, filter, paging.Request{Limit: 1, After: next}))(t)
		seen, next = append(seen, listedIDs(page)...), page.Next
	}
	equal(t, "one by one", seen, want)
}

// testScanLimit looks for a rare match among more runs than one page scans.
func testScanLimit(t *testing.T, w *harness) {
	const looked = 5000
	ctx, wf := t.Context(), w.workflow(t, w.workspace(t).ID)
	base := clock.Now()
	runs := make([]seedRunSpec, looked+10)
	for i := range runs {
		runs[i] = seedRunSpec{of: wf, status: run.Succeeded, started: base.Add(time.Duration(i) * time.Millisecond), finished: base}
	}
	runs[0].trigger, runs[looked].trigger = "rare", "rare"
	ids := w.seed(t, runs...)
	filter := run.Filter{Trigger: "rare"}
	page := must(w.Runs.AllRuns(ctx, wf.WorkspaceID, filter, paging.Request{Limit: 2}))(t)
	equal(t, "first page", listedIDs(page), []string{ids[looked]})
	equal(t, "its end", page.Next, ids[10])
	page = must(w.Runs.AllRuns(ctx, wf.WorkspaceID, filter, paging.Request{Limit: 2, After: page.Next}))(t)
	equal(t, "last page", listedIDs(page), []string{ids[0]})
	equal(t, "its end", page.Next, "")
	empty(w.Runs.AllRuns(ctx, wf.WorkspaceID, run.Filter{Trigger: "none"}, paging.Request{Limit: 1, After: ids[10]}))(t, "nothing to find")
	page = must(w.Runs.AllRuns(ctx, wf.WorkspaceID, run.Filter{Trigger: "none"}, fullPage))(t)
	equal(t, "an empty page", listedIDs(page), nil)
	equal(t, "its end", page.Next, ids[10])
}

func testSteps(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r := w.start(t, wf, "node_1")
	failed := newStep("lines[1].reserve", 3, run.StepFailed)
	failed.Error, failed.Attempt = &run.Failure{Code: "timed_out", Message: "It took too long.", StepID: failed.Path}, 3
	failed.Output = []byte(`{"out":1}`)
	steps := []run.Step{
		newStep("z", 0, run.StepSucceeded), newStep("lines", 1, run.StepRunning), newStep("lines[0].reserve", 2, run.StepSucceeded), failed,
		newStep("lines[10].reserve", 4, run.StepSucceeded), newStep("lines[0].parts", 5, run.StepRunning), newStep("lines[0].parts[0].pick", 6, run.StepSucceeded),
		newStep("lines_too[0].reserve", 7, run.StepSucceeded), newStep("line", 8, run.StepWaiting),
	}
	attempts := []run.Attempt{failedAttempt(newStep(failed.Path, 3, run.StepRunning)), failedAttempt(newStep(failed.Path, 3, run.StepRunning))}
	attempts[1].Number = 2
	other := failedAttempt(steps[4])
	shuffled := slices.Clone(steps)
	slices.Reverse(shuffled)
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: shuffled, Attempts: append(slices.Clone(attempts), other)}))(t, "commit", true)

	for _, test := range []struct {
		name   string
		filter run.StepFilter
		want   []int
	}{
		{"all", run.StepFilter{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"by status", run.StepFilter{Status: run.StepFailed}, []int{3}},
		{"of a block", run.StepFilter{Block: "lines"}, []int{2, 3, 4, 5}},
		{"of a block in a block", run.StepFilter{Block: "lines[0].parts"}, []int{6}},
		{"of a block by status", run.StepFilter{Block: "lines", Status: run.StepRunning}, []int{5}},
		{"of what is no block", run.StepFilter{Block: "z"}, nil},
		{"of a round", run.StepFilter{Block: "lines[0]"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := mapped(test.want, func(i int) run.Step {
				step := steps[i]
				step.Input, step.Output = nil, nil
				return step
			})
			for _, limit := range []int{fullPage.Limit, 2} {
				var seen []run.Step
				for next, first := "", true; first || next != ""; first = false {
					page, ok, err := w.Runs.Steps(ctx, ws.ID, r.ID, test.filter, paging.Request{Limit: limit, After: next})
					returns(ok, err)(t, "steps", true)
					seen, next = append(seen, page.Items...), page.Next
				}
				equal(t, fmt.Sprintf("in pages of %d", limit), seen, want)
			}
		})
	}
	t.Run("one", func(t *testing.T) {
		step, ok, err := w.Runs.Step(ctx, ws.ID, r.ID, failed.Path)
		returns(ok, err)(t, "step", true)
		equal(t, "step", found(step, err)(t), run.StepDetail{Step: failed, Attempts: attempts})
		step, ok, err = w.Runs.Step(ctx, ws.ID, r.ID, "lines[2].reserve")
		returns(ok, err)(t, "an unknown step", true)
		missing(step, err)(t, "an unknown step")
	})
	w.checkNoSteps(t, "an unknown run", ws.ID, "run_none", failed.Path)
	w.checkNoSteps(t, "another's run", w.workspace(t).ID, r.ID, failed.Path)
	w.deleteWorkflow(t, wf)
	w.checkNoSteps(t, "a run of a deleted workflow", ws.ID, r.ID, failed.Path)
}

func (w *harness) checkNoSteps(t *testing.T, what, workspaceID, runID, path string) {
	t.Helper()
	page, ok, err := w.Runs.Steps(t.Context(), workspaceID, runID, run.StepFilter{}, fullPage)
	returns(ok, err)(t, "steps of "+what, false)
	empty(page, err)(t, "steps of "+what)
	step, ok, err := w.Runs.Step(t.Context(), workspaceID, runID, path)
	returns(ok, err)(t, "a step of "+what, false)
	missing(step, err)(t, "a step of "+what)
}

// allRunsFilters is the number of combinations of filters.
const allRunsFilters = 1 << 5

// listAllRuns lists the runs of all workflows with a combination of filters that
// matches those of one workflow. Runs of another are interspersed.
func listAllRuns(combination int) func(*testing.T, *harness) pagedList {
	return func(t *testing.T, w *harness) pagedList {
		wf := w.workflow(t, w.workspace(t).ID)
		change := renamed(w.workflow(t, wf.WorkspaceID), "Another")
		returns(w.Workflows.UpdateWorkflow(t.Context(), change))(t, "rename", true)
		filter := combinedFilter(combination, wf)
		of := pagedList{
			kind: uid.Run,
			insert: func(ctx context.Context, id string) error {
				start := newStart(t, wf, "node_1")
				start.Run.ID, start.Event.RunID = id, id
				return errors.Join(rejected(w.Runs.StartRun(ctx, newStart(t, change.Workflow, "node_1"))), rejected(w.Runs.StartRun(ctx, start)))
			},
			page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
				got, err := w.Runs.AllRuns(ctx, wf.WorkspaceID, filter, page)
				return listedIDs(got), got.Next, err
			},
		}
		if filter.Status == run.Running {
			of.remove = func(ctx context.Context, id string) error {
				ending := run.Run{ID: id, WorkspaceID: wf.WorkspaceID, WorkflowID: wf.ID}
				return rejected(w.Commit(ctx, firstLease(ending), ending, newFinish(t, ending, run.Succeeded)))
			}
		}
		return of
	}
}

func combinedFilter(combination int, wf workflow.Workflow) run.Filter {
	filter, now := run.Filter{Text: strings.ToUpper(wf.Name[:3])}, clock.Now()
	for bit, set := range []func(){
		func() { filter.Status = run.Running },
		func() { filter.WorkflowID, filter.Text = wf.ID, "" },
		func() { filter.Trigger = run.Manual },
		func() { filter.StartedAfter = new(now.Add(-time.Hour)) },
		func() { filter.StartedBefore = new(now.Add(time.Hour)) },
	} {
		if combination&(1<<bit) != 0 {
			set()
		}
	}
	return filter
}
