package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// withIdempotencyKey sends a POST with an idempotency key.
func (w *testWorkspace) withIdempotencyKey(key, path, body string, headers ...string) *response {
	w.t.Helper()
	return w.call("POST", path, body, append([]string{"Idempotency-Key", key}, headers...)...)
}

// wantReplay fails the test unless the second response replays the first.
func wantReplay(t *testing.T, first, second *response) {
	t.Helper()
	if second.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("Idempotent-Replayed is %q, then %q", first.header.Get("Idempotent-Replayed"), second.header.Get("Idempotent-Replayed"))
	}
	for _, name := range []string{"Location", "ETag", "Content-Type"} {
		if first.header.Get(name) != second.header.Get(name) {
			t.Errorf("%s is %q, then %q", name, first.header.Get(name), second.header.Get(name))
		}
	}
	if first.status != second.status || !bytes.Equal(first.body, second.body) {
		t.Errorf("got %d %s, then %d %s", first.status, first.body, second.status, second.body)
	}
	if first.header.Get("X-Request-Id") == second.header.Get("X-Request-Id") {
		t.Error("both have the same request id")
	}
}

// Every POST supports the header, except for uploads of files: a second request has no
// effect and gets the first response.
func TestIdempotencyOfEveryPost(t *testing.T) {
	t.Parallel()
	for _, route := range routes() {
		if route.Method != http.MethodPost || streamsBody(route.Method, route.Path) || needsService[routeName(route)] != 0 {
			continue
		}
		t.Run(routeName(route), func(t *testing.T) {
			t.Parallel()
			w := newTestWorkspace(t)
			createOneOfEach(w)
			id, _, _, _ := collection(route)
			caller := w
			if operatorOnly[routeName(route)] {
				caller = w.withT(t)
				caller.client = w.server.operator(t)
			}
			key := "twice " + w.id
			first := caller.withIdempotencyKey(key, routePath(route, id), routeBody(t, route)).wantStatus(route.Status)
			counts := w.counts()
			second := caller.withIdempotencyKey(key, routePath(route, id), routeBody(t, route)).wantStatus(route.Status)
			wantReplay(t, first, second)
			if again := w.counts(); again != counts {
				t.Errorf("things are %s, then %s", counts, again)
			}
		})
	}
}

// counts returns the number of objects in the workspace.
func (w *testWorkspace) counts() string {
	w.t.Helper()
	var out []string
	for _, table := range []string{"workflows", "runs", "webhooks", "api_keys", "secrets", "variables", "connections", "oauth_apps", "data_tables", "table_rows", "state_keys", "events", "audit"} {
		out = append(out, table+" "+w.server.query(w.t, `SELECT count(*) FROM `+table+` WHERE workspace_id = ?`, w.id)[0][0])
	}
	return strings.Join(out, ", ")
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	const body = `{"name": "Once"}`
	tests := map[string]func(t *testing.T, w *testWorkspace){
		"the same key with another body is idempotency_key_reused": func(t *testing.T, w *testWorkspace) {
			w.withIdempotencyKey("k", "/v1/workflows", body).wantStatus(201)
			a := w.withIdempotencyKey("k", "/v1/workflows", `{"name": "Other"}`).wantStatus(422, "idempotency_key_reused")
			if !strings.Contains(a.message(), `"k"`) {
				t.Errorf("the message is %q", a.message())
			}
			wantContains(t, w.call("GET", "/v1/workflows", "").json(), `{"data": [{"name": "Once"}]}`)
		},
		"another workspace is another matter": func(t *testing.T, w *testWorkspace) {
			other := newTestWorkspace(t)
			first := w.withIdempotencyKey("k", "/v1/workflows", body).wantStatus(201)
			second := other.withIdempotencyKey("k", "/v1/workflows", `{"name": "Other"}`).wantStatus(201)
			if first.str("id") == second.str("id") || second.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("got %s, then %s", first.body, second.body)
			}
		},
		"another path is another matter": func(t *testing.T, w *testWorkspace) {
			w.workflow("a")
			w.workflow("b")
			one := w.withIdempotencyKey("k", "/v1/workflows/$a/runs", "").wantStatus(201)
			two := w.withIdempotencyKey("k", "/v1/workflows/$b/runs", "").wantStatus(201)
			if one.str("id") == two.str("id") || two.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("got %s, then %s", one.body, two.body)
			}
		},
		"another API key of the workspace shares them": func(t *testing.T, w *testWorkspace) {
			first := w.withIdempotencyKey("k", "/v1/workflows", body).wantStatus(201)
			wantReplay(t, first, w.withScopes("write").call("POST", "/v1/workflows", body, "Idempotency-Key", "k"))
		},
		"a replay needs the scope like the first time": func(_ *testing.T, w *testWorkspace) {
			w.withIdempotencyKey("k", "/v1/workflows", body).wantStatus(201)
			w.withScopes("read").call("POST", "/v1/workflows", body, "Idempotency-Key", "k").wantStatus(403, "insufficient_scope")
		},
		"only successes are saved: a rejected request can be corrected": func(t *testing.T, w *testWorkspace) {
			w.withIdempotencyKey("k", "/v1/workflows", `{"nmae": "x"}`).wantStatus(400)
			a := w.withIdempotencyKey("k", "/v1/workflows", body).wantStatus(201)
			wantReplay(t, a, w.withIdempotencyKey("k", "/v1/workflows", body))
		},
		"only successes are saved: a conflict can go away": func(t *testing.T, w *testWorkspace) {
			w.workflow("wf")
			w.patch("wf", `{"state": "paused"}`)
			w.withIdempotencyKey("k", "/v1/workflows/$wf/runs", "").wantStatus(409, "workflow_paused")
			w.patch("wf", `{"state": "active"}`)
			a := w.withIdempotencyKey("k", "/v1/workflows/$wf/runs", "").wantStatus(201)
			wantReplay(t, a, w.withIdempotencyKey("k", "/v1/workflows/$wf/runs", ""))
		},
		"a rejected request leaves nothing behind": func(t *testing.T, w *testWorkspace) {
			before := w.counts()
			w.withIdempotencyKey("k", "/v1/webhooks", `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm"}`).wantStatus(404)
			if got := w.counts(); got != before || len(w.server.query(t, `SELECT 1 FROM idempotency WHERE workspace_id = ?`, w.id)) != 0 {
				t.Errorf("things are %s, then %s", before, got)
			}
		},
		"a start with a wait saves the 201, with the run as it was when it started": func(t *testing.T, w *testWorkspace) {
			w.workflow("wf", setStep)
			first := w.withIdempotencyKey("k", "/v1/workflows/$wf/runs", "", "Prefer", "wait=10").wantStatus(200)
			second := w.withIdempotencyKey("k", "/v1/workflows/$wf/runs", "", "Prefer", "wait=10").wantStatus(201)
			wantContains(t, second.json(), `{"id": "`+first.str("id")+`", "status": "running", "steps": []}`)
			if second.header.Get("Idempotent-Replayed") != "true" || second.header.Get("Location") != "/v1/runs/"+first.str("id") {
				t.Errorf("got %v", second.header)
			}
		},
		"a value that is shown once can be had again": func(t *testing.T, w *testWorkspace) {
			const hook = `{"url": "https://example.com", "events": ["run.failed"]}`
			first := w.withIdempotencyKey("k", "/v1/webhooks", hook).wantStatus(201)
			if again := w.withIdempotencyKey("k", "/v1/webhooks", hook).wantStatus(201); again.str("signing_secret") != first.str("signing_secret") {
				t.Errorf("got %s, then %s", first.body, again.body)
			}
		},
		"the answer is the same to the byte, whatever is in it": func(t *testing.T, w *testWorkspace) {
			const odd = `{"name": "<b>&amp; \u2028 ü 😀 \\u003c", "description": "a\tb\r\n\"\\/"}`
			first := w.withIdempotencyKey("k", "/v1/workflows", odd).wantStatus(201)
			wantReplay(t, first, w.withIdempotencyKey("k", "/v1/workflows", odd))
		},
		"the response is replayed after the object was deleted": func(t *testing.T, w *testWorkspace) {
			first := w.withIdempotencyKey("k", "/v1/workflows", body).wantStatus(201)
			w.call("DELETE", "/v1/workflows/"+first.str("id"), "").wantStatus(204)
			wantReplay(t, first, w.withIdempotencyKey("k", "/v1/workflows", body))
		},
		"after 24 hours the same key starts afresh": func(t *testing.T, w *testWorkspace) {
			first := w.withIdempotencyKey("k", "/v1/workflows", body).wantStatus(201)
			left := w.server.query(t, `SELECT expires_at / 1000000 - ? FROM idempotency WHERE workspace_id = ?`, time.Now().Unix(), w.id)[0][0]
			if left < "86390" || left > "86400" {
				t.Errorf("it is stored for %s seconds", left)
			}
			w.server.query(t, `UPDATE idempotency SET expires_at = ? WHERE workspace_id = ?`, time.Now().UnixMicro(), w.id)
			second := w.withIdempotencyKey("k", "/v1/workflows", `{"name": "Afresh"}`).wantStatus(201)
			if second.str("id") == first.str("id") || second.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("got %s, then %s", first.body, second.body)
			}
		},
		"other methods pass the header over": func(_ *testing.T, w *testWorkspace) {
			w.workflow("wf")
			for range 2 {
				w.call("PATCH", "/v1/workflows/$wf", body, "Idempotency-Key", "k").wantStatus(200)
				w.call("GET", "/v1/workflows/$wf", "", "Idempotency-Key", strings.Repeat("k", 300)).wantStatus(200)
			}
		},
		"a key has 1 to 255 printable characters and is there once": func(t *testing.T, w *testWorkspace) {
			w.withIdempotencyKey(strings.Repeat("k", 255), "/v1/workflows", body).wantStatus(201)
			w.withIdempotencyKey(" ~!\"#'{}|", "/v1/workflows", body).wantStatus(201)
			for _, key := range []string{strings.Repeat("k", 256), "ü", "\t", "a\tb", strings.Repeat("k", 150) + "\x80", " "} {
				w.withIdempotencyKey(key, "/v1/workflows", body).wantStatus(400, "invalid_request")
			}
			for _, keys := range [][]string{{""}, {"a", "a"}, {"a", "b"}} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.url+"/v1/workflows", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + w.key}, "Idempotency-Key": keys}
				w.send(request, body).wantStatus(400, "invalid_request")
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newTestWorkspace(t))
		})
	}
}

// Of 64 concurrent duplicates, one has an effect and all get its response.
func TestIdempotencyRace(t *testing.T) {
	t.Parallel()
	const twins = 64
	w := newTestWorkspace(t)
	w.workflow("wf", waitStep)
	var (
		group   sync.WaitGroup
		answers [twins]*response
	)
	for i := range twins {
		group.Go(func() { answers[i] = w.withIdempotencyKey("race", "/v1/workflows/$wf/runs", `{"payload": {"a": 1}}`) })
	}
	group.Wait()
	replayed := 0
	for _, a := range answers {
		if a.status != 201 || !bytes.Equal(a.body, answers[0].body) {
			t.Fatalf("got %d %s and %d %s", a.status, a.body, answers[0].status, answers[0].body)
		}
		if a.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if replayed != twins-1 {
		t.Errorf("%d of %d are replays", replayed, twins)
	}
	if got := w.call("GET", "/v1/workflows/$wf/runs", "").items(); len(got) != 1 || fmt.Sprint(w.events()) != "[run.started]" {
		t.Errorf("there are %d runs and the events %v", len(got), w.events())
	}
}

// Of 64 concurrent requests with different bodies, one has an effect; the
// others are rejected or get its response.
func TestIdempotencyRaceWithDifferentBodies(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		status = map[int]int{}
	)
	for i := range 64 {
		group.Go(func() {
			a := w.withIdempotencyKey("race", "/v1/workflows", fmt.Sprintf(`{"name": "Twin %d"}`, i))
			mu.Lock()
			defer mu.Unlock()
			status[a.status]++
		})
	}
	group.Wait()
	if status[201] != 1 || status[422] != 63 || len(w.call("GET", "/v1/workflows", "").items()) != 1 {
		t.Errorf("responses by status: %v", status)
	}
}

// Saved responses survive a restart and cannot be read from the files.
func TestIdempotencySurvivesRestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	const key, hook = `{"name": "n", "scopes": ["admin"]}`, `{"url": "https://example.com", "events": ["run.failed"]}`
	madeKey, madeHook := w.withIdempotencyKey("IDEMPOTENCY-KEY", "/v1/api-keys", key).wantStatus(201), w.withIdempotencyKey("k", "/v1/webhooks", hook).wantStatus(201)
	rotate := "/v1/webhooks/" + madeHook.str("id") + "/rotate-secret"
	rotated := w.withIdempotencyKey("r", rotate, "").wantStatus(200)
	s.restart(t)
	w.client.server = s
	wantReplay(t, rotated, w.withIdempotencyKey("r", rotate, ""))
	wantReplay(t, madeKey, w.withIdempotencyKey("IDEMPOTENCY-KEY", "/v1/api-keys", key))
	wantReplay(t, madeHook, w.withIdempotencyKey("k", "/v1/webhooks", hook))
	secrets := []string{madeKey.str("key"), madeHook.str("signing_secret"), rotated.str("signing_secret"), w.key, s.firstKey, "IDEMPOTENCY-KEY"}
	if strings.Contains(s.log.String(), rotated.str("signing_secret")) {
		t.Error("the new signing secret is in the log")
	}
	files := s.files(t)
	for _, secret := range secrets {
		for _, part := range []string{secret, secret[len(secret)-15:]} {
			if bytes.Contains(files, []byte(part)) {
				t.Errorf("%q is in the files", part)
			}
		}
	}
}
