package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/test/lane"
)

// listChanges are changes to a list while it is read: items to add, and
// positions in the original list to remove.
type listChanges struct {
	items, limit, added int
	removed             []int
}

func drawListChanges(rt *rapid.T) listChanges {
	c := listChanges{
		items: rapid.IntRange(0, 14).Draw(rt, "items"),
		limit: rapid.IntRange(1, 5).Draw(rt, "limit"),
		added: rapid.IntRange(0, 6).Draw(rt, "added"),
	}
	if c.items > 0 {
		c.removed = rapid.SliceOfNDistinct(rapid.IntRange(0, c.items-1), 0, c.items, rapid.ID).Draw(rt, "removed")
	}
	return c
}

// readWhileChanging reads the list while it changes and checks the result:
// items that existed throughout appear exactly once, no item twice, newest
// first.
func (c listChanges) readWhileChanging(rt *rapid.T, reader client, path string, ids []string, add func(), remove func(id string)) {
	var group sync.WaitGroup
	group.Go(func() {
		for range c.added {
			add()
		}
	})
	group.Go(func() {
		for _, i := range c.removed {
			remove(ids[i])
		}
	})
	seen := slices.Concat(readPages(reader, fmt.Sprintf("%s&limit=%d", path, c.limit), "id")...)
	group.Wait()
	if !slices.IsSortedFunc(seen, func(a, b string) int {
		if a > b {
			return -1
		}
		return 1
	}) {
		rt.Fatalf("not newest first, or something twice: %v", seen)
	}
	for i, id := range ids {
		if !slices.Contains(c.removed, i) && !slices.Contains(seen, id) {
			rt.Fatalf("item %d of %d, %s, was skipped: %v", i, len(ids), id, seen)
		}
	}
}

// Rows that exist throughout are returned exactly once, whatever is added or
// deleted meanwhile.
func TestPaginationUnderChange(t *testing.T) {
	t.Parallel()
	t.Run("workflows", func(t *testing.T) {
		t.Parallel()
		lane.Check(t, func(rt *rapid.T) {
			c := drawListChanges(rt)
			w := newTestWorkspace(t)
			var ids []string
			for range c.items {
				ids = append(ids, w.workflow("item").str("id"))
			}
			c.readWhileChanging(rt, w.client, "/v1/workflows?state=draft", ids,
				func() { w.client.call("POST", "/v1/workflows", `{"name": "new"}`).wantStatus(http.StatusCreated) },
				func(id string) { w.client.call("DELETE", "/v1/workflows/"+id, "").wantStatus(http.StatusNoContent) })
		})
	})
	t.Run("runs", func(t *testing.T) {
		t.Parallel()
		lane.Check(t, func(rt *rapid.T) {
			c := drawListChanges(rt)
			w := newTestWorkspace(t)
			w.workflow("wf", waitStep)
			var ids []string
			for range c.items {
				ids = append(ids, w.startRun("item", "wf", "").str("id"))
			}
			start := func() { w.client.call("POST", w.expand("/v1/workflows/$wf/runs"), "").wantStatus(http.StatusCreated) }
			cancel := func(id string) { w.client.call("POST", "/v1/runs/"+id+"/cancel", "").wantStatus(http.StatusOK) }
			c.readWhileChanging(rt, w.client, w.expand("/v1/workflows/$wf/runs?status=running"), ids, start, cancel)
			// Without a filter, a cancelled run keeps its position.
			c.added, c.removed = 2, nil
			c.readWhileChanging(rt, w.client, w.expand("/v1/workflows/$wf/runs?"), ids, start, cancel)
		})
	})
}
