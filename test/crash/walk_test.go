package crash_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/openapi"
	"github.com/stepmill/stepmill/test/harness"
)

// walk has everything that a key can read from a server: the bodies of all GET responses
// by path.
type walk struct {
	t         *testing.T
	c         *harness.Client
	responses map[string]string
	visited   map[string]bool // by the path in the OpenAPI document
}

// followed has routes that are tested elsewhere or do not depend on the data.
var followed = []string{"/v1/runs/{id}/events", "/v1/events/stream", "/v1/nodes", "/v1/runs/{id}/steps/{step_id}/rounds", "/v1/tables/{id}/export", "/v1/files/uploads/{id}", "/v1/schedules/preview", "/healthz", "/readyz"}

var contractPath = regexp.MustCompile(`(?m)^  (/\S+):\n(?:    .*\n)*?    get:$`)

// walkAll reads everything.
func walkAll(t *testing.T, c *harness.Client) *walk {
	t.Helper()
	w := &walk{t: t, c: c, responses: map[string]string{}, visited: map[string]bool{}}
	for _, path := range []string{"/v1/usage", "/v1/audit", "/v1/events"} {
		w.list(path, "")
	}
	for _, link := range w.list("/v1/approvals", "page_url") {
		w.page("/approve/{token}", link)
	}
	for _, path := range []string{"/v1/openapi.yaml", "/v1/openapi.json", "/v1/schemas/workflow.json", "/v1/schemas/integration.json"} {
		w.visited[path] = true
	}
	for _, id := range w.list("/v1/workflows", "id") {
		w.get("/v1/workflows/{id}", id)
		w.read("/v1/search", "?q="+id, nil)
		w.list("/v1/workflows/{workflow_id}/runs", "", id)
		for _, n := range w.list("/v1/workflows/{id}/versions", "version", id) {
			w.get("/v1/workflows/{id}/versions/{n}", id, n)
			w.get("/v1/workflows/{id}/versions/{n}/diff", id, n)
		}
		for _, trigger := range w.list("/v1/workflows/{id}/triggers", "id", id) {
			w.list("/v1/workflows/{id}/triggers/{trigger_id}/requests", "", id, trigger)
		}
	}
	for _, id := range w.list("/v1/runs", "id") {
		w.get("/v1/runs/{id}", id)
		w.get("/v1/runs/{id}/definition", id)
		w.list("/v1/runs/{id}/logs", "", id)
		for _, step := range w.list("/v1/runs/{id}/steps", "step_id", id) {
			w.get("/v1/runs/{id}/steps/{step_id}", id, step)
		}
	}
	for _, id := range w.list("/v1/webhooks", "id") {
		w.get("/v1/webhooks/{id}", id)
		for _, delivery := range w.list("/v1/webhooks/{id}/deliveries", "id", id) {
			w.get("/v1/deliveries/{id}", delivery)
		}
	}
	for _, id := range w.list("/v1/tables", "id") {
		w.get("/v1/tables/{id}", id)
		for _, row := range w.list("/v1/tables/{id}/rows", "id", id) {
			w.get("/v1/tables/{id}/rows/{row_id}", id, row)
		}
	}
	for list, key := range map[string]string{
		"secrets": "name", "variables": "name", "connections": "id", "oauth-apps": "id", "api-keys": "id", "members": "id", "invitations": "id",
		"workspaces": "id", "actions": "name", "templates": "name", "state": "key",
	} {
		for _, id := range w.list("/v1/"+list, key) {
			w.get("/v1/"+list+"/{"+key+"}", id)
		}
	}
	for _, id := range w.list("/v1/files", "id") {
		w.visited["/v1/files/{id}"] = true
		w.responses["/v1/files/"+id] = string(w.c.Expect(t, 200, "GET", "/v1/files/"+id, nil).Body)
	}
	// They are part of the binary and many, so one of them is enough.
	w.get("/v1/integrations/{id}", w.list("/v1/integrations", "id")[0])
	w.page("/v1/integrations/{id}/icon", "/v1/integrations/gmail/icon")
	w.get("/v1/integrations/{id}/triggers/{trigger}", "gmail", "new_message")
	w.get("/v1/integrations/{id}/manifest", "x_acme")
	return w
}

// checkCovered reports the routes that were not read.
func (w *walk) checkCovered() {
	w.t.Helper()
	known := append(slices.Sorted(maps.Keys(w.visited)), followed...)
	for _, match := range contractPath.FindAllSubmatch(openapi.YAML, -1) {
		if !slices.Contains(known, string(match[1])) && !strings.HasPrefix(string(match[1]), "/ui/") {
			w.t.Errorf("GET %s is not read", match[1])
		}
	}
}

var parameter = regexp.MustCompile(`\{\w+\}`)

// get reads a single resource.
func (w *walk) get(pattern string, values ...string) {
	w.t.Helper()
	w.read(pattern, "", values)
}

func (w *walk) read(pattern, query string, values []string) (items []any, next string) {
	w.t.Helper()
	w.visited[pattern] = true
	path := parameter.ReplaceAllStringFunc(pattern, func(string) string {
		value := values[0]
		values = values[1:]
		return url.PathEscape(value)
	})
	var body map[string]any
	w.c.Expect(w.t, 200, "GET", path+query, nil).Decode(w.t, &body)
	items, _ = body["data"].([]any)
	next, _ = body["next_cursor"].(string)
	text, err := json.Marshal(stable(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for w.responses[path] != "" { // the next page
		path += "+"
	}
	w.responses[path] = string(text)
	return items, next
}

// page reads an HTML page.
func (w *walk) page(pattern, link string) {
	w.t.Helper()
	w.visited[pattern] = true
	u, err := url.Parse(link)
	if err != nil {
		w.t.Fatal(err)
	}
	w.responses[u.Path] = string(w.c.Expect(w.t, 200, "GET", u.Path, nil).Body)
}

// list reads all pages of a list and returns a member of each item.
func (w *walk) list(pattern, member string, values ...string) (found []string) {
	w.t.Helper()
	query := "?limit=100"
	if pattern == "/v1/usage" {
		query = ""
	}
	for {
		items, next := w.read(pattern, query, values)
		for _, item := range items {
			if thing, ok := item.(map[string]any); ok && member != "" {
				found = append(found, fmt.Sprint(thing[member]))
			}
		}
		if next == "" {
			return found
		}
		query = "?limit=100&cursor=" + next
	}
}

// stable returns a body without the members that change over time or by being read, and
// without the records of exports: each side may have been exported once more.
func stable(body any) any {
	switch b := body.(type) {
	case []any:
		b = slices.DeleteFunc(b, func(item any) bool {
			entry, _ := item.(map[string]any)
			return entry["action"] == "export.created"
		})
		for i := range b {
			b[i] = stable(b[i])
		}
		return b
	case map[string]any:
		for name, value := range b {
			if name == "next_cursor" || name == "last_used_at" || name == "requests" || name == "duration_ms" && b["finished_at"] == nil {
				delete(b, name)
				continue
			}
			b[name] = stable(value)
		}
	}
	return body
}

// compare reports where the responses differ from those of another server.
func (w *walk) compare(before *walk) {
	w.t.Helper()
	for _, path := range slices.Sorted(maps.Keys(before.responses)) {
		if was, is := before.responses[path], w.responses[path]; was != is {
			w.t.Errorf("GET %s\nbefore: %.2000s\nafter:  %.2000s", strings.TrimRight(path, "+"), was, is)
		}
	}
	if len(w.responses) != len(before.responses) {
		w.t.Errorf("%d responses before, %d after", len(before.responses), len(w.responses))
	}
}
