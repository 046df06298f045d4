package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/workflow"
)

func query(t *testing.T, text string) search.Query {
	t.Helper()
	return must(search.Parse(text))(t)
}

// named inserts a workflow with a name and, unless it is empty, a description.
func (w *harness) named(t *testing.T, workspaceID, name, description string) workflow.Workflow {
	t.Helper()
	made, first := newWorkflow(workspaceID)
	made.Name = name
	if description != "" {
		made.Description = &description
	}
	returns(w.Workflows.InsertWorkflow(t.Context(), made, first, noLimit, newEntry(workspaceID, "workflow.created", made.ID)))(t, "insert a workflow", true)
	return made
}

func namesOf(items []workflow.Item) []string {
	return mapped(items, func(i workflow.Item) string { return i.Name })
}

func testSearch(t *testing.T, w *harness) {
	ctx, ws, other := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	orders := w.named(t, ws, "Sync orders", "Runs every night, for the ERP.")
	for name, description := range map[string]string{
		"Reorder pens": "", "orders": "", "Orders of today": "", "Größe prüfen": "",
		"Привет, мир": "", "100% done": "", "100 % done": "", "a_b": "", "axb": "", `back\slash`: "",
		"Night shift": "Reminds of orders.",
	} {
		w.named(t, ws, name, description)
	}
	w.named(t, other, "Orders of somebody else", "")
	w.deleteWorkflow(t, w.named(t, ws, "Orders of the past", ""))

	finds := func(text string, want ...string) {
		t.Helper()
		equal(t, text, namesOf(must(w.Workflows.SearchWorkflows(ctx, ws, query(t, text), 100))(t)), want)
	}
	finds("ORDERS", "orders", "Orders of today", "Sync orders", "Night shift")
	finds("order", "orders", "Orders of today", "Sync orders", "Reorder pens", "Night shift")
	finds("night orders", "Night shift", "Sync orders")
	finds("erp orders", "Sync orders")
	finds("GRÖSSE", "Größe prüfen")
	finds("МИР", "Привет, мир")
	finds("100%", "100% done")
	finds("a_b", "a_b")
	finds("a%b")
	finds(`\`, `back\slash`)
	finds("past")
	finds("somebody")
	finds(orders.ID, "Sync orders")
	finds("'; DROP TABLE workflows; --")

	equal(t, "the item", must(w.Workflows.SearchWorkflows(ctx, ws, query(t, orders.ID), 1))(t), []workflow.Item{
		{ID: orders.ID, Name: orders.Name, State: orders.State, CreatedAt: orders.CreatedAt, UpdatedAt: orders.UpdatedAt},
	})
	equal(t, "the best two", namesOf(must(w.Workflows.SearchWorkflows(ctx, ws, query(t, "orders"), 2))(t)), []string{"orders", "Orders of today"})
	equal(t, "of another workspace", namesOf(must(w.Workflows.SearchWorkflows(ctx, other, query(t, "orders"), 100))(t)), []string{"Orders of somebody else"})

	t.Run("list with words", func(t *testing.T) { testListWithWords(t, w) })
	t.Run("the maximum number of workflows", func(t *testing.T) { testSearchAmongMany(t, w) })
}

func testListWithWords(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	for i := range 6 {
		w.named(t, ws, fmt.Sprintf("Order %d", i), "")
		w.named(t, ws, "Invoice", "")
	}
	last := w.named(t, ws, "Nightly", "Checks every ORDER.")
	returns(w.Workflows.UpdateWorkflow(ctx, activated(t, last)))(t, "activate", true)
	w.named(t, w.workspace(t).ID, "Order of somebody else", "")
	w.deleteWorkflow(t, w.named(t, ws, "Order that was deleted", ""))

	filter := workflow.Filter{Words: query(t, "order")}
	equal(t, "newest first", namesOf(must(w.Workflows.Workflows(ctx, ws, filter, fullPage))(t).Items),
		[]string{"Nightly", "Order 5", "Order 4", "Order 3", "Order 2", "Order 1", "Order 0"})
	var pages []string
	for page := (paging.Request{Limit: 3}); ; {
		got := must(w.Workflows.Workflows(ctx, ws, filter, page))(t)
		pages = append(pages, strings.Join(namesOf(got.Items), ", "))
		if page.After = got.Next; got.Next == "" {
			break
		}
	}
	equal(t, "page by page", pages, []string{"Nightly, Order 5, Order 4", "Order 3, Order 2, Order 1", "Order 0"})
	filter.State = workflow.Active
	equal(t, "that are active", namesOf(must(w.Workflows.Workflows(ctx, ws, filter, fullPage))(t).Items), []string{"Nightly"})
}

// testSearchAmongMany logs how long each search takes.
func testSearchAmongMany(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	most := auth.Enterprise.Limits().Workflows
	text := strings.Repeat("Sends what has changed to the accounting system. ", 4)
	w.exec(t, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		INSERT INTO workflows (id, workspace_id, name, description, state, version, revision, created_at, updated_at, layout, source, pinned)
		SELECT 'wf_' || CAST(1000000 + i AS TEXT), $2, 'Workflow number ' || CAST(i AS TEXT), $3, 'draft', 1, 1, $4, $4, '{}', $5, '{}' FROM n`,
		most, ws, text, time.Now(), strings.Repeat("# a line of the source\n", 200))
	for _, search := range []struct{ text, first string }{
		{"Workflow number 1", "Workflow number 1"}, // the oldest
		{fmt.Sprintf("Workflow number %d", most), fmt.Sprintf("Workflow number %d", most)},
		{"number 777", "Workflow number 777"},
		{"ACCOUNTING 4711", "Workflow number 4711"},
		{"nothing has this", ""},
	} {
		began := time.Now()
		got := namesOf(must(w.Workflows.SearchWorkflows(ctx, ws, query(t, search.text), 20))(t))
		t.Logf("%q among %d workflows took %v", search.text, most, time.Since(began))
		if first := append(got, "")[0]; first != search.first {
			t.Errorf("%q: found %q first, want %q", search.text, first, search.first)
		}
	}
	// A page that scans many rows without a match leads to the next one.
	filter, seen := workflow.Filter{Words: query(t, "Workflow number 1")}, []string{}
	for page := (paging.Request{Limit: 100}); ; {
		got := must(w.Workflows.Workflows(ctx, ws, filter, page))(t)
		seen = append(seen, mapped(got.Items, func(i workflow.Item) string { return i.Name })...)
		if page.After = got.Next; got.Next == "" {
			break
		}
	}
	if len(seen) == 0 || seen[len(seen)-1] != "Workflow number 1" {
		t.Errorf("the list does not end with the oldest workflow: %d found", len(seen))
	}
}
