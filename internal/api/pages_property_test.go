package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// churn is what happens to a list while it is read: new items are added, and
// those at the given positions of the list as it was are taken out of it.
type churn struct {
	items, limit, added int
	removed             []int
}

func drawChurn(rt *rapid.T) churn {
	c := churn{
		items: rapid.IntRange(0, 14).Draw(rt, "items"),
		limit: rapid.IntRange(1, 5).Draw(rt, "limit"),
		added: rapid.IntRange(0, 6).Draw(rt, "added"),
	}
	if c.items > 0 {
		c.removed = rapid.SliceOfNDistinct(rapid.IntRange(0, c.items-1), 0, c.items, rapid.ID).Draw(rt, "removed")
	}
	return c
}

// readThrough walks the list while others change it, and checks what was seen:
// what was there throughout exactly once, nothing twice, newest first.
func (c churn) readThrough(rt *rapid.T, reader client, path string, ids []string, add func(), remove func(id string)) {
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
	seen := slices.Concat(walk(reader, fmt.Sprintf("%s&limit=%d", path, c.limit), "id")...)
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

// Rows that exist throughout a walk are seen exactly once, whatever is added
// and deleted meanwhile.
func TestPagesUnderChange(t *testing.T) {
	t.Parallel()
	t.Run("workflows", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) {
			c := drawChurn(rt)
			w := newWorld(t)
			var ids []string
			for range c.items {
				ids = append(ids, w.workflow("item").text("id"))
			}
			c.readThrough(rt, w.client, "/v1/workflows?state=draft", ids,
				func() { w.client.call("POST", "/v1/workflows", `{"name": "new"}`).want(http.StatusCreated) },
				func(id string) { w.client.call("DELETE", "/v1/workflows/"+id, "").want(http.StatusNoContent) })
		})
	})
	t.Run("runs", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) {
			c := drawChurn(rt)
			w := newWorld(t)
			w.workflow("wf", waitStep)
			var ids []string
			for range c.items {
				ids = append(ids, w.run("item", "wf", "").text("id"))
			}
			start := func() { w.client.call("POST", w.fill("/v1/workflows/$wf/runs"), "").want(http.StatusCreated) }
			cancel := func(id string) { w.client.call("POST", "/v1/runs/"+id+"/cancel", "").want(http.StatusOK) }
			c.readThrough(rt, w.client, w.fill("/v1/workflows/$wf/runs?status=running"), ids, start, cancel)
			// Without a filter a cancelled run stays where it is.
			c.added, c.removed = 2, nil
			c.readThrough(rt, w.client, w.fill("/v1/workflows/$wf/runs?"), ids, start, cancel)
		})
	})
}
