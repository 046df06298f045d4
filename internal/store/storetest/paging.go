package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
)

// listing is a list that rows enter and leave while it is read. Rows may enter
// anywhere: insert takes the id.
type listing struct {
	kind   uid.Kind
	byName bool // in ascending order; else the newest comes first
	insert func(ctx context.Context, id string) error
	remove func(ctx context.Context, id string) error // nil: rows stay
	page   func(ctx context.Context, page paging.Request) (ids []string, next string, err error)
}

var listings = map[string]func(*testing.T, *world) listing{
	"workflows": listWorkflows, "keys": listKeys, "webhooks": listWebhooks, "audit": listAudit,
	"secrets": listSecrets, "variables": listVariables,
	"runs": listRuns(""), "running runs": listRuns(run.Running),
}

func testPaging(t *testing.T, w *world) {
	listings := maps.Clone(listings)
	for i := range allRunsFilters {
		listings[fmt.Sprintf("all runs %05b", i)] = listAllRuns(i)
	}
	t.Run("sees every row that stays exactly once", func(t *testing.T) {
		names := rapid.SampledFrom(slices.Sorted(maps.Keys(listings)))
		rapid.Check(t, func(rt *rapid.T) {
			name := names.Draw(rt, "list")
			walkInterleaved(rt, listings[name](t, w))
		})
	})
	t.Run("while others write", func(t *testing.T) {
		for name, of := range listings {
			t.Run(name, func(t *testing.T) { walkUnderLoad(t, of(t, w)) })
		}
	})
}

// walk is one reading of a list from its beginning to its end.
type walk struct {
	of    listing
	limit int
	seen  []string
}

// step reads the next page and answers whether there is another.
func (k *walk) step(ctx context.Context, next string) (string, error) {
	ids, next, err := k.of.page(ctx, paging.Request{Limit: k.limit, After: next})
	if err != nil {
		return "", err
	}
	if len(ids) > k.limit || next != "" && (len(ids) != k.limit || next != ids[len(ids)-1]) {
		return "", errors.New("the page has the wrong size or position")
	}
	k.seen = append(k.seen, ids...)
	for i := 1; i < len(k.seen); i++ {
		if was, is := k.seen[i-1], k.seen[i]; was == is || was < is != k.of.byName {
			return "", errors.New("the order is not strictly that of the list")
		}
	}
	return next, nil
}

// missed returns what of the rows that were there throughout was not seen.
func (k *walk) missed(stayed []string) []string {
	return slices.DeleteFunc(slices.Clone(stayed), func(id string) bool { return slices.Contains(k.seen, id) })
}

// walkInterleaved lets rows come and go between any two pages, also in the
// middle of the list and within one millisecond.
func walkInterleaved(rt *rapid.T, of listing) {
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
	var fresh []string
	for range rapid.IntRange(0, 5).Draw(rt, "rows") {
		fresh = append(fresh, newID())
	}
	check(all(fresh, func(id string) error { return of.insert(ctx, id) }))
	alive = append(alive, fresh...)
	stayed := slices.Clone(alive)

	k := &walk{of: of, limit: rapid.IntRange(1, 4).Draw(rt, "limit")}
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
		from := len(k.seen)
		next, err = k.step(ctx, next)
		check(err)
		for _, id := range k.seen[from:] {
			if !slices.Contains(alive, id) {
				rt.Fatalf("%s is not there", id)
			}
		}
	}
	if missed := k.missed(stayed); len(missed) > 0 {
		rt.Fatalf("missed %q", missed)
	}
}

// walkUnderLoad reads a list while others add to it and take from it.
func walkUnderLoad(t *testing.T, of listing) {
	ctx := t.Context()
	stayed := make([]string, 20)
	for i := range stayed {
		stayed[i] = uid.New(of.kind)
	}
	if err := all(stayed, func(id string) error { return of.insert(ctx, id) }); err != nil {
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
		k := &walk{of: of, limit: 4}
		for next, first := "", true; first || next != ""; first = false {
			var err error
			if next, err = k.step(ctx, next); err != nil {
				t.Error(err)
				break
			}
		}
		if missed := k.missed(stayed); len(missed) > 0 {
			t.Errorf("missed %q", missed)
		}
	}
	close(stop)
	others.Wait()
}

// all calls f for every item at the same time.
func all[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	var running sync.WaitGroup
	for i, item := range items {
		running.Go(func() { errs[i] = f(item) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// went turns the answer of a write into an error.
func went(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("the write was refused")
	}
	return err
}

func idsOf[T any](page paging.Page[T], err error, id func(T) string) ([]string, string, error) {
	return mapped(page.Items, id), page.Next, err
}

func listWorkflows(t *testing.T, w *world) listing {
	ws := w.workspace(t).ID
	return listing{
		kind: uid.Workflow,
		insert: func(ctx context.Context, id string) error {
			made, first := newWorkflow(ws)
			made.ID, first.WorkflowID = id, id
			return went(w.InsertWorkflow(ctx, made, first, plenty, newEntry(ws, "workflow.created", id)))
		},
		remove: func(ctx context.Context, id string) error {
			made := workflow.Workflow{ID: id, WorkspaceID: ws, Revision: 1}
			return went(w.DeleteWorkflow(ctx, made, clock.Now(), newEntry(ws, "workflow.deleted", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Workflows(ctx, ws, workflow.Draft, page)
			return idsOf(got, err, func(i workflow.Item) string { return i.ID })
		},
	}
}

func listKeys(t *testing.T, w *world) listing {
	ws := w.workspace(t).ID
	return listing{
		kind: uid.Key,
		insert: func(ctx context.Context, id string) error {
			made := newKey(ws)
			made.ID = id
			return went(w.InsertKey(ctx, made, plenty, newEntry(ws, "api_key.created", id)))
		},
		remove: func(ctx context.Context, id string) error {
			return went(w.RevokeKey(ctx, ws, id, clock.Now(), newEntry(ws, "api_key.revoked", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Keys(ctx, ws, page)
			return idsOf(got, err, func(k auth.Key) string { return k.ID })
		},
	}
}

func listWebhooks(t *testing.T, w *world) listing {
	ws := w.workspace(t).ID
	return listing{
		kind: uid.Webhook,
		insert: func(ctx context.Context, id string) error {
			made := newWebhook(ws)
			made.ID = id
			outcome, err := w.InsertWebhook(ctx, made, plenty, newEntry(ws, "webhook.created", id))
			return went(outcome == webhook.Done, err)
		},
		remove: func(ctx context.Context, id string) error {
			return went(w.DeleteWebhook(ctx, ws, id, clock.Now(), newEntry(ws, "webhook.deleted", id)))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.Webhooks(ctx, ws, page)
			return idsOf(got, err, func(h webhook.Webhook) string { return h.ID })
		},
	}
}

func listAudit(t *testing.T, w *world) listing {
	ws := w.workspace(t).ID
	return listing{
		kind: uid.Audit,
		insert: func(ctx context.Context, id string) error {
			entry := newEntry(ws, "made", "target")
			entry.ID = id
			return went(w.InsertKey(ctx, newKey(ws), plenty, entry))
		},
		page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
			got, err := w.AuditEntries(ctx, ws, audit.Filter{Action: "made", TargetID: "target"}, page)
			return idsOf(got, err, func(e audit.Entry) string { return e.ID })
		},
	}
}

// listRuns lists runs by status; those that run leave their list by their end.
func listRuns(status run.Status) func(*testing.T, *world) listing {
	return func(t *testing.T, w *world) listing {
		wf := w.workflow(t, w.workspace(t).ID)
		of := listing{
			kind: uid.Run,
			insert: func(ctx context.Context, id string) error {
				start := newStart(t, wf, "node_1")
				start.Run.ID, start.Event.RunID = id, id
				return went(w.StartRun(ctx, start))
			},
			page: func(ctx context.Context, page paging.Request) ([]string, string, error) {
				got, err := w.Runs(ctx, wf.WorkspaceID, wf.ID, status, page)
				return idsOf(got, err, func(i run.Item) string { return i.ID })
			},
		}
		if status == run.Running {
			of.remove = func(ctx context.Context, id string) error {
				ending := run.Run{ID: id, WorkspaceID: wf.WorkspaceID, WorkflowID: wf.ID}
				return went(w.Commit(ctx, firstLease(ending), ending, newFinish(t, ending, run.Succeeded)))
			}
		}
		return of
	}
}
