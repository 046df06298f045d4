package event_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

func TestMain(m *testing.M) {
	// Each check makes dozens of commits. A flag on the command line overrides this.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	m.Run()
}

// env is an installation to which tests write events.
type env struct {
	*sqlitetest.Installation
	t       *testing.T
	events  *event.Service
	written *pubsub.Broker
	// ids generates ids from the clock of this test only. Other tests run in
	// bubbles whose clocks may be ahead.
	ids uid.Source
}

func newEnv(t *testing.T) *env {
	t.Helper()
	c := &env{t: t, written: pubsub.NewBroker()}
	c.Installation = sqlitetest.New(t, store.Notify{Recorded: c.written.Publish})
	c.events = event.NewService(c.Events, c.written)
	return c
}

// workflow inserts a workflow for events.
func (c *env) workflow(workspaceID string) workflow.Workflow {
	c.t.Helper()
	now := clock.Now()
	made := workflow.Workflow{ID: uid.At(uid.Workflow, now), WorkspaceID: workspaceID, Name: "Test", State: workflow.Draft, Version: 1, Revision: 1, CreatedAt: now, UpdatedAt: now}
	inserted, err := c.Workflows.InsertWorkflow(c.t.Context(), made, workflow.Version{WorkflowID: made.ID, Number: 1, CreatedAt: now}, 100, c.entry(made))
	if err != nil || !inserted {
		c.t.Fatalf("insert a workflow: %t, %v", inserted, err)
	}
	return made
}

func (c *env) entry(w workflow.Workflow) audit.Entry {
	actor := c.Admin
	actor.Workspace.ID = w.WorkspaceID
	return actor.AuditEntry("test", "workflow", w.ID, nil)
}

// record writes events of a workflow in one transaction, each with its index as
// data.
func (c *env) record(w *workflow.Workflow, runID string, kinds ...event.Type) []event.Event {
	c.t.Helper()
	return c.recordAt(clock.Now(), w, runID, kinds...)
}

// recordAt is record with a given time.
func (c *env) recordAt(at time.Time, w *workflow.Workflow, runID string, kinds ...event.Type) []event.Event {
	c.t.Helper()
	var made []event.Event
	for i, kind := range kinds {
		e, err := event.New(kind, event.Subject{WorkspaceID: w.WorkspaceID, WorkflowID: w.ID, RunID: runID}, at, map[string]int{"n": i})
		if err != nil {
			c.t.Fatal(err)
		}
		e.ID = c.ids.New(uid.Event, at)
		made = append(made, e)
	}
	was := w.Revision
	w.Revision++
	updated, err := c.Workflows.UpdateWorkflow(c.t.Context(), workflow.Change{Workflow: *w, WasRevision: was, Events: made})
	if err != nil || !updated {
		c.t.Fatalf("write events: %t, %v", updated, err)
	}
	return made
}

// list returns the events of all pages.
func (c *env) list(workspaceID string, want event.Query, limit int) []event.Stored {
	c.t.Helper()
	var all []event.Stored
	for page := (paging.Request{Limit: limit}); ; {
		found, err := c.events.List(c.t.Context(), workspaceID, want, page)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(found.Items) > limit {
			c.t.Fatalf("a page of %d has %d events", limit, len(found.Items))
		}
		all = append(all, found.Items...)
		if page.After = found.Next; found.Next == "" {
			return all
		}
	}
}

// follow starts a feed.
func (c *env) follow(workspaceID string, want event.Filter, lastSeen string) *event.Feed {
	c.t.Helper()
	feed, err := c.events.Follow(c.t.Context(), workspaceID, want, lastSeen)
	if err != nil {
		c.t.Fatal(err)
	}
	return feed
}

// next returns the types of the next events of a feed.
func (c *env) next(feed *event.Feed) string {
	c.t.Helper()
	found, _, err := feed.Next(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return typesOf(found)
}

func typesOf(events []event.Stored) string {
	out := []event.Type{}
	for _, e := range events {
		out = append(out, e.Type)
	}
	return fmt.Sprint(out)
}

// notified reports whether the feed has been notified.
func notified(feed *event.Feed) bool {
	select {
	case <-feed.Changes:
		return true
	default:
		return false
	}
}
