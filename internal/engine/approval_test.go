package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
)

// A notification is sent when the wait begins and at each interval until an answer
// arrives, never after the deadline. Missed reminders are not sent later.
func TestRemindersUntilAnswered(t *testing.T) {
	t.Parallel()
	const notify = `"notify": {"url": "https://chat.example", "body": "${{ links.ask.page }}"}`
	for name, tc := range map[string]struct {
		with  string
		after time.Duration // time of the answer; zero for none
		calls int
		took  time.Duration
		code  string
	}{
		"once, without reminders":  {`"timeout": "3d", "on_timeout": "continue"`, 0, 1, 72 * time.Hour, ""},
		"until the deadline":       {`"timeout": "3d", "on_timeout": "continue", "remind_every": "1d"`, 0, 3, 72 * time.Hour, ""},
		"until just before it":     {`"timeout": "50h", "on_timeout": "approve", "remind_every": "1d"`, 0, 3, 50 * time.Hour, ""},
		"a deadline that fails it": {`"timeout": "36h", "remind_every": "1d"`, 0, 2, 36 * time.Hour, "approval_timed_out"},
		"until an answer":          {`"timeout": "7d", "remind_every": "1h"`, 150 * time.Minute, 3, 150 * time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(w.store.Leases)
				id := w.startRun(w.workflow(`[{"id": "ask", "uses": "flow.approval", "with": {`+tc.with+`, `+notify+`}}]`), "{}")
				if tc.after > 0 {
					time.Sleep(tc.after)
					if _, err := w.runs.Resume(t.Context(), w.actor, id, "ask", run.Resumption{Approved: true}); err != nil {
						t.Fatal(err)
					}
				}
				d := w.endOf(id)
				if got := w.notifier.count(); got != tc.calls {
					t.Errorf("%d notifications were sent, want %d", got, tc.calls)
				}
				if took := d.FinishedAt.Sub(d.StartedAt); took != tc.took {
					t.Errorf("it took %s", took)
				}
				if (d.Error != nil) != (tc.code != "") || d.Error != nil && d.Error.Code != tc.code {
					t.Errorf("it ended with %+v", d.Error)
				}
			})
		})
	}
}

// While the step waits, it shows the deadline, not the next reminder.
func TestWaitShowsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "ask", "uses": "flow.approval", "with": {"timeout": "3d", "remind_every": "1d", "notify": {"url": "https://chat.example"}}}]`), "{}")
		synctest.Wait()
		began := w.get(id).Steps[0].StartedAt
		for i := range 2 {
			waits := w.get(id).WaitingFor()
			if waits == nil || waits.Until == nil || !waits.Until.Equal(began.Add(72*time.Hour)) {
				t.Fatalf("round %d: %+v", i, waits)
			}
			// A server that was down all day sends one reminder, not many.
			n.end()
			time.Sleep(25 * time.Hour)
			n = w.start(w.store.Leases)
			synctest.Wait()
		}
		if got := w.notifier.count(); got != 3 {
			t.Errorf("%d notifications were sent", got)
		}
		n.end()
		time.Sleep(40 * time.Hour) // past the deadline
		w.start(w.store.Leases)
		if d := w.endOf(id); d.Error == nil || d.Error.Code != "approval_timed_out" || w.notifier.count() != 3 {
			t.Errorf("%+v after %d", d.Error, w.notifier.count())
		}
	})
}

// The step fails if the first notification does, but not if a reminder does.
func TestFailedNotifications(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		w.notifier.failNext(3)
		const step = `[{"id": "ask", "uses": "flow.approval", "with": {"timeout": "3d", "on_timeout": "continue", "remind_every": "1d", "notify": {"url": "https://chat.example"}}}]`
		id := w.startRun(w.workflow(step), "{}")
		if d := w.endOf(id); d.Status != run.Succeeded || len(d.Attempts) != 3 {
			t.Errorf("%s with %+v, %+v", d.Status, d.Attempts, d.Error)
		}
		w.notifier.failNext(1000)
		if d := w.endOf(w.startRun(w.workflow(step), "{}")); d.Status != run.Failed || d.Error.Code != "test_passing" {
			t.Errorf("%s: %+v", d.Status, d.Error)
		}
		w.notifier.failNext(0)
		id = w.startRun(w.workflow(step), "{}")
		synctest.Wait()
		w.notifier.failNext(1000)
		if d := w.endOf(id); d.Status != run.Succeeded {
			t.Errorf("%s: %+v", d.Status, d.Error)
		}
		if got := w.logs(id); strings.Count(got, "the reminder could not be sent") != 2 || !strings.Contains(got, "warn") {
			t.Errorf("logged: %s", got)
		}
	})
}

// A run with links waits until the public URL is known; others do not.
func TestLinksWithoutPublicURL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.nowhere.Store(true)
		w.start(w.store.Leases)
		asks := w.startRun(w.workflow(`[{"id": "tell", "uses": "test.effect", "with": {"says": "${{ links.ask.page }}"}},
			{"id": "ask", "needs": ["tell"], "uses": "flow.approval", "with": {"timeout": "1h", "on_timeout": "continue"}}]`), "{}")
		if d := w.endOf(w.startRun(w.workflow(`[{"id": "tell", "uses": "test.effect"}]`), "{}")); d.Status != run.Succeeded {
			t.Errorf("one without links: %s, %+v", d.Status, d.Error)
		}
		time.Sleep(time.Minute)
		if d := w.get(asks); d.Status != run.Running || len(d.Steps) != 0 {
			t.Errorf("%s: %+v", d.Status, d.Steps)
		}
		w.nowhere.Store(false)
		if d := w.endOf(asks); d.Status != run.Succeeded {
			t.Errorf("%s: %+v", d.Status, d.Error)
		}
	})
}

// A link belongs to its round, is the same after a restart, and is not stored.
func TestLinksInLoops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[
			{"id": "outer", "needs": [], "uses": "flow.approval"},
			{"id": "each", "needs": [], "foreach": "[0, 1]", "parallel": 2, "steps": [
				{"id": "tell", "uses": "test.effect", "with": {"echoes": true, "says": "${{ links.ask.page }} ${{ links.outer.callback }}"}},
				{"id": "ask", "uses": "flow.approval", "with": {"notify": {"url": "https://chat.example", "body": "${{ links.ask.page }} ${{ links.outer.callback }}"}}}]}]`), "{}")
		synctest.Wait()
		link := func(path string) expr.Link {
			t.Helper()
			made, err := w.links.Link(t.Context(), w.actor.Workspace.ID, id, path)
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
		for _, round := range []string{"each[0].ask", "each[1].ask"} {
			if !slices.Contains(w.notifier.sent, link(round).Page+" "+link("outer").Callback) {
				t.Errorf("the link of %s was not sent", round)
			}
		}
		n.end()
		w.start(w.store.Leases)
		detail := w.get(id)
		text, err := json.Marshal(fmt.Sprintf("%+v %s", detail, w.logs(id)))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range detail.Steps {
			for _, kept := range []string{string(step.Input), string(step.Output), string(text)} {
				if strings.Contains(kept, tokenOf(link("each[0].ask").Page)) || strings.Contains(kept, tokenOf(link("outer").Callback)) {
					t.Errorf("a link is stored with %s: %s", step.Path, kept)
				}
			}
		}
		for _, path := range []string{"each[0].ask", "each[1].ask", "outer"} {
			if done, err := w.links.Decide(t.Context(), run.PageLink, tokenOf(link(path).Page), run.Resumption{Approved: true}, run.Visit{}); err != nil || !done {
				t.Fatalf("%s: %v, %v", path, done, err)
			}
		}
		if d := w.endOf(id); d.Status != run.Succeeded {
			t.Errorf("%s: %+v", d.Status, d.Error)
		}
	})
}

// testNotifier sends notifications of approvals, unless it is told to fail.
type testNotifier struct {
	mu     sync.Mutex
	sent   []string
	toFail int
}

func (m *testNotifier) Run(_ context.Context, req action.Request) (action.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.toFail > 0 {
		m.toFail--
		return action.Result{}, &action.Failure{Code: "test_passing", Message: "not now", Retryable: true}
	}
	m.sent = append(m.sent, fmt.Sprint(req.Input["body"]))
	return action.Result{}, nil
}

func (m *testNotifier) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sent)
}

func (m *testNotifier) failNext(times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.toFail = times
}

func tokenOf(address string) string { return address[strings.LastIndexByte(address, '/')+1:] }
