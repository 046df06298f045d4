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
	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

func TestMain(m *testing.M) {
	// Each check is dozens of commits. A flag on the command line wins.
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	m.Run()
}

// stage is a store with one workflow whose runs are moved by hand.
type stage struct {
	store    *store.Store
	service  *run.Service
	actor    auth.Actor
	workflow workflow.Workflow
}

// nowhere is a queue in which nothing ever waits.
type nowhere struct{ run.Queue }

func (nowhere) Queued(string) bool { return false }

func newStage(t testing.TB) *stage {
	t.Helper()
	db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	hub, now := news.NewHub(), clock.Now()
	st := store.New(db, store.Notify{
		Changed: hub.Tell, Ended: func(e run.Ending) { hub.Tell(e.RunID) }, WorkflowDeleted: func(string) { hub.TellAll() },
	})
	ws := auth.Workspace{ID: uid.New(uid.Workspace), Name: "w", Plan: auth.Pro, RequestsPerMinute: 600, CreatedAt: now, UpdatedAt: now}
	wf := workflow.Workflow{ID: uid.New(uid.Workflow), WorkspaceID: ws.ID, Name: "w", State: workflow.Draft, Version: 1, Revision: 1, CreatedAt: now, UpdatedAt: now}
	entry := audit.Entry{ID: uid.New(uid.Audit), WorkspaceID: ws.ID, At: now, ActorType: audit.ActorKey}
	key := auth.Key{ID: uid.New(uid.Key), WorkspaceID: ws.ID, Lookup: "lookup", Hash: []byte("hash"), CreatedAt: now}
	if err := st.InsertWorkspace(t.Context(), ws, []byte("key"), key, "", entry); err != nil {
		t.Fatal(err)
	}
	entry.ID = uid.New(uid.Audit)
	if ok, err := st.InsertWorkflow(t.Context(), wf, workflow.Version{WorkflowID: wf.ID, Number: 1, CreatedAt: now}, 10, entry); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return &stage{
		store: st, workflow: wf, actor: auth.Actor{Workspace: ws},
		service: run.NewService(st, nil, run.NewWatchers(), nowhere{}, hub),
	}
}

// mover moves a run the way the engine does: any step that is open or new, with
// lines in the log and attempts that failed.
type mover struct {
	*stage
	t     rapid.TB
	run   run.Run
	rev   int
	steps []run.Step
}

func (s *stage) start(t rapid.TB, inherited int) *mover {
	t.Helper()
	now := clock.Now()
	r := run.Run{
		ID: uid.New(uid.Run), WorkspaceID: s.workflow.WorkspaceID, WorkflowID: s.workflow.ID, WorkflowVersion: 1, Status: run.Running,
		Trigger: run.Trigger{Type: run.Manual, Payload: json.RawMessage(`{}`)}, StartedAt: now,
	}
	m := &mover{stage: s, t: t, run: r}
	start := run.Start{Run: r, Revision: 1, Node: "node", WorkflowName: "w", Plan: auth.Pro, Event: m.event(event.RunStarted)}
	for range inherited { // as by a retry
		start.Steps = append(start.Steps, m.newStep(run.StepSucceeded))
	}
	if ok, err := s.store.StartRun(context.Background(), start); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return m
}

func (m *mover) event(kind event.Type) event.Event {
	e, err := event.New(kind, event.Subject{WorkspaceID: m.run.WorkspaceID, WorkflowID: m.run.WorkflowID, RunID: m.run.ID}, clock.Now(), nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return e
}

func (m *mover) newStep(status run.StepStatus) run.Step {
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
func (m *mover) move(t *rapid.T) {
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

func (m *mover) commit(d run.Decision) {
	if held, err := m.store.Commit(context.Background(), run.Lease{RunID: m.run.ID, Epoch: 1}, m.run, d); err != nil || !held {
		m.t.Fatal(held, err)
	}
}

// end ends the run in one of the ways there are.
func (m *mover) end(t *rapid.T) {
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

// known is what a client has learnt of a run.
type known struct {
	lastSeen string
	steps    map[string]run.Change
	lines    []run.LogLine
	waits    *run.Waiting
}

// learn follows the run for a while: until it has heard so many changes, or has
// caught up.
func (k *known) learn(m *mover, atMost int) {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
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

// compare holds what the client knows against what the run is.
func (k *known) compare(m *mover) {
	detail, err := m.service.Get(context.Background(), m.actor, m.run.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	if diff := cmp.Diff(detail.WaitingFor(), k.waits); diff != "" {
		m.t.Errorf("what it waits for (-is +known):\n%s", diff)
	}
	if len(detail.Steps) != len(k.steps) {
		m.t.Errorf("the client knows %d steps of %d", len(k.steps), len(detail.Steps))
	}
	attempts := map[string][]run.Attempt{}
	for _, a := range detail.Attempts {
		attempts[a.Path] = append(attempts[a.Path], a)
	}
	for _, want := range detail.Steps {
		want.Input, want.Output, want.Answer = nil, nil, nil
		got := k.steps[want.Path]
		if diff := cmp.Diff(&want, got.Step); diff != "" {
			m.t.Errorf("%s (-is +known):\n%s", want.Path, diff)
		}
		if diff := cmp.Diff(attempts[want.Path], got.Attempts, cmpopts.EquateEmpty()); diff != "" {
			m.t.Errorf("attempts of %s (-is +known):\n%s", want.Path, diff)
		}
	}
	page, err := m.service.Logs(context.Background(), m.actor, m.run.ID, "", paging.Request{Limit: 10_000})
	if err != nil {
		m.t.Fatal(err)
	}
	if diff := cmp.Diff(page.Items, k.lines, cmpopts.EquateEmpty()); diff != "" {
		m.t.Errorf("log lines (-are +known):\n%s", diff)
	}
}

// Whatever happens to a run, and wherever connections break, a client that goes
// on after the last thing it has seen knows in the end exactly what the run is,
// and was told each log line once.
func TestWhoFollowsARunMissesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rapid.Check(t, func(t *rapid.T) {
		m, client := s.start(t, rapid.IntRange(0, 2).Draw(t, "inherited")), &known{steps: map[string]run.Change{}}
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

// A long run is told in parts, and the parts make up the whole, wherever the
// connection breaks.
func TestALongRunIsToldInParts(t *testing.T) {
	t.Parallel()
	m := newStage(t).start(t, 0)
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
		client := &known{steps: map[string]run.Change{}}
		client.learn(m, hears)
		client.learn(m, 1<<20)
		client.compare(m)
	}
}
