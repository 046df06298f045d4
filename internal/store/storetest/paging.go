package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// pagedList is a list into which rows are inserted and from which they are
// deleted while it is read. Insert takes the id, so rows may be inserted
// anywhere.
type pagedList struct {
	kind   uid.Kind
	byName bool // in ascending order; otherwise newest first
	insert func(ctx context.Context, id string) error
	remove func(ctx context.Context, id string) error // nil if rows cannot be deleted
	page   func(ctx context.Context, page paging.Request) (ids []string, next string, err error)
}

var listings = map[string]func(*testing.T, *harness) pagedList{
	"workflows": listWorkflows, "keys": listKeys, "webhooks": listWebhooks, "audit": listAudit,
	"secrets": listSecrets, "variables": listVariables, "connections": listConnections, "OAuth apps": listApps,
	"runs": listRuns(""), "running runs": listRuns(run.Running),
}

// fewFilters are the combinations of filters that are read under load outside of
// the long lane: none, each of them alone, and all.
var fewFilters = []string{"all runs 00000", "all runs 00001", "all runs 00010", "all runs 00100", "all runs 01000", "all runs 10000", "all runs 11111"}

func testPaging(t *testing.T, w *harness) {
	listings := maps.Clone(listings)
	for i := range allRunsFilters {
		listings[fmt.Sprintf("all runs %05b", i)] = listAllRuns(i)
	}
	t.Run("sees every row that stays exactly once", func(t *testing.T) {
		names := rapid.SampledFrom(slices.Sorted(maps.Keys(listings)))
		lane.Check(t, func(rt *rapid.T) {
			name := names.Draw(rt, "list")
			readWithInterleavedChanges(rt, listings[name](t, w))
		})
	})
	t.Run("during concurrent writes", func(t *testing.T) {
		for name, of := range listings {
			if !lane.Long() && strings.HasPrefix(name, "all runs") && !slices.Contains(fewFilters, name) {
				continue // sampled by the test above
			}
			t.Run(name, func(t *testing.T) { readUnderLoad(t, of(t, w)) })
		}
	})
}

// listReader reads a list from beginning to end.
type listReader struct {
	list  pagedList
	limit int
	seen  []string
}

// next reads the next page and returns the position after it.
func (l *listReader) next(ctx context.Context, after string) (string, error) {
	ids, after, err := l.list.page(ctx, paging.Request{Limit: l.limit, After: after})
	if err != nil {
		return "", err
	}
	if len(ids) > l.limit || after != "" && (len(ids) != l.limit || after != ids[len(ids)-1]) {
		return "", errors.New("the page has the wrong size or next position")
	}
	l.seen = append(l.seen, ids...)
	for i := 1; i < len(l.seen); i++ {
		if was, is := l.seen[i-1], l.seen[i]; was == is || was < is != l.list.byName {
			return "", errors.New("the rows are not in strict order")
		}
	}
	return after, nil
}

// missed returns the rows that existed throughout and were not seen.
func (l *listReader) missed(stayed []string) []string {
	return slices.DeleteFunc(slices.Clone(stayed), func(id string) bool { return slices.Contains(l.seen, id) })
}

// readWithInterleavedChanges inserts and deletes rows between pages, also in the
// middle of the list and within the same millisecond.
func readWithInterleavedChanges(rt *rapid.T, of pagedList) {
	ctx, base := rt.Context(), clock.Now()
	newID := func() string {
		at := base.Add(time.Duration(rapid.IntRange(0, 2).Draw(rt, "ms")) * time.Millisecond)
		return (&uid.Source{}).New(of.kind, at)
	}
	check := func(err error) {
		if err != nil {
			rt.Fatal(err)
		}
	}
	alive, _, err := of.page(ctx, paging.Request{Limit: 1000})
	check(err)
	var added []string
	for range rapid.IntRange(0, 5).Draw(rt, "rows") {
		added = append(added, newID())
	}
	check(forAll(added, func(id string) error { return of.insert(ctx, id) }))
	alive = append(alive, added...)
	stayed := slices.Clone(alive)

	l := &listReader{list: of, limit: rapid.IntRange(1, 4).Draw(rt, "limit")}
	for next, first, changes := "", true, 4; first || next != ""; first = false {
		for range min(changes, rapid.IntRange(0, 2).Draw(rt, "changes")) {
			changes--
			if of.remove == nil || len(alive) == 0 || rapid.Bool().Draw(rt, "insert") {
				id := newID()
				check(of.insert(ctx, id))
				alive = append(alive, id)
				continue
			}
			i := rapid.IntRange(0, len(alive)-1).Draw(rt, "removed")
			id := alive[i]
			check(of.remove(ctx, id))
			alive = slices.Delete(alive, i, i+1)
			stayed = slices.DeleteFunc(stayed, func(s string) bool { return s == id })
		}
		from := len(l.seen)
		next, err = l.next(ctx, next)
		check(err)
		for _, id := range l.seen[from:] {
			if !slices.Contains(alive, id) {
				rt.Fatalf("%s does not exist", id)
			}
		}
	}
	if missed := l.missed(stayed); len(missed) > 0 {
		rt.Fatalf("missed %q", missed)
	}
}

// readUnderLoad reads a list while others insert and delete rows.
func readUnderLoad(t *testing.T, of pagedList) {
	ctx := t.Context()
	stayed := make([]string, 20)
	for i := range stayed {
		stayed[i] = uid.New(of.kind)
	}
	if err := forAll(stayed, func(id string) error { return of.insert(ctx, id) }); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				id := (&uid.Source{}).New(of.kind, time.Now().Add(-time.Millisecond))
				err := of.insert(ctx, id)
				if err == nil && of.remove != nil {
					err = of.remove(ctx, id)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		l := &listReader{list: of, limit: 4}
		for next, first := "", true; first || next != ""; first = false {
			var err error
			if next, err = l.next(ctx, next); err != nil {
				t.Error(err)
				break
			}
		}
		if missed := l.missed(stayed); len(missed) > 0 {
			t.Errorf("missed %q", missed)
		}
	}
	close(stop)
	others.Wait()
}

// forAll calls f for all items concurrently.
func forAll[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	var running sync.WaitGroup
	for i, item := range items {
		running.Go(func() { errs[i] = f(item) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// rejected turns the result of a write into an error.
func rejected(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("the write was rejected")
	}
	return err
}

func idsOf[T any](page paging.Page[T], err error, id func(T) string) ([]string, string, error) {
	return mapped(page.Items, id), page.Next, err
}

func listWorkflows(t *testing.T, w *harness) pagedList {
	ws := w.workspace(t).ID
	return pagedList{
		kind: uid.Workflow,
		insert: func(ctx context.Context, id string) error {
			made, first := newWorkflow(ws)
			made.ID, first.WorkflowID = id, id
			return rejected(w.Workflows.InsertWorkflow(ctx, made, first, noLimit, newEntry(ws, "workflow.created", id)))
		},
		remove: func(ctx context.Context, id string) error {
			made := workflow.Workflow{ID: id, WorkspaceID: ws, Revision: 1}
			return rejected(w.Workflows.DeleteWorkflow(ctx, made, clock.Now(), newEntry(ws, "workflow.deleted", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Workflows.Workflows(ctx, ws, workflow.Filter{State: workflow.Draft}, page)
			return idsOf(got, err, func(i workflow.Item) string { return i.ID })
		},
	}
}

func listKeys(t *testing.T, w *harness) pagedList {
	ws := w.workspace(t).ID
	return pagedList{
		kind: uid.Key,
		insert: func(ctx context.Context, id string) error {
			made := newKey(ws)
			made.ID = id
			return rejected(w.Workspaces.InsertKey(ctx, made, noLimit, newEntry(ws, "api_key.created", id)))
		},
		remove: func(ctx context.Context, id string) error {
			return rejected(w.Workspaces.RevokeKey(ctx, ws, id, clock.Now(), newEntry(ws, "api_key.revoked", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Workspaces.Keys(ctx, ws, page)
			return idsOf(got, err, func(k auth.Key) string { return k.ID })
		},
	}
}

func listWebhooks(t *testing.T, w *harness) pagedList {
	ws := w.workspace(t).ID
	return pagedList{
		kind: uid.Webhook,
		insert: func(ctx context.Context, id string) error {
			made := newWebhook(ws)
			made.ID = id
			outcome, err := w.Webhooks.InsertWebhook(ctx, made, noLimit, newEntry(ws, "webhook.created", id))
			return rejected(outcome == webhook.Done, err)
		},
		remove: func(ctx context.Context, id string) error {
			return rejected(w.Webhooks.DeleteWebhook(ctx, ws, id, clock.Now(), newEntry(ws, "webhook.deleted", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Webhooks.Webhooks(ctx, ws, page)
			return idsOf(got, err, func(h webhook.Webhook) string { return h.ID })
		},
	}
}

func listAudit(t *testing.T, w *harness) pagedList {
	ws := w.workspace(t).ID
	return pagedList{
		kind: uid.Audit,
		insert: func(ctx context.Context, id string) error {
			entry := newEntry(ws, "made", "target")
			entry.ID = id
			return rejected(w.Workspaces.InsertKey(ctx, newKey(ws), noLimit, entry))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Audit.AuditEntries(ctx, ws, audit.Filter{Action: "made", TargetID: "target"}, page)
			return idsOf(got, err, func(e audit.Entry) string { return e.ID })
		},
	}
}

// listRuns lists runs by status. Running ones leave their list when they end.
func listRuns(status run.Status) func(*testing.T, *harness) pagedList {
	return func(t *testing.T, w *harness) pagedList {
		wf := w.workflow(t, w.workspace(t).ID)
		of := pagedList{
			kind: uid.Run,
			insert: func(ctx context.Context, id string) error {
				start := newStart(t, wf, "node_1")
				start.Run.ID, start.Event.RunID = id, id
				return rejected(w.Runs.StartRun(ctx, start))
			},
			page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
				got, err := w.Runs.Runs(ctx, wf.WorkspaceID, wf.ID, status, page)
				return idsOf(got, err, func(i run.Item) string { return i.ID })
			},
		}
		if status == run.Running {
			of.remove = func(ctx context.Context, id string) error {
				ending := run.Run{ID: id, WorkspaceID: wf.WorkspaceID, WorkflowID: wf.ID}
				return rejected(w.Commit(ctx, firstLease(ending), ending, newFinish(t, ending, run.Succeeded)))
			}
		}
		return of
	}
}
