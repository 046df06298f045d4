package api_test

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"
)

const keyKeys = "id name scopes prefix created_at created_by expires_at last_used_at"

func setupKey(w *testWorkspace) {
	a := w.create("key", "/v1/api-keys", `{"name": "Given", "scopes": ["read"]}`)
	w.names["value"] = a.str("key")
}

func TestCreateKey(t *testing.T) {
	inAYear := time.Now().Add(365 * 24 * time.Hour)
	runScenarios(t, []scenario{
		{
			name:    "a new key shows its value, which is not shown again",
			request: "POST /v1/api-keys", body: `{"name": " Nightly import ", "scopes": ["execute", "read", "read"]}`,
			status: 201, members: keyKeys + " key", headers: []string{"Location", "/v1/api-keys/key_[0-9a-z]{26}"},
			contains: `{"id": "~key_[0-9a-z]{26}", "name": "Nightly import", "scopes": ["read", "execute"], "prefix": "~smk_[0-9A-Za-z]{8}",
				"key": "~smk_[0-9A-Za-z]{8}_[0-9A-Za-z]{46}", "created_by": "~key_[0-9a-z]{26}", "expires_at": null, "last_used_at": null}`,
			audit: "api_key.created",
			after: func(w *testWorkspace, a *response) {
				w.names["key"] = a.str("id")
				read, list := w.call("GET", "/v1/api-keys/$key", "").wantStatus(200), w.call("GET", "/v1/api-keys", "").wantStatus(200)
				wantKeys(w.t, read.object(), keyKeys)
				wantKeys(w.t, list.items()[0], keyKeys)
				for _, body := range [][]byte{read.body, list.body} {
					if strings.Contains(string(body), a.str("key")) || !strings.Contains(string(body), a.str("prefix")) {
						w.t.Errorf("got %s", body)
					}
				}
			},
		},
		{
			name:    "a key can have an end, in any offset",
			request: "POST /v1/api-keys", body: fmt.Sprintf(`{"name": "n", "scopes": ["read"], "expires_at": %q}`,
				inAYear.In(time.FixedZone("", 5400)).Format(time.RFC3339)),
			status: 201, contains: fmt.Sprintf(`{"expires_at": %q}`, inAYear.UTC().Format("2006-01-02T15:04:05.000Z07:00")[:19]+".000Z"), audit: "api_key.created",
		},
		{
			name:    "an end of null is none",
			request: "POST /v1/api-keys", body: `{"name": "n", "scopes": ["read"], "expires_at": null}`, status: 201, contains: `{"expires_at": null}`, audit: "api_key.created",
		},
		{
			name:  "keys need the scope admin, also to be read",
			scope: "read", request: "GET /v1/api-keys", status: 403, code: "insufficient_scope", message: "admin",
		},
	})
}

// checksum implements the documented format independently: CRC-32 in base 62.
func checksum(text string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := crc32.ChecksumIEEE([]byte(text))
	var out [6]byte
	for i := 5; i >= 0; i-- {
		out[i] = digits[sum%62]
		sum /= 62
	}
	return string(out[:])
}

func TestCreateKeyErrors(t *testing.T) {
	var scenarios []scenario
	for _, tc := range []struct{ body, point string }{
		{`{"scopes": ["read"]}`, "/name"},
		{`{"name": "n"}`, "/scopes"},
		{`{"name": "n", "scopes": null}`, "/scopes"},
		{`{"name": "n", "scopes": ["root"]}`, "/scopes"},
		{`{"name": "n", "scopes": "read"}`, "/scopes"},
		{`{"name": "n", "scopes": ["read"], "expires_at": "tomorrow"}`, "/expires_at"},
		{`{"name": "n", "scopes": ["read"], "expires_at": "2099-01-01"}`, "/expires_at"},
		{`{"name": "n", "scopes": ["read"], "expires_at": 4102444800}`, "/expires_at"},
		{`{"name": "n", "scopes": ["read"], "workspace_id": "$workspace"}`, "/workspace_id"},
		{`{"name": "n", "scopes": ["read"], "key": "smk_aaaaaaaa_bbb"}`, "/key"},
		{`{"name": "n", "scopes": ["read"], "created_by": "cli"}`, "/created_by"},
	} {
		scenarios = append(scenarios, scenario{
			name: "an invalid key is rejected: " + tc.body, request: "POST /v1/api-keys", body: tc.body,
			status: 400, code: "invalid_request", pointers: []string{tc.point},
		})
	}
	runScenarios(t, scenarios)
}

func TestRevokeKey(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a revoked key is not found and no longer works",
			setup: setupKey, request: "DELETE /v1/api-keys/$key", status: 204, audit: "api_key.revoked",
			after: func(w *testWorkspace, _ *response) {
				revoked := client{t: w.t, server: w.server, key: w.names["value"]}
				revoked.call("GET", "/v1/workflows", "").wantStatus(401, "unauthorized")
				w.call("GET", "/v1/api-keys/$key", "").wantStatus(404, "api_key_not_found")
				w.call("DELETE", "/v1/api-keys/$key", "").wantStatus(404, "api_key_not_found")
				if got := w.call("GET", "/v1/api-keys", "").column("id"); slices.Contains(got, w.names["key"]) {
					w.t.Errorf("it is still in the list: %v", got)
				}
			},
		},
		{
			name:    "an unknown key is api_key_not_found, and the message names it",
			request: "DELETE /v1/api-keys/key_01m7fcp3q8e60tak362xesvjfr", status: 404, code: "api_key_not_found", message: "key_01m7fcp3q8e60tak362xesvjfr",
		},
		{
			name:    "reading an unknown key is api_key_not_found",
			request: "GET /v1/api-keys/nonsense", status: 404, code: "api_key_not_found",
		},
	})
}

// The time of last use is written with a delay of some seconds.
func TestKeyLastUsedAt(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupKey(w)
	before := time.Now().Add(-time.Second)
	client{t: t, server: w.server, key: w.names["value"]}.call("GET", "/v1/workflows", "").wantStatus(200)
	var used any
	eventually(t, "the last use is shown", func() bool {
		used = w.call("GET", "/v1/api-keys/$key", "").object()["last_used_at"]
		return used != nil
	})
	at, err := time.Parse(time.RFC3339, used.(string))
	if err != nil || at.Before(before) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("last used at %v", used)
	}
}

func TestResourceLimitsPerPlan(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	type thing struct {
		name, path, body string
		limit            int
		world            *testWorkspace
		last             string
	}
	things := []*thing{
		{name: "webhooks", path: "/v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"]}`, limit: 20},
		{name: "workflows", path: "/v1/workflows", body: `{"name": "n"}`, limit: 100},
	}
	for _, th := range things {
		th.world = s.newTestWorkspace(t)
		for range th.limit - len(th.world.call("GET", th.path, "").items()) {
			th.last = th.world.call("POST", th.path, th.body).wantStatus(201).str("id")
		}
		s.operator(t).call("PATCH", "/v1/workspaces/"+th.world.id, `{"plan": "free"}`).wantStatus(200)
	}
	s.restart(t) // resets the rate limits
	for _, th := range things {
		t.Run(fmt.Sprintf("a free workspace has at most %d %s", th.limit, th.name), func(t *testing.T) {
			w := th.world.withT(t)
			a := w.call("POST", th.path, th.body).wantStatus(403, "plan_limit_exceeded")
			if !strings.Contains(a.message(), fmt.Sprint(th.limit)) {
				t.Errorf("the message is %q", a.message())
			}
			w.call("DELETE", th.path+"/"+th.last, "").wantStatus(204)
			w.call("POST", th.path, th.body).wantStatus(201)
		})
	}
}
