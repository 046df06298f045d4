package api_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/config"
)

// echoStep outputs everything that started the run.
const echoStep = `{"id": "echo", "uses": "data.set", "with": {"values": {"trigger": "${{ trigger }}"}}}`

// activeHook creates an active workflow with one webhook trigger and returns
// the path of its URL.
func (w *testWorkspace) activeHook(name, trigger string, steps ...string) string {
	w.t.Helper()
	if steps == nil {
		steps = []string{echoStep}
	}
	w.workflow(name, steps...)
	if trigger != "" {
		trigger = ", " + trigger
	}
	w.patch(name, w.expand(`{"triggers": [{"id": "hook", "type": "webhook"`+trigger+`}], "state": "active"}`))
	return w.hookPath(name)
}

func (w *testWorkspace) hookPath(name string) string {
	w.t.Helper()
	address := w.call("GET", "/v1/workflows/$"+name+"/triggers", "").items()[0]["url"]
	path, found := strings.CutPrefix(fmt.Sprint(address), w.server.url)
	if !found || !strings.HasPrefix(path, "/hooks/") {
		w.t.Fatalf("the address is %v", address)
	}
	return path
}

// waitForNote checks that a note about a hook is recorded.
func (w *testWorkspace) waitForNote(name, member, code string) {
	w.t.Helper()
	w.call("GET", "/v1/workflows/$"+name+"/triggers/hook/requests", "").wantStatus(200) // listing flushes pending notes
	note, _ := w.call("GET", "/v1/workflows/$"+name+"/triggers", "").items()[0][member].(map[string]any)
	if note["code"] != code {
		w.t.Errorf("%s of %s is %v", member, name, note)
	}
}

// hookCaller calls hooks without a key and without schema checks of its
// requests.
func hookCaller(w *testWorkspace) client {
	c := w.server.anonymous(w.t)
	c.lenient = true
	return c
}

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestHookStartsRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.activeHook("wf", "")
	a := hookCaller(w).call("POST", path+"?a=1&b=2&b=3", `{"id": 9007199254740993}`, "X-Event", "order", "Cookie", "s=1", "Authorization", "Bearer x").wantStatus(202)
	if a.object()["duplicate"] != false {
		t.Errorf("got %s", a.body)
	}
	w.names["run"] = a.str("run_id")
	ended := w.waitForStatus("run", "succeeded")
	wantContains(t, ended.json(), `{"trigger": {"type": "webhook", "id": "hook", "payload": {"id": 9007199254740993}, "query": {"a": "1", "b": ["2", "3"]}, "test": false},
		"steps": [{"output": {"trigger": {"type": "webhook", "id": "hook", "headers": {"x-event": "order", "content-type": "application/json"}}}}]}`)
	headers := ended.object()["trigger"].(map[string]any)["headers"].(map[string]any)
	for _, name := range []string{"cookie", "authorization"} {
		if headers[name] != nil {
			t.Errorf("%s is stored", name)
		}
	}
	if got := w.events(); !slices.Contains(got, "run.started") {
		t.Errorf("events: %v", got)
	}
	listed := w.call("GET", "/v1/workflows/$wf/triggers", "").json()
	wantContains(t, listed, w.expand(`{"data": [{"id": "hook", "active": true, "last_run_id": "$run", "last_fired_at": "~.+Z", "last_error": null}]}`))
}

// Only callers who may write see the URL of a hook; it is stored encrypted.
func TestHookURLIsSecret(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	path := w.activeHook("wf", "")
	for scope, shown := range map[string]bool{"read": false, "write": false, "admin": true} {
		c := w.withScopes(scope)
		if scope == "write" {
			c = w.withScopes("read", "write")
			shown = true
		}
		address := c.call("GET", w.expand("/v1/workflows/$wf/triggers"), "").items()[0]["url"]
		if (address != nil) != shown {
			t.Errorf("%s sees %v", scope, address)
		}
	}
	token := path[len("/hooks/"):]
	hookCaller(w).call("POST", path, "").wantStatus(202)
	hookCaller(w).call("POST", path+"x", "").wantStatus(404)
	for place, text := range map[string]string{"the log": s.log.String(), "the disk": string(s.files(t))} {
		if strings.Contains(text, token) {
			t.Errorf("the token is in %s", place)
		}
	}
	// A new URL replaces the old one.
	rotated := w.withScopes("write").call("POST", w.expand("/v1/workflows/$wf/triggers/hook/rotate"), "").wantStatus(200).str("url")
	if next := w.hookPath("wf"); next == path || s.url+next != rotated {
		t.Errorf("the address is %s, then %s", rotated, next)
	}
	hookCaller(w).call("POST", path, "").wantStatus(404, "not_found")
	hookCaller(w).call("POST", w.hookPath("wf"), "").wantStatus(202)
	s.restart(t)
	path = w.hookPath("wf")
	hookCaller(w).call("POST", path, "").wantStatus(202)
	// Other edits keep the URL; another trigger gets a new one.
	w.patch("wf", `{"triggers": [{"id": "hook", "type": "webhook", "methods": ["PUT"]}, {"id": "two", "type": "webhook"}]}`)
	if again := w.hookPath("wf"); again != path {
		t.Errorf("the address changed from %s to %s", path, again)
	}
	if got := w.auditActions(); !slices.Contains(got, "trigger.rotated") {
		t.Errorf("audited: %v", got)
	}
}

// Every unknown hook gets the same response, whatever the reason.
func TestUnknownHooks(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	active := w.activeHook("active", "")
	draft := w.activeHook("draft", "")
	w.patch("draft", `{"state": "draft"}`)
	setupSecret(w)
	locked := w.activeHook("locked", `"methods": ["POST"], "verify": {"scheme": "bearer", "secret": "${{ secrets.$secret }}"}`)
	w.patch("locked", `{"state": "paused"}`)
	deleted := w.activeHook("gone", "")
	w.patch("gone", `{"state": "paused"}`)
	w.call("DELETE", "/v1/workflows/$gone", "").wantStatus(204)
	removed := w.activeHook("removed", "")
	w.patch("removed", `{"triggers": []}`)
	runs := len(w.call("GET", "/v1/runs?limit=100", "").items())

	bodies := map[string]bool{}
	for name, path := range map[string]string{
		"a draft": draft, "paused": locked, "deleted": deleted, "removed": removed, "nothing": "/hooks/", "a word": "/hooks/x", "cut short": active[:len(active)-1],
		"longer": active + "A", "upper case": "/hooks/" + strings.ToUpper(active[len("/hooks/"):]), "below": active + "/x", "unknown": "/hooks/NueLXg6iv08EKTHsJox4k4K1mcpcNVDr3pQg",
	} {
		for _, method := range []string{"POST", "GET", "PUT", "DELETE", "OPTIONS"} {
			for _, body := range []string{"", `{"a":`, strings.Repeat("x", 5<<20)} {
				if len(body) > 1000 && method != "POST" {
					continue
				}
				a := hookCaller(w).call(method, path, body)
				if a.status != 404 || a.code() != "not_found" || a.header.Get("Allow") != "" {
					t.Errorf("%s, %s: %d %s", name, method, a.status, a.body)
				}
				bodies[strings.ReplaceAll(string(a.body), a.header.Get("X-Request-Id"), "")] = true
			}
		}
	}
	if len(bodies) != 1 {
		t.Errorf("the responses differ: %v", bodies)
	}
	if now := len(w.call("GET", "/v1/runs?limit=100", "").items()); now != runs {
		t.Errorf("%d runs were started", now-runs)
	}
	hookCaller(w).call("POST", active, "").wantStatus(202)
}

func TestHookMethods(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.activeHook("wf", `"methods": ["GET", "PUT", "HEAD"]`)
	for method, want := range map[string]int{"GET": 202, "PUT": 202, "HEAD": 202, "POST": 405, "DELETE": 405, "PATCH": 405} {
		a := linkClient{t, w.server}.send(method, w.server.url+path, "")
		if a.status != want || want == 405 && a.header.Get("Allow") != "GET, PUT, HEAD" {
			t.Errorf("%s: %d, Allow %q", method, a.status, a.header.Get("Allow"))
		}
	}
}

// Each scheme with valid and forged calls. Every failure gets the same
// response, and the call is not stored.
func TestHookVerification(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	w.call("PUT", "/v1/secrets/key", `{"value": "topsecret"}`).wantStatus(201)
	const body = `{"id": 7}`
	now := fmt.Sprint(time.Now().Unix())
	old := fmt.Sprint(time.Now().Add(-6 * time.Minute).Unix())
	secret := `"secret": "${{ secrets.key }}"`
	for name, test := range map[string]struct {
		verify          string
		genuine, forged []string
	}{
		"github": {`"scheme": "github", ` + secret, []string{"X-Hub-Signature-256", "sha256=" + sign("topsecret", body)}, []string{"X-Hub-Signature-256", "sha256=" + sign("other", body)}},
		"stripe": {`"scheme": "stripe", ` + secret, []string{"Stripe-Signature", "t=" + now + ",v1=" + sign("topsecret", now+"."+body)}, []string{"Stripe-Signature", "t=" + old + ",v1=" + sign("topsecret", old+"."+body)}},
		"slack": {`"scheme": "slack", ` + secret, []string{"X-Slack-Request-Timestamp", now, "X-Slack-Signature", "v0=" + sign("topsecret", "v0:"+now+":"+body)},
			[]string{"X-Slack-Request-Timestamp", now, "X-Slack-Signature", "v0=" + sign("topsecret", "v0:"+old+":"+body)}},
		"hmac": {`"scheme": "hmac", ` + secret + `, "header": "X-Sign", "timestamp": "X-Time", "signed": "{x-time}:{x-id}:{body}", "prefix": "v1="`,
			[]string{"X-Sign", "v1=" + sign("topsecret", now+":m1:"+body), "X-Time", now, "X-Id", "m1"}, []string{"X-Sign", "v1=" + sign("topsecret", now+":m1:"+body), "X-Time", now, "X-Id", "m2"}},
		"basic":  {`"scheme": "basic", "username": "ada", ` + secret, []string{"Authorization", "Basic YWRhOnRvcHNlY3JldA=="}, []string{"Authorization", "Basic YWRhOnRvcHNlY3JldDE="}},
		"bearer": {`"scheme": "bearer", ` + secret, []string{"Authorization", "Bearer topsecret"}, []string{"Authorization", "Bearer " + w.key}},
		"token":  {`"scheme": "bearer", "header": "X-Token", ` + secret, []string{"X-Token", "topsecret"}, []string{"Authorization", "Bearer topsecret"}},
	} {
		path := w.activeHook("wf", `"verify": {`+test.verify+`}`)
		before := s.tableContents(t)
		var rejections []string
		for _, headers := range [][]string{test.forged, nil, {test.genuine[0], ""}, {test.genuine[0], test.genuine[1] + "0"}} {
			a := hookCaller(w).call("POST", path, body, headers...).wantStatus(401, "unauthorized")
			rejections = append(rejections, strings.ReplaceAll(string(a.body), a.header.Get("X-Request-Id"), ""))
		}
		if slices.Sort(rejections); rejections[0] != rejections[len(rejections)-1] {
			t.Errorf("%s: the rejections differ: %q", name, rejections)
		}
		if diff := cmp.Diff(before["runs"], s.tableContents(t)["runs"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		a := hookCaller(w).call("POST", path, body, test.genuine...).wantStatus(202)
		w.names["run"] = a.str("run_id")
		stored := w.call("GET", "/v1/runs/$run", "").wantStatus(200)
		if strings.Contains(string(stored.body), test.genuine[1]) && name != "slack" || strings.Contains(string(stored.body), sign("topsecret", "v0:"+now+":"+body)) {
			t.Errorf("%s: the proof is stored: %s", name, stored.body)
		}
		w.waitForNote("wf", "last_error", "signature_refused")
	}
	for place, text := range map[string]string{"the log": s.log.String(), "the disk": string(s.files(t))} {
		if strings.Contains(text, "topsecret") {
			t.Errorf("the secret is in %s", place)
		}
	}
	// Without its secret, a hook rejects every call.
	path := w.activeHook("orphan", `"verify": {"scheme": "bearer", `+secret+`}`)
	w.call("DELETE", "/v1/secrets/key", "").wantStatus(204)
	hookCaller(w).call("POST", path, body, "Authorization", "Bearer topsecret").wantStatus(401, "unauthorized")
	hookCaller(w).call("POST", path, body, "Authorization", "Bearer ").wantStatus(401, "unauthorized")
}

// Bodies that are too large, compressed or not of the declared type.
func TestHookBodies(t *testing.T) {
	t.Parallel()
	w := sharedServer(t).newTestWorkspaceWith(t, `{"name": "Small", "plan": "free"}`)
	path := w.activeHook("wf", "")
	c := hookCaller(w)
	for name, test := range map[string]struct {
		body, media, encoding string
		status                int
		code                  string
	}{
		"over the payload":    {`{"a": "` + strings.Repeat("x", 300<<10) + `"}`, "application/json", "", 413, "payload_too_large"},
		"over the body":       {strings.Repeat("x", 1<<20+1), "text/plain", "", 413, "payload_too_large"},
		"packed":              {"{}", "application/json", "gzip", 415, "unsupported_media_type"},
		"half":                {`{"a":`, "application/json", "", 400, "invalid_json"},
		"deep":                {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "application/json", "", 400, "invalid_json"},
		"long":                {"[" + strings.Repeat("1,", 200_000) + "1]", "application/json", "", 400, "invalid_json"},
		"digits":              {strings.Repeat("9", 100_000), "application/json", "", 400, "invalid_json"},
		"twice":               {`{"a": 1, "a": 2}`, "application/json", "", 400, "invalid_json"},
		"bytes":               {"{\"a\": \"\xff\"}", "application/json", "", 400, "invalid_json"},
		"a form that is none": {"a=%zz", "application/x-www-form-urlencoded", "", 400, "invalid_request"},
	} {
		a := c.call("POST", path, test.body, "Content-Type", test.media, "Content-Encoding", test.encoding)
		if a.status != test.status || a.code() != test.code {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// Without a Content-Length the body is cut off at the limit.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.url+path, struct{ *bytes.Reader }{bytes.NewReader(make([]byte, 2<<20))})
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = -1
	c.send(request, "").wantStatus(413, "payload_too_large")
	if got := w.call("GET", "/v1/workflows/$wf/runs", "").items(); len(got) != 0 {
		t.Errorf("%d runs were started", len(got))
	}
	for media, want := range map[string]string{
		"application/json": `{"a":1}`, "text/plain": `{"value":"{\"a\":1}"}`, "application/x-www-form-urlencoded": `{"{\"a\":1}":""}`, "image/png": `{"file":{"name":"file","type":"image/png","size":7}}`,
	} {
		w.names["run"] = c.call("POST", path, `{"a":1}`, "Content-Type", media).wantStatus(202).str("run_id")
		wantContains(t, w.call("GET", "/v1/runs/$run", "").json(), `{"trigger": {"payload": `+want+`}}`)
	}
}

func TestHookRateLimit(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path, other := w.activeHook("wf", `"rate": 5`), w.activeHook("other", "")
	accepted, rejected := 0, 0
	for range 20 { // the minute may change once
		switch a := hookCaller(w).call("POST", path, ""); a.status {
		case http.StatusAccepted:
			accepted++
			if a.header.Get("X-RateLimit-Limit") != "5" {
				t.Errorf("headers: %v", a.header)
			}
		case http.StatusTooManyRequests:
			rejected++
			if a.code() != "rate_limited" || a.header.Get("Retry-After") == "" || a.header.Get("X-RateLimit-Remaining") != "0" {
				t.Errorf("got %v %s", a.header, a.body)
			}
		default:
			t.Errorf("got %d", a.status)
		}
	}
	if accepted > 10 || rejected < 10 {
		t.Errorf("%d were accepted and %d rejected", accepted, rejected)
	}
	hookCaller(w).call("POST", other, "").wantStatus(202)
	// Calls of hooks do not count as API requests, even with an API key.
	before := w.call("GET", "/v1/usage", "").header.Get("X-RateLimit-Remaining")
	for range 5 {
		w.call("POST", other, "")
	}
	if after := w.call("GET", "/v1/usage", "").header.Get("X-RateLimit-Remaining"); len(after) != len(before) || after < before[:len(before)-1] {
		t.Errorf("from %s to %s", before, after)
	}
}

func TestHookGuessesAreRateLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.PreauthRPM = 5 })
	w := s.newTestWorkspace(t)
	w.call("PUT", "/v1/secrets/key", `{"value": "topsecret"}`).wantStatus(201)
	path := w.activeHook("wf", `"verify": {"scheme": "bearer", "secret": "${{ secrets.key }}"}`)
	for _, guess := range []string{"/hooks/NueLXg6iv08EKTHsJox4k4K1mcpcNVDr3pQg", path} {
		limited := 0
		for range 20 {
			if hookCaller(w).call("POST", guess, "", "Authorization", "Bearer guess").status == http.StatusTooManyRequests {
				limited++
			}
		}
		if limited < 8 {
			t.Errorf("%d of 20 were rejected", limited)
		}
	}
	hookCaller(w).call("POST", path, "", "Authorization", "Bearer topsecret").wantStatus(202) // a valid one is not rejected
}

// Repeated calls start one run, even 64 at once.
func TestHookDeduplication(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.activeHook("wf", `"dedupe": "${{ trigger.headers['x-delivery'] }}"`)
	c := hookCaller(w)
	for round := range 3 {
		var mu sync.Mutex
		ids, first := map[string]int{}, 0
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.url+path, strings.NewReader(`{"n": 1}`))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("X-Delivery", fmt.Sprint("d", round))
				a, err := c.exchange(request, "")
				if err != nil || a.status != http.StatusAccepted {
					t.Errorf("%v %+v", err, a)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[a.str("run_id")]++
				if a.object()["duplicate"] == false {
					first++
				}
			})
		}
		all.Wait()
		if len(ids) != 1 || first != 1 {
			t.Errorf("round %d: runs %v, %d of them first", round, ids, first)
		}
	}
	if got := w.call("GET", "/v1/workflows/$wf/runs?limit=100", "").items(); len(got) != 3 {
		t.Errorf("%d runs", len(got))
	}
	// A different key, a different body with the same key, and no key.
	one := c.call("POST", path, `{}`, "X-Delivery", "other").wantStatus(202).str("run_id")
	if two := c.call("POST", path, `{"x": 1}`, "X-Delivery", "other").wantStatus(202); two.str("run_id") != one || two.object()["duplicate"] != true {
		t.Errorf("got %s", two.body)
	}
	if a, b := c.call("POST", path, `{}`).str("run_id"), c.call("POST", path, `{}`).str("run_id"); a == b {
		t.Error("calls without a key are one")
	}
	// The same key of another hook is a different key.
	second := w.activeHook("second", `"dedupe": "${{ trigger.headers['x-delivery'] }}"`)
	if c.call("POST", second, `{}`, "X-Delivery", "other").wantStatus(202).object()["duplicate"] != false {
		t.Error("two hooks share keys")
	}
}

func TestHookDeduplicationExpires(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	path := w.activeHook("wf", `"dedupe": "${{ trigger.payload.id }}"`)
	one := hookCaller(w).call("POST", path, `{"id": 1}`).wantStatus(202).str("run_id")
	s.query(t, `UPDATE trigger_keys SET expires_at = expires_at - 23 * 3600 * 1000000`)
	if again := hookCaller(w).call("POST", path, `{"id": 1}`).wantStatus(202).str("run_id"); again != one {
		t.Error("it was forgotten after 23 hours")
	}
	s.query(t, `UPDATE trigger_keys SET expires_at = expires_at - 3600 * 1000000`)
	if again := hookCaller(w).call("POST", path, `{"id": 1}`).wantStatus(202).str("run_id"); again == one {
		t.Error("it never expires")
	}
}

func TestHookRespondsWithResult(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	c := hookCaller(w)
	const respond = `"methods": ["GET", "POST"], "respond": "result"`
	path := w.activeHook("says", respond, `{"id": "a", "uses": "flow.wait", "with": {"for": "50ms"}}`,
		`{"id": "b", "uses": "data.set", "with": {"values": {"response": {"status": 201, "headers": {"X-Order": "${{ trigger.payload.id }}", "Content-Type": "text/html"}, "body": "<script>alert(1)</script>"}}}}`)
	got := linkClient{t, w.server}.send("POST", w.server.url+path, "id=7")
	if got.status != 201 || got.header.Get("X-Order") != "7" || got.header.Get("Content-Type") != "text/html" || got.body != "<script>alert(1)</script>" {
		t.Errorf("got %+v", got)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Set-Cookie": "",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q", name, got.header.Get(name))
		}
	}
	plain := linkClient{t, w.server}.send("GET", w.server.url+w.activeHook("plain", respond, setStep)+"?x=1", "")
	if plain.status != 200 || plain.body != `{"a":1}` || plain.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %+v", plain)
	}
	branch := w.activeHook("branch", respond, `{"id": "yes", "needs": [], "if": "trigger.query.ok == '1'", "uses": "data.set", "with": {"values": {"said": "yes"}}}`,
		`{"id": "no", "needs": [], "if": "trigger.query.ok != '1'", "uses": "data.set", "with": {"values": {"said": "no"}}}`)
	for query, want := range map[string]string{"?ok=1": `{"said":"yes"}`, "": `{"said":"no"}`} {
		if got := (linkClient{t, w.server}).send("GET", w.server.url+branch+query, ""); got.body != want {
			t.Errorf("%q: %+v", query, got)
		}
	}
	failed := c.postUnchecked(t, w.activeHook("fails", respond, failStep))
	if failed.status != 500 || failed.code() != "run_failed" || strings.Contains(string(failed.body), "none") {
		t.Errorf("got %d %s", failed.status, failed.body)
	}
	invalid := c.postUnchecked(t, w.activeHook("invalid", respond, `{"id": "b", "uses": "data.set", "with": {"values": {"response": {"headers": {"Set-Cookie": "a=b"}}}}}`))
	if invalid.status != 500 || invalid.code() != "run_failed" {
		t.Errorf("got %d %s", invalid.status, invalid.body)
	}
	w.waitForNote("invalid", "last_error", "response_invalid")
}

// postUnchecked posts without checking the response against the document: a
// failed workflow is not a failure of the service.
func (c client) postUnchecked(t *testing.T, path string) *response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.server.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.exchange(request, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A duplicate call gets the result of the first one.
func TestDuplicateHookCallGetsSameResult(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.activeHook("wf", `"respond": "result", "dedupe": "${{ trigger.payload.id }}"`, `{"id": "a", "uses": "flow.wait", "with": {"for": "300ms"}}`,
		`{"id": "b", "uses": "data.set", "with": {"values": {"run": "${{ run.id }}"}}}`)
	var all sync.WaitGroup
	bodies := make([]string, 16)
	for i := range bodies {
		all.Go(func() { bodies[i] = (linkClient{t, w.server}).send("POST", w.server.url+path, "id=1").body })
	}
	all.Wait()
	late := linkClient{t, w.server}.send("POST", w.server.url+path, "id=1").body
	if slices.Sort(bodies); bodies[0] != bodies[15] || bodies[0] != late || !strings.Contains(late, `"run":"run_`) {
		t.Errorf("got %q and %q", bodies, late)
	}
}

// The latest 20 verified calls are stored, even while the workflow is a draft, and of others
// only that they were rejected.
func TestHookRequestLog(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	w.call("PUT", "/v1/secrets/key", `{"value": "topsecret"}`).wantStatus(201)
	path := w.activeHook("wf", `"verify": {"scheme": "bearer", "header": "X-Token", "secret": "${{ secrets.key }}"}, "dedupe": "${{ trigger.payload.key }}"`)
	list := func() []map[string]any {
		return w.withScopes("read").call("GET", w.expand("/v1/workflows/$wf/triggers/hook/requests?limit=100"), "").wantStatus(200).items()
	}
	c := hookCaller(w)
	c.call("POST", path, `{"n": 0}`, "X-Token", "guessed").wantStatus(401)
	w.patch("wf", `{"state": "draft"}`)
	c.call("POST", path+"?q=1", `{"n": 1}`, "X-Token", "topsecret", "X-Id", "7").wantStatus(404)
	w.patch("wf", `{"state": "active"}`)
	run := c.call("POST", path, `{"key": "a"}`, "X-Token", "topsecret").wantStatus(202).str("run_id")
	c.call("POST", path, `{"key": "a"}`, "X-Token", "topsecret").wantStatus(202)
	c.call("POST", path, `{"big": "`+strings.Repeat("x", 100_000)+`"}`, "X-Token", "topsecret").wantStatus(202)
	got := list()
	if len(got) != 5 || got[0]["payload"] != nil || got[0]["size"] == nil {
		t.Fatalf("got %v", got)
	}
	wantContains(t, any(got[1]), `{"outcome": "duplicate", "run_id": "`+run+`", "payload": {"key": "a"}}`)
	wantContains(t, any(got[2]), `{"outcome": "started", "run_id": "`+run+`"}`)
	wantContains(t, any(got[3]), `{"outcome": "workflow_not_active", "run_id": null, "method": "POST", "payload": {"n": 1}, "query": {"q": "1"}, "headers": {"x-id": "7"}}`)
	wantContains(t, any(got[4]), `{"outcome": "signature_refused", "payload": null, "headers": {}}`)
	if strings.Contains(fmt.Sprint(got), "topsecret") || strings.Contains(fmt.Sprint(got), "guessed") {
		t.Error("a credential is stored")
	}
	for i := range 30 {
		c.call("POST", path, fmt.Sprintf(`{"n": %d}`, i), "X-Token", "topsecret").wantStatus(202)
	}
	if got := list(); len(got) != 21 || got[0]["payload"].(map[string]any)["n"] == nil {
		t.Errorf("%d are stored", len(got))
	}
	s.query(t, `UPDATE hook_requests SET at = at - 8 * 24 * 3600 * 1000000`)
	if got := list(); len(got) != 0 {
		t.Errorf("%d are stored after 8 days", len(got))
	}
	w.call("GET", "/v1/workflows/$wf/triggers/none/requests", "").wantStatus(404, "trigger_not_found")
	w.patch("wf", `{"triggers": [{"id": "by_hand", "type": "manual"}]}`)
	w.call("GET", "/v1/workflows/$wf/triggers/by_hand/requests", "").wantStatus(400, "invalid_request")
	w.call("POST", "/v1/workflows/$wf/triggers/by_hand/rotate", "").wantStatus(400, "invalid_request")
}

// A workflow that calls its own hook is stopped at the depth limit.
func TestHookRecursionIsStopped(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.activeHook("wf", "")
	for depth, want := range map[string]int{"0": 202, "9": 202, "10": 409, "1000000": 409, "-1": 202, "x": 202} {
		a := hookCaller(w).call("POST", path, "", "X-Service-Depth", depth)
		if a.status != want || want == 409 && a.code() != "chain_depth_exceeded" {
			t.Errorf("%s: %d %s", depth, a.status, a.body)
		}
	}
	w.waitForNote("wf", "not_fired", "chain_depth_exceeded")
}

// The caller is told why no run started, and a note is recorded.
func TestHookCallThatCannotStartRun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.activeHook("wf", "", waitStep)
	w.patch("wf", `{"settings": {"concurrency": {"limit": 1, "on_limit": "drop"}}}`)
	hookCaller(w).call("POST", path, "").wantStatus(202)
	hookCaller(w).call("POST", path, "").wantStatus(409, "concurrency_limit")
	if got := w.call("GET", "/v1/workflows/$wf/triggers/hook/requests", "").items(); len(got) != 2 || got[0]["outcome"] != "concurrency_limit" {
		t.Errorf("got %v", got)
	}
	w.waitForNote("wf", "not_fired", "concurrency_limit")
}

// While the workflow is edited or paused, each call starts one run, or none and
// gets an error.
func TestHookCallsDuringWorkflowChanges(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	path := w.activeHook("wf", `"rate": 1000000`)
	stop := make(chan struct{})
	var mu sync.Mutex
	ids := map[string]bool{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.url+path, nil)
				a, err := hookCaller(w).exchange(request, "")
				switch {
				case err != nil:
					t.Error(err)
					return
				case a.status == http.StatusAccepted:
					mu.Lock()
					ids[a.str("run_id")] = true
					mu.Unlock()
				case a.status != http.StatusNotFound:
					t.Errorf("got %d %s", a.status, a.body)
					return
				}
			}
		})
	}
	accepted := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(ids)
	}
	for i := 0; (i < 20 || accepted() < 10) && !t.Failed(); i++ {
		w.patch("wf", fmt.Sprintf(`{"state": "paused", "settings": {"timeout": "%dm"}}`, 1+i%60))
		w.patch("wf", `{"state": "active"}`)
		time.Sleep(5 * time.Millisecond)
	}
	close(stop)
	all.Wait()
	stored := w.server.query(t, `SELECT id FROM runs WHERE workspace_id = ?`, w.id)
	if len(stored) != len(ids) {
		t.Errorf("responses have %d runs, the store %d", len(ids), len(stored))
	}
}
