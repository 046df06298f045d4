package api_test

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"
)

const keyKeys = "id name scopes prefix created_at created_by expires_at last_used_at"

func givenKey(w *world) {
	a := w.make("key", "/v1/api-keys", `{"name": "Given", "scopes": ["read"]}`)
	w.names["value"] = a.text("key")
}

func TestCreateKey(t *testing.T) {
	inAYear := time.Now().Add(365 * 24 * time.Hour)
	runScenarios(t, []scenario{
		{
			name: "a new key shows its value, which is not shown again",
			call: "POST /v1/api-keys", body: `{"name": " Nightly import ", "scopes": ["execute", "read", "read"]}`,
			status: 201, keys: keyKeys + " key", headers: []string{"Location", "/v1/api-keys/key_[0-9a-z]{26}"},
			answer: `{"id": "~key_[0-9a-z]{26}", "name": "Nightly import", "scopes": ["read", "execute"], "prefix": "~smk_[0-9A-Za-z]{8}",
				"key": "~smk_[0-9A-Za-z]{8}_[0-9A-Za-z]{46}", "created_by": "~key_[0-9a-z]{26}", "expires_at": null, "last_used_at": null}`,
			audit: "api_key.created",
			then: func(w *world, a *answer) {
				w.names["key"] = a.text("id")
				read, list := w.call("GET", "/v1/api-keys/$key", "").want(200), w.call("GET", "/v1/api-keys", "").want(200)
				wantKeys(w.t, read.object(), keyKeys)
				wantKeys(w.t, list.items()[0], keyKeys)
				for _, body := range [][]byte{read.body, list.body} {
					if strings.Contains(string(body), a.text("key")) || !strings.Contains(string(body), a.text("prefix")) {
						w.t.Errorf("got %s", body)
					}
				}
			},
		},
		{
			name: "the value of a key is a prefix, an id, 40 characters and their checksum; only its SHA-256 is stored",
			call: "POST /v1/api-keys", body: `{"name": "n", "scopes": ["admin"]}`, status: 201, audit: "api_key.created",
			then: func(w *world, a *answer) {
				value := a.text("key")
				if len(value) != 59 || !strings.HasPrefix(value, a.text("prefix")+"_") || value[53:] != checksum(value[:53]) {
					w.t.Errorf("the value is %q", value)
				}
				hash := w.server.rows(w.t, `SELECT hex(hash) FROM api_keys WHERE id = ?`, a.text("id"))[0][0]
				if want := fmt.Sprintf("%X", sha256.Sum256([]byte(value))); hash != want {
					w.t.Errorf("stored is %s, want %s", hash, want)
				}
			},
		},
		{
			name: "a key works at once",
			call: "POST /v1/api-keys", body: `{"name": "n", "scopes": ["read"]}`, status: 201, audit: "api_key.created",
			then: func(w *world, a *answer) {
				client{t: w.t, server: w.server, key: a.text("key")}.call("GET", "/v1/workflows", "").want(200)
			},
		},
		{
			name: "a key can have an end, in any offset",
			call: "POST /v1/api-keys", body: fmt.Sprintf(`{"name": "n", "scopes": ["read"], "expires_at": %q}`,
				inAYear.In(time.FixedZone("", 5400)).Format(time.RFC3339)),
			status: 201, answer: fmt.Sprintf(`{"expires_at": %q}`, inAYear.UTC().Format("2006-01-02T15:04:05.000Z07:00")[:19]+".000Z"), audit: "api_key.created",
		},
		{
			name: "an end of null is none",
			call: "POST /v1/api-keys", body: `{"name": "n", "scopes": ["read"], "expires_at": null}`, status: 201, answer: `{"expires_at": null}`, audit: "api_key.created",
		},
		{
			name: "keys need the scope admin, also to be read",
			as:   "read", call: "GET /v1/api-keys", status: 403, code: "insufficient_scope", says: "admin",
		},
	})
}

// checksum is computed here from its description alone: CRC-32 in base 62.
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

func TestKeyRules(t *testing.T) {
	var scenarios []scenario
	for _, tc := range []struct{ body, point string }{
		{`{"scopes": ["read"]}`, "/name"},
		{`{"name": "", "scopes": ["read"]}`, "/name"},
		{`{"name": "` + strings.Repeat("x", 101) + `", "scopes": ["read"]}`, "/name"},
		{`{"name": "a\u0007b", "scopes": ["read"]}`, "/name"},
		{`{"name": "n"}`, "/scopes"},
		{`{"name": "n", "scopes": null}`, "/scopes"},
		{`{"name": "n", "scopes": []}`, "/scopes"},
		{`{"name": "n", "scopes": ["root"]}`, "/scopes"},
		{`{"name": "n", "scopes": ["public"]}`, "/scopes"},
		{`{"name": "n", "scopes": ["Read"]}`, "/scopes"},
		{`{"name": "n", "scopes": ["read,admin"]}`, "/scopes"},
		{`{"name": "n", "scopes": "read"}`, "/scopes"},
		{`{"name": "n", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}`, "/expires_at"},
		{`{"name": "n", "scopes": ["read"], "expires_at": "tomorrow"}`, "/expires_at"},
		{`{"name": "n", "scopes": ["read"], "expires_at": "2099-01-01"}`, "/expires_at"},
		{`{"name": "n", "scopes": ["read"], "expires_at": 4102444800}`, "/expires_at"},
		{`{"name": "n", "scopes": ["read"], "workspace_id": "$workspace"}`, "/workspace_id"},
		{`{"name": "n", "scopes": ["read"], "key": "smk_aaaaaaaa_bbb"}`, "/key"},
		{`{"name": "n", "scopes": ["read"], "created_by": "cli"}`, "/created_by"},
	} {
		scenarios = append(scenarios, scenario{
			name: "a key that is refused: " + tc.body, call: "POST /v1/api-keys", body: tc.body,
			status: 400, code: "invalid_request", points: []string{tc.point},
		})
	}
	runScenarios(t, scenarios)
}

func TestRevokeKey(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a revoked key is gone and does not work any more",
			given: givenKey, call: "DELETE /v1/api-keys/$key", status: 204, audit: "api_key.revoked",
			then: func(w *world, _ *answer) {
				revoked := client{t: w.t, server: w.server, key: w.names["value"]}
				revoked.call("GET", "/v1/workflows", "").want(401, "unauthorized")
				w.call("GET", "/v1/api-keys/$key", "").want(404, "api_key_not_found")
				w.call("DELETE", "/v1/api-keys/$key", "").want(404, "api_key_not_found")
				if got := w.call("GET", "/v1/api-keys", "").column("id"); slices.Contains(got, w.names["key"]) {
					w.t.Errorf("it is still in the list: %v", got)
				}
			},
		},
		{
			name: "a key that has been used a moment ago stops working at once",
			given: func(w *world) {
				givenKey(w)
				client{t: w.t, server: w.server, key: w.names["value"]}.call("GET", "/v1/workflows", "").want(200)
			},
			call: "DELETE /v1/api-keys/$key", status: 204, audit: "api_key.revoked",
			then: func(w *world, _ *answer) {
				client{t: w.t, server: w.server, key: w.names["value"]}.call("GET", "/v1/workflows", "").want(401, "unauthorized")
			},
		},
		{
			name: "an unknown key is api_key_not_found, and the message names it",
			call: "DELETE /v1/api-keys/key_01m7fcp3q8e60tak362xesvjfr", status: 404, code: "api_key_not_found", says: "key_01m7fcp3q8e60tak362xesvjfr",
		},
		{
			name: "reading an unknown key is api_key_not_found",
			call: "GET /v1/api-keys/nonsense", status: 404, code: "api_key_not_found",
		},
	})
}

func TestKeyMayRevokeItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.make("key", "/v1/api-keys", `{"name": "Suicidal", "scopes": ["admin"]}`)
	own := client{t: t, server: w.server, key: made.text("key")}
	own.call("DELETE", "/v1/api-keys/"+made.text("id"), "").want(204)
	own.call("GET", "/v1/api-keys", "").want(401, "unauthorized")
}

func TestKeyExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := time.Now().Add(400 * time.Millisecond)
	made := w.make("key", "/v1/api-keys", fmt.Sprintf(`{"name": "Short", "scopes": ["read"], "expires_at": %q}`, end.Format(time.RFC3339Nano)))
	short := client{t: t, server: w.server, key: made.text("key")}
	short.call("GET", "/v1/workflows", "").want(200)
	time.Sleep(time.Until(end) + 10*time.Millisecond)
	short.call("GET", "/v1/workflows", "").want(401, "unauthorized")
	// It stays in the list until it is revoked, so that people see why.
	w.call("GET", "/v1/api-keys/$key", "").want(200)
}

// The time of last use is written now and then: within seconds, not at once.
func TestKeyLastUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	givenKey(w)
	before := time.Now().Add(-time.Second)
	client{t: t, server: w.server, key: w.names["value"]}.call("GET", "/v1/workflows", "").want(200)
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

func TestThingsPerPlan(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	type thing struct {
		name, path, body string
		limit            int
		world            *world
		last             string
	}
	things := []*thing{
		{name: "webhooks", path: "/v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"]}`, limit: 20},
		{name: "API keys", path: "/v1/api-keys", body: `{"name": "n", "scopes": ["read"]}`, limit: 20},
		{name: "workflows", path: "/v1/workflows", body: `{"name": "n"}`, limit: 100},
	}
	for _, th := range things {
		th.world = s.newWorld(t)
		for range th.limit - len(th.world.call("GET", th.path, "").items()) {
			th.last = th.world.call("POST", th.path, th.body).want(201).text("id")
		}
		s.operator(t).call("PATCH", "/v1/workspaces/"+th.world.id, `{"plan": "free"}`).want(200)
	}
	s.restart(t) // forgets what was used of this minute
	for _, th := range things {
		t.Run(fmt.Sprintf("a free workspace has at most %d %s", th.limit, th.name), func(t *testing.T) {
			w := th.world.on(t)
			a := w.call("POST", th.path, th.body).want(403, "plan_limit_exceeded")
			if !strings.Contains(a.message(), fmt.Sprint(th.limit)) {
				t.Errorf("the message is %q", a.message())
			}
			w.call("DELETE", th.path+"/"+th.last, "").want(204)
			w.call("POST", th.path, th.body).want(201)
		})
	}
}
