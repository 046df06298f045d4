package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const workspaceKeys = "id name plan requests_per_minute created_at updated_at"

// The first workspace manages all workspaces; the others see only themselves.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	operator := s.operator(t)
	first := operator.call("GET", "/v1/workspaces", "").wantStatus(200)
	firstID := first.items()[0]["id"].(string)

	t.Run("a new installation has one workspace, on Enterprise with 60,000 requests per minute", func(t *testing.T) {
		wantContains(t, first.json(), `{"data": [{"plan": "enterprise", "requests_per_minute": 60000}], "next_cursor": null}`)
		wantKeys(t, first.items()[0], workspaceKeys)
		if got := first.header.Get("X-RateLimit-Limit"); got != "60000" {
			t.Errorf("the limit is %s", got)
		}
	})
	t.Run("its first key was created by the service", func(t *testing.T) {
		wantContains(t, operator.withT(t).call("GET", "/v1/api-keys", "").wantStatus(200).json(),
			`{"data": [{"name": "First admin key", "scopes": ["admin"], "created_by": null}]}`)
	})
	made := operator.call("POST", "/v1/workspaces", `{"name": " Marketing ", "plan": "pro"}`).wantStatus(201)
	id := made.str("id")
	other := client{t: t, server: s, key: made.str("api_key")}

	t.Run("a new workspace comes with the value of its first admin key", func(t *testing.T) {
		wantKeys(t, made.object(), workspaceKeys+" api_key")
		wantContains(t, made.json(), `{"id": "~ws_[0-9a-z]{26}", "name": "Marketing", "plan": "pro", "requests_per_minute": 600}`)
		if got := made.header.Get("Location"); got != "/v1/workspaces/"+id {
			t.Errorf("it is at %s", got)
		}
		wantContains(t, other.withT(t).call("GET", "/v1/api-keys", "").wantStatus(200).json(), `{"data": [{"scopes": ["admin"]}]}`)
	})
	t.Run("the operator lists all, newest first", func(t *testing.T) {
		if got := operator.withT(t).call("GET", "/v1/workspaces", "").wantStatus(200).column("id"); !slices.Equal(got, []string{id, firstID}) {
			t.Errorf("workspaces are %v", got)
		}
	})
	t.Run("everyone else lists their own", func(t *testing.T) {
		wantContains(t, other.withT(t).call("GET", "/v1/workspaces?limit=1", "").wantStatus(200).json(), `{"data": [{"id": "`+id+`"}], "next_cursor": null}`)
	})
	t.Run("a key of the first workspace that is not admin lists its own", func(t *testing.T) {
		key := operator.withT(t).call("POST", "/v1/api-keys", `{"name": "r", "scopes": ["read"]}`).wantStatus(201).str("key")
		reader := client{t: t, server: s, key: key}
		wantContains(t, reader.call("GET", "/v1/workspaces", "").wantStatus(200).json(), `{"data": [{"id": "`+firstID+`"}]}`)
		reader.call("GET", "/v1/workspaces/"+id, "").wantStatus(404, "workspace_not_found")
	})
	t.Run("the operator reads any, everyone else their own", func(t *testing.T) {
		wantKeys(t, operator.withT(t).call("GET", "/v1/workspaces/"+id, "").wantStatus(200).object(), workspaceKeys)
		other.withT(t).call("GET", "/v1/workspaces/"+id, "").wantStatus(200)
		other.withT(t).call("GET", "/v1/workspaces/"+firstID, "").wantStatus(404, "workspace_not_found")
		operator.withT(t).call("GET", "/v1/workspaces/ws_01m7fe3gv0es8r65rzyjka792g", "").wantStatus(404, "workspace_not_found")
	})
	t.Run("only the operator creates and changes workspaces", func(t *testing.T) {
		other.withT(t).call("POST", "/v1/workspaces", `{"name": "n"}`).wantStatus(403, "insufficient_scope")
		other.withT(t).call("PATCH", "/v1/workspaces/"+id, `{"plan": "enterprise", "requests_per_minute": 1000000}`).wantStatus(403, "insufficient_scope")
		other.withT(t).call("PATCH", "/v1/workspaces/"+firstID, `{"plan": "free"}`).wantStatus(404, "workspace_not_found")
	})
	t.Run("what the operator does to workspaces is recorded in the first one", func(t *testing.T) {
		operator.withT(t).call("PATCH", "/v1/workspaces/"+id, `{"name": "Growth"}`).wantStatus(200)
		got := operator.withT(t).call("GET", "/v1/audit?target_id="+id, "").wantStatus(200)
		wantContains(t, got.json(), `{"data": [{"action": "workspace.updated", "target_type": "workspace", "details": {"name": "Growth"}},
			{"action": "workspace.created", "details": {"plan": "pro", "name": "Marketing"}}]}`)
	})
}

func TestWorkspacePlans(t *testing.T) {
	t.Parallel()
	operator := sharedServer(t).operator(t)
	for _, tc := range []struct {
		body   string
		status int
		says   string // in the response, or the pointer of the error
	}{
		{`{"name": "n"}`, 201, `"plan":"free","requests_per_minute":60,`},
		{`{"name": "n", "plan": "enterprise", "requests_per_minute": 7}`, 201, `"plan":"enterprise","requests_per_minute":7,`},
		{`{"name": "n", "plan": "pro"}`, 201, `"plan":"pro","requests_per_minute":600,`},
		{`{"name": "n", "plan": "enterprise", "requests_per_minute": 1.5}`, 400, "/requests_per_minute"},
		{`{"name": "n", "plan": "enterprise", "requests_per_minute": "5"}`, 400, "/requests_per_minute"},
		{`{"name": "n", "plan": "enterprise", "requests_per_minute": null}`, 400, "/requests_per_minute"},
		{`{"name": "n", "plan": null}`, 400, "/plan"},
		{`{"name": "n", "plan": ""}`, 400, "/plan"},
		{`{"plan": "pro"}`, 400, "/name"},
		{`{"name": "n", "first": true}`, 400, "/first"},
	} {
		a := operator.call("POST", "/v1/workspaces", tc.body).wantStatus(tc.status)
		if !strings.Contains(string(a.body), tc.says) {
			t.Errorf("%s: got %s, want %s in it", tc.body, a.body, tc.says)
		}
	}
}

func TestPatchWorkspace(t *testing.T) {
	t.Parallel()
	operator := sharedServer(t).operator(t)
	for _, tc := range []struct {
		from, patch string
		status      int
		answer      string
	}{
		{`"plan": "free"`, `{"plan": "enterprise", "requests_per_minute": 5}`, 200, `{"plan": "enterprise", "requests_per_minute": 5}`},
		{`"plan": "free"`, `{"name": null}`, 400, ""},
		{`"plan": "free"`, `{"plan": null, "requests_per_minute": null}`, 400, ""},
		{`"plan": "free"`, `{"id": "x"}`, 400, ""},
		{`"plan": "enterprise", "requests_per_minute": 7`, `{"plan": "enterprise"}`, 200, `{"requests_per_minute": 7}`},
		{`"plan": "pro"`, `{"name": "New"}`, 200, `{"name": "New", "plan": "pro", "requests_per_minute": 600}`},
		{`"plan": "pro"`, `{}`, 200, `{"name": "n", "plan": "pro"}`},
	} {
		id := operator.call("POST", "/v1/workspaces", `{"name": "n", `+tc.from+`}`).wantStatus(201).str("id")
		a := operator.call("PATCH", "/v1/workspaces/"+id, tc.patch)
		if a.status != tc.status {
			t.Errorf("%s then %s: got %d %s", tc.from, tc.patch, a.status, a.body)
			continue
		}
		if tc.answer != "" {
			wantContains(t, a.json(), tc.answer)
			wantKeys(t, a.object(), workspaceKeys)
		} else if got := fmt.Sprint(a.code()); got != "invalid_request" {
			t.Errorf("%s then %s: the code is %s", tc.from, tc.patch, got)
		}
	}
	operator.call("PATCH", "/v1/workspaces/ws_01m7fe3gv0es8r65rzyjka792g", `{"name": "n"}`).wantStatus(404, "workspace_not_found")
}
