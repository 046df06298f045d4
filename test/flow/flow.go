// Package flow makes workspaces and workflows for black-box tests, through the
// API.
package flow

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// NewWorkspace makes a workspace with a plan and returns a client with its key. An
// enterprise workspace gets a rate limit that no test reaches.
func NewWorkspace(t testing.TB, admin *harness.Client, plan string) *harness.Client {
	t.Helper()
	body := map[string]any{"name": "tenant", "plan": plan}
	if plan == "enterprise" {
		body["requests_per_minute"] = 1_000_000
	}
	var made struct {
		APIKey string `json:"api_key"`
	}
	admin.Expect(t, http.StatusCreated, "POST", "/v1/workspaces", body).Decode(t, &made)
	return admin.With(made.APIKey)
}

// Define makes an active workflow with these steps and returns its id.
func Define(t testing.TB, c *harness.Client, steps ...map[string]any) string {
	t.Helper()
	return DefineWith(t, c, nil, steps...)
}

// DefineWith makes an active workflow with settings, which may be nil, and returns
// its id.
func DefineWith(t testing.TB, c *harness.Client, settings map[string]any, steps ...map[string]any) string {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "defined"}, "Idempotency-Key", rand.Text()).Decode(t, &made)
	patch := map[string]any{"state": "active", "steps": steps}
	if settings != nil {
		patch["settings"] = settings
	}
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+made.ID, patch)
	return made.ID
}

// Step returns a step that executes an action. Its input is JSON.
func Step(id, uses, with string) map[string]any {
	return map[string]any{"id": id, "uses": uses, "with": json.RawMessage(with)}
}

// HTTP returns a step that posts the payload of its run to a URL. The members are
// pairs of name and value and set more of the step than its input.
func HTTP(id, url string, members ...any) map[string]any {
	step := map[string]any{"id": id, "uses": "http.request", "with": map[string]any{"url": url, "method": "POST", "body": "${{ trigger.payload }}"}}
	for i := 0; i+1 < len(members); i += 2 {
		step[members[i].(string)] = members[i+1]
	}
	return step
}

// Set returns a step without side effects. Its output is n with the value.
func Set(id string, value any) map[string]any {
	return map[string]any{"id": id, "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": value}}}
}

// Wait returns a step that waits for a duration.
func Wait(id, duration string) map[string]any {
	return map[string]any{"id": id, "uses": "flow.wait", "with": map[string]any{"for": duration}}
}

// HookPath returns the path of the URL at which the first trigger of a workflow, a
// webhook, is called.
func HookPath(t testing.TB, c *harness.Client, workflow string) string {
	t.Helper()
	var list struct{ Data []struct{ URL string } }
	c.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &list)
	if len(list.Data) == 0 {
		t.Fatalf("workflow %s has no triggers", workflow)
	}
	return PathFrom(t, list.Data[0].URL, "/hooks/")
}

// PathFrom returns the part of a URL that starts with a prefix of its path.
func PathFrom(t testing.TB, url, prefix string) string {
	t.Helper()
	_, rest, found := strings.Cut(url, prefix)
	if !found {
		t.Fatalf("URL %q does not contain %s", url, prefix)
	}
	return prefix + rest
}

// ErrorCode returns the code of an error response.
func ErrorCode(response harness.Response) string {
	var body struct{ Error struct{ Code string } }
	_ = json.Unmarshal(response.Body, &body)
	return body.Error.Code
}
