package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// setupWorkflowNames creates workflows with distinctive names.
func setupWorkflowNames(w *testWorkspace) {
	for name, title := range map[string]string{
		"exact": "orders", "prefix": "Orders of today", "word": "Sync ORDERS", "inside": "Reorders",
		"described": "Nightly", "umlaut": "Größe prüfen", "percent": "100% sure", "other": "Invoices",
	} {
		w.workflow(name)
		w.patch(name, fmt.Sprintf(`{"name": %q}`, title))
	}
	w.patch("described", `{"description": "Looks through all orders.\nRuns at night."}`)
	w.workflow("gone")
	w.patch("gone", `{"name": "Orders of the past"}`)
	w.call("DELETE", "/v1/workflows/$gone", "").wantStatus(http.StatusNoContent)
}

func TestSearch(t *testing.T) {
	finds := func(name, query string, want ...string) scenario {
		return scenario{
			name: name, setup: setupWorkflowNames, scope: "read", request: "GET /v1/search?types=workflow&q=" + query, status: 200, members: "workflows runs templates",
			after: func(w *testWorkspace, a *response) {
				w.t.Helper()
				ids, got := []string{}, []string{}
				for _, name := range want {
					ids = append(ids, w.names[name])
				}
				for _, item := range a.object()["workflows"].([]any) {
					got = append(got, item.(map[string]any)["id"].(string))
				}
				if !slices.Equal(got, ids) {
					w.t.Errorf("found %v, want %v: %s", got, want, a.body)
				}
			},
		}
	}
	refuses := func(query, says string) scenario {
		return scenario{name: "rejected: " + query, request: "GET /v1/search?" + query, lenient: true, status: 400, code: "invalid_request", message: says}
	}
	runScenarios(t, []scenario{
		finds("the best matches come first", "Orders", "exact", "prefix", "word", "inside", "described"),
		finds("limit cuts off the rest", "orders&limit=2", "exact", "prefix"),
		finds("every word has to occur, in the name or the description", "orders+night", "described"),
		finds("a word that occurs nowhere finds nothing", "orders+nothing"),
		finds("upper and lower case are the same beyond ASCII", url.QueryEscape("GRÖSSE PRÜ"), "umlaut"),
		finds("a percent sign is only that", url.QueryEscape("100%"), "percent"),
		finds("an SQL wildcard is taken literally", url.QueryEscape("_ %")),
		finds("the id of a workflow finds it", "$other", "other"),
		finds("an id in capitals finds it too", "WF_0$none"),
		{
			name: "an item is one of the list of workflows", setup: setupWorkflowNames, request: "GET /v1/search?q=invoices", status: 200,
			after: func(w *testWorkspace, a *response) {
				wantKeys(w.t, a.object()["workflows"].([]any)[0].(map[string]any), "id name state created_at updated_at")
			},
			contains: `{"workflows": [{"id": "$other", "name": "Invoices", "state": "draft"}], "runs": [], "templates": []}`,
		},
		{
			name: "a run is found by its id", setup: setupRuns, request: "GET /v1/search?q=$failed", status: 200,
			contains: `{"workflows": [], "runs": [{"id": "$failed", "workflow_name": "Workflow bad", "status": "failed"}], "templates": []}`,
			after: func(w *testWorkspace, a *response) {
				wantKeys(w.t, a.object()["runs"].([]any)[0].(map[string]any), listedRunKeys)
			},
		},
		{
			name: "runs are found by the beginning of their ids, newest first", setup: setupRuns, request: "GET /v1/search?q=RUN_0&limit=2", status: 200,
			contains: `{"runs": [{"id": "$running"}, {"id": "$cancelled"}]}`,
		},
		{
			name: "runs of a deleted workflow are not found", setup: func(w *testWorkspace) {
				setupRuns(w)
				w.call("DELETE", "/v1/workflows/$bad", "").wantStatus(http.StatusNoContent)
			},
			request: "GET /v1/search?q=$failed", status: 200, contains: `{"workflows": [], "runs": [], "templates": []}`,
		},
		{
			name: "a template is found by its title", request: "GET /v1/search?q=SAY+hello", status: 200,
			contains: `{"workflows": [], "runs": [], "templates": [{"name": "hello", "title": "Say hello"}]}`,
			after: func(w *testWorkspace, a *response) {
				wantKeys(w.t, a.object()["templates"].([]any)[0].(map[string]any), "name title description category first_run triggers uses inputs")
			},
		},
		{
			name: "a template is found by an action it uses", request: "GET /v1/search?q=log.write+hello&types=template", status: 200,
			contains: `{"templates": [{"name": "hello"}]}`,
		},
		{
			name: "only what was asked for is searched", setup: setupRuns, request: "GET /v1/search?q=$failed&types=template,workflow", status: 200,
			contains: `{"workflows": [], "runs": [], "templates": []}`,
		},
		refuses("", "q: is required"),
		refuses("types=workflow", "q: is required"),
		refuses("q=", "q: must not be empty"),
		refuses("q=+%09", "q: must contain"),
		refuses("q="+strings.Repeat("x", 201), "q: must have at most 200 characters"),
		refuses("q=x&types=webhook", "types: must be a comma-separated list of workflow, run, template; \"webhook\""),
		refuses("q=x&types=workflow,", "types: must be"),
		refuses("q=x&limit=0", "limit"),
		refuses("q=x&limit=101", "limit"),
		refuses("q=x&cursor=y", "cursor"),
		refuses("text=x", "text"),
		{name: "a search needs the scope read", scope: "write", request: "GET /v1/search?q=x", status: 403, code: "insufficient_scope", message: "read"},
	})
}

func TestListWorkflowsByText(t *testing.T) {
	lists := func(name, query string, want ...string) scenario {
		return scenario{
			name: name, setup: setupWorkflowNames, scope: "read", request: "GET /v1/workflows?" + query, status: 200,
			after: func(w *testWorkspace, a *response) {
				w.t.Helper()
				got := a.column("id")
				ids := []string{}
				for _, name := range want {
					ids = append(ids, w.names[name])
				}
				slices.Sort(ids)
				slices.Reverse(ids) // newest first
				if !slices.Equal(got, ids) || a.object()["next_cursor"] != nil {
					w.t.Errorf("listed %v, want %v: %v", got, want, ids)
				}
			},
		}
	}
	runScenarios(t, []scenario{
		lists("by words of the name and the description", "text=orders", "exact", "prefix", "word", "inside", "described"),
		lists("with activity", "text=orders+night&include=activity", "described"),
		lists("by state too", "text=orders&state=active"),
		lists("by id", "text=$other", "other"),
		lists("by a text that SQL would understand", "text="+url.QueryEscape("%' OR 1=1 --")),
		{
			name: "a cursor is bound to the text", setup: setupWorkflowNames, request: "GET /v1/workflows?text=orders&limit=2", status: 200,
			after: func(w *testWorkspace, a *response) {
				cursor := a.str("next_cursor")
				w.call("GET", "/v1/workflows?text=order&limit=2&cursor="+cursor, "").wantStatus(400, "invalid_cursor")
				w.call("GET", "/v1/workflows?limit=2&cursor="+cursor, "").wantStatus(400, "invalid_cursor")
				if got := slices.Concat(readPages(w.client, "/v1/workflows?text=orders&limit=2", "id")...); len(got) != 5 {
					w.t.Errorf("page by page: %v", got)
				}
			},
		},
		{name: "a text without a word is rejected", request: "GET /v1/workflows?text=+", lenient: true, status: 400, code: "invalid_request", message: "text: must contain"},
		{name: "a text that is too long is rejected", request: "GET /v1/workflows?text=" + strings.Repeat("x", 201), lenient: true, status: 400, code: "invalid_request", message: "text: must have"},
	})
}
