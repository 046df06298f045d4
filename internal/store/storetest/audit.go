package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/paging"
)

func testAudit(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	founding := must(w.Audit.AuditEntries(ctx, ws.ID, audit.Filter{}, fullPage))(t).Items

	// Each entry is written with a new key.
	var entries []audit.Entry // newest first
	write := func(action, target string, details map[string]any) {
		entry := newEntry(ws.ID, action, target)
		entry.Details = details
		returns(w.Workspaces.InsertKey(ctx, newKey(ws.ID), noLimit, entry))(t, "insert a key", true)
		entries = append([]audit.Entry{entry}, entries...)
	}
	write("made", "a", nil)
	write("made", "b", map[string]any{"name": "b", "count": 3.5, "nested": map[string]any{"list": []any{"x", nil, true}}})
	write("changed", "a", map[string]any{})
	write("changed", "b", map[string]any{"quote": `it's "quoted" \ 😀`})
	write("changed", "a", nil)
	pick := func(indices ...int) []audit.Entry {
		return mapped(indices, func(i int) audit.Entry { return entries[i] })
	}

	t.Run("is listed newest first", func(t *testing.T) {
		equal(t, "all", must(w.Audit.AuditEntries(ctx, ws.ID, audit.Filter{}, fullPage))(t).Items, append(pick(0, 1, 2, 3, 4), founding...))
		empty(w.Audit.AuditEntries(ctx, "ws_none", audit.Filter{}, fullPage))(t, "an unknown workspace")
	})

	t.Run("filters", func(t *testing.T) {
		for name, tc := range map[string]struct {
			filter audit.Filter
			want   []audit.Entry
		}{
			"by action":     {audit.Filter{Action: "changed"}, pick(0, 1, 2)},
			"by target":     {audit.Filter{TargetID: "a"}, pick(0, 2, 4)},
			"by both":       {audit.Filter{Action: "changed", TargetID: "a"}, pick(0, 2)},
			"by no match":   {audit.Filter{Action: "made", TargetID: "c"}, nil},
			"by what is no": {audit.Filter{Action: "' OR 1 = 1 --"}, nil},
		} {
			equal(t, name, must(w.Audit.AuditEntries(ctx, ws.ID, tc.filter, fullPage))(t).Items, tc.want)
		}
	})

	t.Run("has the present names of actors and targets", func(t *testing.T) {
		key, made := newKey(ws.ID), w.workflow(t, ws.ID)
		returns(w.Workspaces.InsertKey(ctx, key, noLimit, newEntry(ws.ID, "made", "c")))(t, "insert a key", true)
		entry := newEntry(ws.ID, "named", made.ID)
		entry.ActorType, entry.ActorID, entry.TargetType = audit.ActorKey, key.ID, "workflow"
		foreign := entry
		foreign.WorkspaceID, foreign.ID = w.workspace(t).ID, newEntry(ws.ID, "", "").ID
		if err := w.Audit.RecordAudit(ctx, entry, foreign); err != nil {
			t.Fatal(err)
		}
		named := must(w.Audit.AuditEntries(ctx, ws.ID, audit.Filter{Action: "named"}, fullPage))(t).Items[0]
		equal(t, "names", []string{named.ActorName, named.TargetName}, []string{key.Name, made.Name})
		named = must(w.Audit.AuditEntries(ctx, foreign.WorkspaceID, audit.Filter{Action: "named"}, fullPage))(t).Items[0]
		equal(t, "names of another workspace", []string{named.ActorName, named.TargetName}, []string{"", ""})
	})

	t.Run("pages with a filter", func(t *testing.T) {
		filter := audit.Filter{Action: "changed"}
		page := must(w.Audit.AuditEntries(ctx, ws.ID, filter, paging.Request{Limit: 2}))(t)
		equal(t, "first", page, paging.Page[audit.Entry]{Items: pick(0, 1), Next: entries[1].ID})
		page = must(w.Audit.AuditEntries(ctx, ws.ID, filter, paging.Request{Limit: 2, After: page.Next}))(t)
		equal(t, "last", page, paging.Page[audit.Entry]{Items: pick(2)})
		empty(w.Audit.AuditEntries(ctx, ws.ID, filter, paging.Request{Limit: 2, After: entries[2].ID}))(t, "after the last")
	})
}
