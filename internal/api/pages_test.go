package api_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lists holds every list, with a function to add an item and the key that
// identifies items.
var lists = []struct {
	name, path, key string
	given           func(w *testWorkspace)
	add             func(w *testWorkspace)
	filter          string // a filter that matches added items
	otherFilter     string
	byName          bool // otherwise newest first
}{
	{
		name: "workflows", path: "/v1/workflows", key: "id",
		add: func(w *testWorkspace) { w.workflow("item") }, filter: "state=draft", otherFilter: "state=active",
	},
	{
		name: "runs", path: "/v1/workflows/$wf/runs", key: "id",
		given: func(w *testWorkspace) { w.workflow("wf") },
		add:   func(w *testWorkspace) { w.runToEnd("item", "wf", "") }, filter: "status=succeeded", otherFilter: "status=failed",
	},
	{
		name: "running runs", path: "/v1/workflows/$wf/runs", key: "id",
		given: func(w *testWorkspace) { w.workflow("wf", waitStep) },
		add:   func(w *testWorkspace) { w.startRun("item", "wf", "") }, filter: "status=running", otherFilter: "status=cancelled",
	},
	{
		name: "all runs", path: "/v1/runs", key: "id",
		given: func(w *testWorkspace) { w.workflow("wf", failStep) },
		add:   func(w *testWorkspace) { w.runToEnd("item", "wf", "") }, filter: "status=failed&text=invalid_&trigger=manual", otherFilter: "status=failed&text=INVALID_&trigger=manual",
	},
	{
		name: "versions", path: "/v1/workflows/$wf/versions", key: "version",
		given: func(w *testWorkspace) { w.workflow("wf"); w.names["n"] = "" },
		add: func(w *testWorkspace) {
			w.names["n"] += "x"
			w.patch("wf", `{"triggers": [{"id": "t`+w.names["n"]+`", "type": "manual"}]}`)
		},
	},
	{
		name: "triggers", path: "/v1/workflows/$wf/triggers", key: "id", byName: true,
		given: func(w *testWorkspace) { w.workflow("wf"); w.names["list"] = "" },
		add: func(w *testWorkspace) {
			w.names["list"] += fmt.Sprintf(`, {"id": "t%03d", "type": "manual"}`, strings.Count(w.names["list"], "type"))
			w.patch("wf", `{"triggers": [`+strings.TrimPrefix(w.names["list"], ",")+`]}`)
		},
	},
	{
		name: "approvals", path: "/v1/approvals", key: "run_id",
		add: func(w *testWorkspace) { w.workflow("item", askStep); w.runUntilWaiting("item_run", "item") },
	},
	{
		name: "webhooks", path: "/v1/webhooks", key: "id",
		add: func(w *testWorkspace) {
			w.create("item", "/v1/webhooks", `{"url": "https://example.com", "events": ["run.failed"]}`)
		},
	},
	{name: "secrets", path: "/v1/secrets", key: "name", add: setupSecret, byName: true},
	{name: "variables", path: "/v1/variables", key: "name", add: setupVariable, byName: true},
	{name: "connections", path: "/v1/connections", key: "name", add: setupConnection, byName: true},
	{name: "tables", path: "/v1/tables", key: "name", add: setupTable, byName: true},
	{
		name: "rows", path: "/v1/tables/$tbl/rows", key: "id", byName: true, given: setupTable, add: addRow,
		filter: "filter=%7B%22column%22:%22city%22,%22op%22:%22%3D%22,%22value%22:%22Bern%22%7D", otherFilter: "sort=city",
	},
	{name: "keys", path: "/v1/state", key: "key", add: setupStateKey, byName: true},
	{name: "API keys", path: "/v1/api-keys", key: "id", add: setupKey},
	{
		name: "audit entries", path: "/v1/audit", key: "id",
		add: func(w *testWorkspace) { w.workflow("item") }, filter: "action=workflow.created", otherFilter: "action=workflow.deleted",
	},
}

// readPages reads a list page by page.
func readPages(c client, path, key string) [][]string {
	c.t.Helper()
	var pages [][]string
	cursor := ""
	for range 1000 {
		at := path
		if cursor != "" {
			at += "&cursor=" + url.QueryEscape(cursor)
		}
		a := c.call("GET", at, "").wantStatus(200)
		pages = append(pages, a.column(key))
		if a.object()["next_cursor"] == nil {
			return pages
		}
		cursor = a.str("next_cursor")
	}
	c.t.Fatal("the list has no end")
	return nil
}

func TestPagination(t *testing.T) {
	t.Parallel()
	for _, list := range lists {
		t.Run(list.name, func(t *testing.T) {
			t.Parallel()
			w := newTestWorkspace(t)
			if list.given != nil {
				list.given(w)
			}
			path := w.expand(list.path)
			have := len(readPages(w.client, path+"?limit=100", list.key)[0])
			for range 21 - have {
				list.add(w)
			}
			all := readPages(w.client, path+"?limit=100", list.key)
			if len(all) != 1 || len(all[0]) != 21 {
				t.Fatalf("with limit=100 the pages are %v", all)
			}
			t.Run("a page has 20 items by default", func(t *testing.T) {
				a := w.client.withT(t).call("GET", path, "").wantStatus(200)
				if got := a.column(list.key); !slices.Equal(got, all[0][:20]) || a.object()["next_cursor"] == nil {
					t.Errorf("got %d items, next_cursor %v", len(got), a.object()["next_cursor"])
				}
			})
			t.Run("pages follow each other without a gap, whatever their size, also with a filter", func(t *testing.T) {
				for _, query := range []string{"limit=1", "limit=2", "limit=7", "limit=20", "limit=21", "limit=4&" + list.filter} {
					limit, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(query))
					if err != nil {
						t.Fatal(err)
					}
					pages := readPages(w.client.withT(t), path+"?"+query, list.key)
					if got := slices.Concat(pages...); !slices.Equal(got, all[0]) || len(pages) != (20+limit)/limit {
						t.Errorf("with %s: %d pages, items %v, want %v", query, len(pages), got, all[0])
					}
				}
			})
			t.Run("items of one list are not repeated and in order", func(t *testing.T) {
				inOrder := slices.Clone(all[0])
				if list.byName {
					slices.Reverse(inOrder)
				}
				// Ids sort as text, versions as numbers.
				for i := range len(inOrder) - 1 {
					if newer, older := inOrder[i], inOrder[i+1]; len(newer) < len(older) || len(newer) == len(older) && newer <= older {
						t.Errorf("%s comes before %s", newer, older)
					}
				}
			})
			t.Run("a limit outside 1 to 100 is rejected", func(t *testing.T) {
				for _, limit := range []string{"0", "-1", "101", "abc", "1.5", "1e2", "", "010", "+5", "NaN", "99999999999999999999", "0x10", "%2020", "5&limit=6"} {
					w.client.withT(t).call("GET", path+"?limit="+limit, "").wantStatus(400, "invalid_request")
				}
			})
		})
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	cursors := map[string]string{}
	w := newTestWorkspace(t)
	for _, list := range lists {
		if list.given != nil {
			list.given(w)
		}
		list.add(w)
		list.add(w)
		list.add(w)
		cursors[list.name] = w.call("GET", list.path+"?limit=1", "").wantStatus(200).str("next_cursor")
	}
	for _, list := range lists {
		if list.name == "running runs" {
			continue
		}
		if list.given != nil {
			list.given(w)
			list.add(w)
			list.add(w)
		}
		good := w.call("GET", list.path+"?limit=1", "").wantStatus(200).str("next_cursor")
		t.Run("a cursor of another list is invalid_cursor: "+list.name, func(t *testing.T) {
			for name, cursor := range cursors {
				if name != list.name || strings.Contains(list.path, "$") {
					w.withT(t).call("GET", list.path+"?cursor="+cursor, "").wantStatus(400, "invalid_cursor")
				}
			}
		})
		t.Run("a cursor that was tampered with is invalid_cursor: "+list.name, func(t *testing.T) {
			for _, bad := range tampered(t, good) {
				w.withT(t).call("GET", list.path+"?cursor="+url.QueryEscape(bad), "").wantStatus(400, "invalid_cursor")
			}
		})
		t.Run("an empty cursor is rejected: "+list.name, func(t *testing.T) {
			w.withT(t).call("GET", list.path+"?cursor=", "").wantStatus(400, "invalid_request")
		})
		t.Run("the page size may change between pages: "+list.name, func(t *testing.T) {
			w.withT(t).call("GET", list.path+"?limit=7&cursor="+good, "").wantStatus(200)
		})
		if list.filter == "" {
			continue
		}
		t.Run("a cursor of another filter is invalid_cursor: "+list.name, func(t *testing.T) {
			w := w.withT(t)
			filtered := w.call("GET", list.path+"?limit=1&"+list.filter, "").wantStatus(200).str("next_cursor")
			w.call("GET", list.path+"?limit=1&"+list.filter+"&cursor="+filtered, "").wantStatus(200)
			w.call("GET", list.path+"?cursor="+filtered, "").wantStatus(400, "invalid_cursor")
			w.call("GET", list.path+"?"+list.otherFilter+"&cursor="+filtered, "").wantStatus(400, "invalid_cursor")
			w.call("GET", list.path+"?"+list.filter+"&cursor="+good, "").wantStatus(400, "invalid_cursor")
		})
	}
}

// tampered returns modified copies of a cursor.
func tampered(t *testing.T, cursor string) []string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatalf("the cursor %q is not URL-safe: %v", cursor, err)
	}
	bad := []string{
		"x", "null", "0", "AAAA", cursor + "A", cursor + "=", cursor[1:], cursor[:len(cursor)-2], cursor + cursor, strings.ToUpper(cursor), " " + cursor,
		"../" + cursor, strings.Repeat("A", 10_000), base64.StdEncoding.EncodeToString(raw) + "==", "wf_01m7f8njhve3pt0yekqqme4qcm",
	}
	for _, i := range []int{0, len(raw) / 2, len(raw) - 1} {
		flipped := slices.Clone(raw)
		flipped[i] ^= 1
		bad = append(bad, base64.RawURLEncoding.EncodeToString(flipped))
	}
	return bad
}

func TestCursorFromAnotherWorkspace(t *testing.T) {
	t.Parallel()
	one, two := newTestWorkspace(t), newTestWorkspace(t)
	for _, w := range []*testWorkspace{one, two} {
		for range 2 {
			w.workflow("wf", askStep)
			w.runUntilWaiting("run", "wf")
			setupWebhook(w)
			setupKey(w)
			setupSecret(w)
			setupConnection(w)
			setupVariable(w)
		}
	}
	for _, path := range []string{"/v1/workflows", "/v1/approvals", "/v1/webhooks", "/v1/secrets", "/v1/variables", "/v1/connections", "/v1/api-keys", "/v1/audit"} {
		cursor := one.call("GET", path+"?limit=1", "").str("next_cursor")
		one.call("GET", path+"?limit=1&cursor="+cursor, "").wantStatus(200)
		two.call("GET", path+"?limit=1&cursor="+cursor, "").wantStatus(400, "invalid_cursor")
	}
}

// A cursor does not reveal its position.
func TestCursorsAreEncrypted(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("a")
	w.workflow("b")
	first := w.call("GET", "/v1/workflows?limit=1", "").str("next_cursor")
	raw, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "wf_") || first == w.call("GET", "/v1/workflows?limit=1", "").str("next_cursor") {
		t.Errorf("the cursor %q can be read, or is always the same", first)
	}
}

func TestWorkspacePagination(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for range 4 {
		s.newTestWorkspace(t)
	}
	operator := s.operator(t)
	all := readPages(operator, "/v1/workspaces?limit=100", "id")
	for _, limit := range []int{1, 2, 5} {
		if got := slices.Concat(readPages(operator, fmt.Sprintf("/v1/workspaces?limit=%d", limit), "id")...); !slices.Equal(got, all[0]) {
			t.Errorf("with limit=%d: %v, want %v", limit, got, all[0])
		}
	}
	for _, limit := range []string{"0", "101"} {
		operator.call("GET", "/v1/workspaces?limit="+limit, "").wantStatus(400, "invalid_request")
	}
	operator.call("GET", "/v1/workspaces?cursor=x", "").wantStatus(400, "invalid_cursor")
}
