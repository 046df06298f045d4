package run_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

func TestMain(m *testing.M) {
	// Each check makes dozens of commits. A flag on the command line takes precedence.
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	m.Run()
}

// followWorld is a store with one workflow. The test commits the decisions of its runs.
type followWorld struct {
	store    *store.DB
	service  *run.Service
	actor    auth.Actor
	workflow workflow.Workflow
}

// emptyQueue is a queue that is always empty.
type emptyQueue struct{ run.Queue }

func newFollowWorld(t testing.TB) *followWorld {
	t.Helper()
	db := sqlitetest.Open(t)
	hub, now := pubsub.NewBroker(), clock.Now()
	st := store.New(db, store.Notify{
		Changed: hub.Publish, Ended: func(e run.Completion) { hub.Publish(e.RunID) }, WorkflowDeleted: func(string) { hub.PublishAll() },
	})
	ws := auth.Workspace{ID: uid.New(uid.Workspace), Name: "w", Plan: auth.Pro, RequestsPerMinute: 600, CreatedAt: now, UpdatedAt: now}
	wf := workflow.Workflow{ID: uid.New(uid.Workflow), WorkspaceID: ws.ID, Name: "w", State: workflow.Draft, Version: 1, Revision: 1, CreatedAt: now, UpdatedAt: now}
	entry := audit.Entry{ID: uid.New(uid.Audit), WorkspaceID: ws.ID, At: now, ActorType: audit.ActorKey}
	key := auth.Key{ID: uid.New(uid.Key), WorkspaceID: ws.ID, Lookup: "lookup", Hash: []byte("hash"), CreatedAt: now}
	if err := st.Workspaces.InsertWorkspace(t.Context(), ws, []byte("key"), key, "", entry); err != nil {
		t.Fatal(err)
	}
	entry.ID = uid.New(uid.Audit)
	if ok, err := st.Workflows.InsertWorkflow(t.Context(), wf, workflow.Version{WorkflowID: wf.ID, Number: 1, CreatedAt: now}, 10, entry); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return &followWorld{
		store: st, workflow: wf, actor: auth.Actor{Workspace: ws},
		service: run.NewService(st.Runs, nil, run.NewWatchers(), emptyQueue{}, hub),
	}
}

// testRun commits decisions as the engine does, for open and new steps, with log lines
// and failed attempts.
type testRun struct {
	*followWorld
	t     rapid.TB
	run   run.Run
	rev   int
	steps []run.Step
}

func (s *followWorld) start(t rapid.TB, reused int) *testRun {
	t.Helper()
	now := clock.Now()
	r := run.Run{
		ID: uid.New(uid.Run), WorkspaceID: s.workflow.WorkspaceID, WorkflowID: s.workflow.ID, WorkflowVersion: 1, Status: run.Running,
		Trigger: run.Trigger{Type: run.Manual, Payload: json.RawMessage(`{}`)}, StartedAt: now,
	}
	m := &testRun{followWorld: s, t: t, run: r}
	start := run.Start{Run: r, Revision: 1, Node: "node", WorkflowName: "w", Plan: auth.Pro, Event: m.event(event.RunStarted)}
	for range reused { // as by a retry
		start.Steps = append(start.Steps, m.newStep(run.StepSucceeded))
	}
	if ok, err := s.store.Runs.StartRun(context.Background(), start); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return m
}

func (m *testRun) event(kind event.Type) event.Event {
	e, err := event.New(kind, event.Subject{WorkspaceID: m.run.WorkspaceID, WorkflowID: m.run.WorkflowID, RunID: m.run.ID}, clock.Now(), nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return e
}

func (m *testRun) newStep(status run.StepStatus) run.Step {
	now := clock.Now()
	n := len(m.steps) + 1
	step := run.Step{
		Path: fmt.Sprintf("step_%d", n), Seq: n, Name: "A step", Type: "data.set", Status: status, Attempt: 1,
		Input: json.RawMessage(`{}`), StartedAt: now, AttemptAt: now,
	}
	m.steps = append(m.steps, step)
	return step
}

var statuses = []run.StepStatus{run.StepRunning, run.StepWaiting, run.StepSucceeded, run.StepFailed, run.StepSkipped}

// move commits a decision.
func (m *testRun) move(t *rapid.T) {
	m.rev++
	d := run.Decision{Rev: m.rev}
	for range rapid.IntRange(0, 3).Draw(t, "new steps") {
		d.Steps = append(d.Steps, m.newStep(rapid.SampledFrom(statuses).Draw(t, "status")))
	}
	for i := range m.steps {
		step := &m.steps[i]
		if step.Status.Settled() || rapid.IntRange(0, 2).Draw(t, "changes") > 0 || step.Seq > len(m.steps)-len(d.Steps) {
			continue
		}
		if rapid.Bool().Draw(t, "failed before") {
			failure := run.Failure{Code: "timed_out", Message: "It took too long.", StepID: step.Path}
			d.Attempts = append(d.Attempts, run.Attempt{Path: step.Path, Number: step.Attempt, StartedAt: step.AttemptAt, FinishedAt: clock.Now(), Error: failure})
			step.Attempt, step.AttemptAt = step.Attempt+1, clock.Now()
		}
		step.Status = rapid.SampledFrom(statuses).Draw(t, "status")
		if step.Status.Settled() {
			now := clock.Now()
			step.FinishedAt, step.Output = &now, json.RawMessage(`{"a":1}`)
		}
		d.Steps = append(d.Steps, *step)
	}
	for i := range d.Steps {
		for n := range rapid.IntRange(0, 2).Draw(t, "lines") {
			d.Logs = append(d.Logs, run.LogLine{Path: d.Steps[i].Path, Attempt: 1, At: clock.Now(), Level: "info", Message: fmt.Sprintf("line %d of %d", n, m.rev)})
		}
	}
	m.commit(d)
}

func (m *testRun) commit(d run.Decision) {
	if committed, err := m.store.Leases.Commit(context.Background(), run.Lease{RunID: m.run.ID, Epoch: 1}, m.run, d); err != nil || !committed.Held {
		m.t.Fatal(committed.Held, err)
	}
}

// end ends the run in a random way.
func (m *testRun) end(t *rapid.T) {
	if rapid.Bool().Draw(t, "cancelled") {
		if _, err := m.service.Cancel(context.Background(), m.actor, m.run.ID); err != nil {
			m.t.Fatal(err)
		}
		return
	}
	m.rev++
	m.commit(run.Decision{Rev: m.rev, Finish: &run.Finish{
		Status: run.Succeeded, At: clock.Now(), Event: m.event(event.RunSucceeded), CutShort: rapid.Bool().Draw(t, "cut short"),
	}})
}

// client is what a follower has received of a run.
type client struct {
	lastSeen string
	steps    map[string]run.Change
	lines    []run.LogLine
	waits    *run.Waiting
}

// learn follows the run until it has received atMost changes or has caught up.
func (k *client) learn(m *testRun, atMost int) {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	feed, err := m.service.Follow(ctx, m.actor, m.run.ID, k.lastSeen)
	if err != nil {
		m.t.Fatal(err)
	}
	for {
		changes, err := feed.Next(ctx)
		if err != nil || changes == nil {
			m.t.Fatal(changes, err)
		}
		for _, c := range changes.List {
			if atMost--; atMost < 0 {
				return // the connection breaks, in the middle of a commit or not
			}
			if c.Line != nil {
				k.lines = append(k.lines, *c.Line)
			} else {
				k.steps[c.Step.Path] = c
			}
			if c.Complete {
				k.lastSeen = c.After.String()
			}
		}
		if !changes.More {
			k.waits = changes.WaitingFor()
			return
		}
	}
}

// compare compares the state of the client with the run.
func (k *client) compare(m *testRun) {
	detail, err := m.service.Get(context.Background(), m.actor, m.run.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	if diff := cmp.Diff(detail.WaitingFor(), k.waits); diff != "" {
		m.t.Errorf("waiting for (-want +got):\n%s", diff)
	}
	if len(detail.Steps) != len(k.steps) {
		m.t.Errorf("the client has %d steps of %d", len(k.steps), len(detail.Steps))
	}
	attempts := map[string][]run.Attempt{}
	for _, a := range detail.Attempts {
		attempts[a.Path] = append(attempts[a.Path], a)
	}
	for _, want := range detail.Steps {
		want.Input, want.Output, want.Answer = nil, nil, nil
		got := k.steps[want.Path]
		if diff := cmp.Diff(&want, got.Step); diff != "" {
			m.t.Errorf("%s (-want +got):\n%s", want.Path, diff)
		}
		if diff := cmp.Diff(attempts[want.Path], got.Attempts, cmpopts.EquateEmpty()); diff != "" {
			m.t.Errorf("attempts of %s (-want +got):\n%s", want.Path, diff)
		}
	}
	page, err := m.service.Logs(context.Background(), m.actor, m.run.ID, "", paging.Request{Limit: 10_000})
	if err != nil {
		m.t.Fatal(err)
	}
	if diff := cmp.Diff(page.Items, k.lines, cmpopts.EquateEmpty()); diff != "" {
		m.t.Errorf("log lines (-want +got):\n%s", diff)
	}
}

// A client that reconnects after the last change it has seen ends up with the exact
// state of the run, and receives each log line once.
func TestFollowMissesNothing(t *testing.T) {
	t.Parallel()
	s := newFollowWorld(t)
	lane.Check(t, func(t *rapid.T) {
		m, client := s.start(t, rapid.IntRange(0, 2).Draw(t, "inherited")), &client{steps: map[string]run.Change{}}
		for range rapid.IntRange(1, 12).Draw(t, "moves") {
			m.move(t)
			if rapid.Bool().Draw(t, "connects") {
				client.learn(m, rapid.IntRange(0, 12).Draw(t, "hears"))
			}
		}
		if rapid.Bool().Draw(t, "ends") {
			m.end(t)
			client.learn(m, rapid.IntRange(0, 5).Draw(t, "hears"))
		}
		client.learn(m, 1<<20)
		client.compare(m)
	})
}

// A long run is sent in parts. They are complete wherever the connection breaks.
func TestFollowLongRunInParts(t *testing.T) {
	t.Parallel()
	m := newFollowWorld(t).start(t, 0)
	for _, steps := range []int{1, 500, 1, 499, 2} { // with as many lines
		m.rev++
		d := run.Decision{Rev: m.rev}
		for range steps {
			step := m.newStep(run.StepSucceeded)
			d.Steps = append(d.Steps, step)
			d.Logs = append(d.Logs, run.LogLine{Path: step.Path, Attempt: 1, At: clock.Now(), Level: "info", Message: step.Path})
		}
		m.commit(d)
	}
	for _, hears := range []int{0, 2, 502, 999, 1000, 1001, 2001} {
		client := &client{steps: map[string]run.Change{}}
		client.learn(m, hears)
		client.learn(m, 1<<20)
		client.compare(m)
	}
}
