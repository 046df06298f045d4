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

// once is a request with an idempotency key.
func (w *world) once(key, path, body string, headers ...string) *answer {
	w.t.Helper()
	return w.call("POST", path, body, append([]string{"Idempotency-Key", key}, headers...)...)
}

// wantReplay fails the test unless the second answer is the first again.
func wantReplay(t *testing.T, first, second *answer) {
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

// Every POST takes the header: the second time nothing happens and the answer
// is the first one.
func TestEveryPostIsIdempotent(t *testing.T) {
	t.Parallel()
	for _, route := range routes() {
		if route.Method != http.MethodPost {
			continue
		}
		t.Run(name(route), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			furnish(w)
			id, _, _, _ := collection(route)
			caller := w
			if operatorOnly[name(route)] {
				caller = w.on(t)
				caller.client = w.server.operator(t)
			}
			key := "twice " + w.id
			first := caller.once(key, routePath(route, id), routeBody(t, route)).want(route.Status)
			counts := w.counts()
			second := caller.once(key, routePath(route, id), routeBody(t, route)).want(route.Status)
			wantReplay(t, first, second)
			if again := w.counts(); again != counts {
				t.Errorf("things are %s, then %s", counts, again)
			}
		})
	}
}

// counts says how much of everything the workspace has.
func (w *world) counts() string {
	w.t.Helper()
	var out []string
	for _, table := range []string{"workflows", "runs", "webhooks", "api_keys", "secrets", "variables", "events", "audit"} {
		out = append(out, table+" "+w.server.rows(w.t, `SELECT count(*) FROM `+table+` WHERE workspace_id = ?`, w.id)[0][0])
	}
	return strings.Join(out, ", ")
}

// A check of a definition compiles its scripts, which takes its time. With a key
// it holds up nobody who writes either.
func TestACheckHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf")
	var steps []string
	for i := range 3 {
		code := "return " + strings.Repeat("[", 40_000+i) + strings.Repeat("]", 40_000+i)
		steps = append(steps, fmt.Sprintf(`{"id": "s%d", "uses": "code.js", "with": {"code": %q}}`, i, code))
	}
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		w.once("check", "/v1/workflows/$wf/validate", `{"steps": [`+strings.Join(steps, ",")+`]}`).want(http.StatusOK)
	}()
	const enough = 5
	for written := range enough {
		w.call("PUT", "/v1/variables/x", `{"value": 1}`)
		select {
		case <-checked:
			t.Fatalf("only %d writes went on beside the check", written)
		default:
		}
	}
	<-checked
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	const body = `{"name": "Once"}`
	tests := map[string]func(t *testing.T, w *world){
		"the same key with another body is idempotency_key_reused": func(t *testing.T, w *world) {
			w.once("k", "/v1/workflows", body).want(201)
			a := w.once("k", "/v1/workflows", `{"name": "Other"}`).want(422, "idempotency_key_reused")
			if !strings.Contains(a.message(), `"k"`) {
				t.Errorf("the message is %q", a.message())
			}
			wantContains(t, w.call("GET", "/v1/workflows", "").json(), `{"data": [{"name": "Once"}]}`)
		},
		"another workspace is another matter": func(t *testing.T, w *world) {
			other := newWorld(t)
			first := w.once("k", "/v1/workflows", body).want(201)
			second := other.once("k", "/v1/workflows", `{"name": "Other"}`).want(201)
			if first.text("id") == second.text("id") || second.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("got %s, then %s", first.body, second.body)
			}
		},
		"another path is another matter": func(t *testing.T, w *world) {
			w.workflow("a")
			w.workflow("b")
			one := w.once("k", "/v1/workflows/$a/runs", "").want(201)
			two := w.once("k", "/v1/workflows/$b/runs", "").want(201)
			if one.text("id") == two.text("id") || two.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("got %s, then %s", one.body, two.body)
			}
		},
		"another API key of the workspace shares them": func(t *testing.T, w *world) {
			first := w.once("k", "/v1/workflows", body).want(201)
			wantReplay(t, first, w.as("write").call("POST", "/v1/workflows", body, "Idempotency-Key", "k"))
		},
		"a replay needs the scope like the first time": func(_ *testing.T, w *world) {
			w.once("k", "/v1/workflows", body).want(201)
			w.as("read").call("POST", "/v1/workflows", body, "Idempotency-Key", "k").want(403, "insufficient_scope")
		},
		"only successes are saved: a refused request can be repaired": func(t *testing.T, w *world) {
			w.once("k", "/v1/workflows", `{"nmae": "x"}`).want(400)
			a := w.once("k", "/v1/workflows", body).want(201)
			wantReplay(t, a, w.once("k", "/v1/workflows", body))
		},
		"only successes are saved: a conflict can go away": func(t *testing.T, w *world) {
			w.workflow("wf")
			w.patch("wf", `{"state": "paused"}`)
			w.once("k", "/v1/workflows/$wf/runs", "").want(409, "workflow_paused")
			w.patch("wf", `{"state": "active"}`)
			a := w.once("k", "/v1/workflows/$wf/runs", "").want(201)
			wantReplay(t, a, w.once("k", "/v1/workflows/$wf/runs", ""))
		},
		"a refused request leaves nothing behind": func(t *testing.T, w *world) {
			before := w.counts()
			w.once("k", "/v1/webhooks", `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm"}`).want(404)
			if got := w.counts(); got != before || len(w.server.rows(t, `SELECT 1 FROM idempotency WHERE workspace_id = ?`, w.id)) != 0 {
				t.Errorf("things are %s, then %s", before, got)
			}
		},
		"a start with a wait saves the 201, with the run as it was when it started": func(t *testing.T, w *world) {
			w.workflow("wf", setStep)
			first := w.once("k", "/v1/workflows/$wf/runs", "", "Prefer", "wait=10").want(200)
			second := w.once("k", "/v1/workflows/$wf/runs", "", "Prefer", "wait=10").want(201)
			wantContains(t, second.json(), `{"id": "`+first.text("id")+`", "status": "running", "steps": []}`)
			if second.header.Get("Idempotent-Replayed") != "true" || second.header.Get("Location") != "/v1/runs/"+first.text("id") {
				t.Errorf("got %v", second.header)
			}
		},
		"a value that is shown once can be had again": func(t *testing.T, w *world) {
			const hook = `{"url": "https://example.com", "events": ["run.failed"]}`
			first := w.once("k", "/v1/webhooks", hook).want(201)
			if again := w.once("k", "/v1/webhooks", hook).want(201); again.text("signing_secret") != first.text("signing_secret") {
				t.Errorf("got %s, then %s", first.body, again.body)
			}
		},
		"the answer is the same to the byte, whatever is in it": func(t *testing.T, w *world) {
			const odd = `{"name": "<b>&amp; \u2028 ü 😀 \\u003c", "description": "a\tb\r\n\"\\/"}`
			first := w.once("k", "/v1/workflows", odd).want(201)
			wantReplay(t, first, w.once("k", "/v1/workflows", odd))
		},
		"the answer stays what it was when the thing is gone": func(t *testing.T, w *world) {
			first := w.once("k", "/v1/workflows", body).want(201)
			w.call("DELETE", "/v1/workflows/"+first.text("id"), "").want(204)
			wantReplay(t, first, w.once("k", "/v1/workflows", body))
		},
		"after 24 hours the same key starts afresh": func(t *testing.T, w *world) {
			first := w.once("k", "/v1/workflows", body).want(201)
			left := w.server.rows(t, `SELECT expires_at / 1000000 - ? FROM idempotency WHERE workspace_id = ?`, time.Now().Unix(), w.id)[0][0]
			if left < "86390" || left > "86400" {
				t.Errorf("it is kept for %s seconds", left)
			}
			w.server.rows(t, `UPDATE idempotency SET expires_at = ? WHERE workspace_id = ?`, time.Now().UnixMicro(), w.id)
			second := w.once("k", "/v1/workflows", `{"name": "Afresh"}`).want(201)
			if second.text("id") == first.text("id") || second.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("got %s, then %s", first.body, second.body)
			}
		},
		"other methods pass the header over": func(_ *testing.T, w *world) {
			w.workflow("wf")
			for range 2 {
				w.call("PATCH", "/v1/workflows/$wf", body, "Idempotency-Key", "k").want(200)
				w.call("GET", "/v1/workflows/$wf", "", "Idempotency-Key", strings.Repeat("k", 300)).want(200)
			}
		},
		"a key has 1 to 255 printable characters and is there once": func(t *testing.T, w *world) {
			w.once(strings.Repeat("k", 255), "/v1/workflows", body).want(201)
			w.once(" ~!\"#'{}|", "/v1/workflows", body).want(201)
			for _, key := range []string{strings.Repeat("k", 256), "ü", "\t", "a\tb", strings.Repeat("k", 150) + "\x80", " "} {
				w.once(key, "/v1/workflows", body).want(400, "invalid_request")
			}
			for _, keys := range [][]string{{""}, {"a", "a"}, {"a", "b"}} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.url+"/v1/workflows", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + w.key}, "Idempotency-Key": keys}
				w.send(request, body).want(400, "invalid_request")
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t))
		})
	}
}

// Of 64 twins at the same time one has its effect, and all have its answer.
func TestIdempotencyRace(t *testing.T) {
	t.Parallel()
	const twins = 64
	w := newWorld(t)
	w.workflow("wf", waitStep)
	var (
		group   sync.WaitGroup
		answers [twins]*answer
	)
	for i := range twins {
		group.Go(func() { answers[i] = w.once("race", "/v1/workflows/$wf/runs", `{"payload": {"a": 1}}`) })
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

// Of 64 twins with different bodies one has its effect, the others are refused
// or have its answer.
func TestIdempotencyRaceWithOtherBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		status = map[int]int{}
	)
	for i := range 64 {
		group.Go(func() {
			a := w.once("race", "/v1/workflows", fmt.Sprintf(`{"name": "Twin %d"}`, i))
			mu.Lock()
			defer mu.Unlock()
			status[a.status]++
		})
	}
	group.Wait()
	if status[201] != 1 || status[422] != 63 || len(w.call("GET", "/v1/workflows", "").items()) != 1 {
		t.Errorf("answers by status: %v", status)
	}
}

// Saved answers survive a restart, and nobody who has the files can read them.
func TestIdempotencyIsKept(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newWorld(t)
	const key, hook = `{"name": "n", "scopes": ["admin"]}`, `{"url": "https://example.com", "events": ["run.failed"]}`
	madeKey, madeHook := w.once("IDEMPOTENCY-KEY", "/v1/api-keys", key).want(201), w.once("k", "/v1/webhooks", hook).want(201)
	rotate := "/v1/webhooks/" + madeHook.text("id") + "/rotate-secret"
	rotated := w.once("r", rotate, "").want(200)
	s.restart(t)
	w.client.server = s
	wantReplay(t, rotated, w.once("r", rotate, ""))
	wantReplay(t, madeKey, w.once("IDEMPOTENCY-KEY", "/v1/api-keys", key))
	wantReplay(t, madeHook, w.once("k", "/v1/webhooks", hook))
	secrets := []string{madeKey.text("key"), madeHook.text("signing_secret"), rotated.text("signing_secret"), w.key, s.firstKey, "IDEMPOTENCY-KEY"}
	if strings.Contains(s.log.String(), rotated.text("signing_secret")) {
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
