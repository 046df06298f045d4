package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/config"
)

const (
	deliveryKeys = "id webhook_id event_id event workflow_id run_id sample status attempt_count last_attempt next_at created_at finished_at"
	detailKeys   = deliveryKeys + " attempts body"
)

// receiver is an endpoint that stores requests.
type receiver struct {
	url string

	mu      sync.Mutex
	got     []received
	handler http.HandlerFunc
}

type received struct {
	header http.Header
	body   []byte
}

// newReceiver starts an endpoint that responds with 200 until setStatus is
// called.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thank you") }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.got = append(r.got, received{request.Header.Clone(), body})
		handler := r.handler
		r.mu.Unlock()
		handler(w, request)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// setStatus sets the status of all following responses.
func (r *receiver) setStatus(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handler = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "answer "+fmt.Sprint(status))
	}
}

// hold makes all following responses wait until the returned function is called,
// which sets their status.
func (r *receiver) hold() (respond func(status int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	responding := make(chan struct{})
	r.handler = func(w http.ResponseWriter, request *http.Request) {
		select {
		case <-responding:
		case <-request.Context().Done():
			return
		}
		r.mu.Lock()
		handler := r.handler
		r.mu.Unlock()
		handler(w, request)
	}
	return func(status int) {
		r.setStatus(status)
		close(responding)
	}
}

// wait waits until the endpoint has received n requests and returns them.
func (r *receiver) wait(t *testing.T, n int) []received {
	t.Helper()
	eventually(t, fmt.Sprintf("%d requests are received", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.got) >= n
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// newWorkspaceWithLoopback creates a workspace on a server that may send to
// this machine.
func newWorkspaceWithLoopback(t *testing.T) *testWorkspace {
	t.Helper()
	return newServer(t, func(c *config.Serve) {
		c.EgressAllow = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
	}).newTestWorkspace(t)
}

func (w *testWorkspace) createWebhook(name, url, events string) *response {
	w.t.Helper()
	return w.create(name, "/v1/webhooks", fmt.Sprintf(`{"url": %q, "events": %s}`, url, events))
}

// waitForDelivery waits until a delivery is no longer pending.
func (w *testWorkspace) waitForDelivery(id string) *response {
	w.t.Helper()
	var a *response
	eventually(w.t, "the delivery has ended", func() bool {
		a = w.call("GET", "/v1/deliveries/"+id, "").wantStatus(200)
		return a.str("status") != "pending"
	})
	return a
}

// deliveries lists the deliveries of a webhook.
func (w *testWorkspace) deliveries(name, query string) *response {
	w.t.Helper()
	return w.call("GET", "/v1/webhooks/$"+name+"/deliveries"+query, "").wantStatus(200)
}

func signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func standardSignature(t *testing.T, secret string, r received) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", r.header.Get("Webhook-Id"), r.header.Get("Webhook-Timestamp"), r.body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestRotateSecret(t *testing.T) {
	t.Parallel()
	w, endpoint := newWorkspaceWithLoopback(t), newReceiver(t)
	secrets := []string{w.createWebhook("wh", endpoint.url, `["run.failed"]`).str("signing_secret")}
	w.call("POST", "/v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13/rotate-secret", "").wantStatus(404, "webhook_not_found")
	for i := range 3 {
		w.call("POST", "/v1/webhooks/$wh/test", "").wantStatus(202)
		got := endpoint.wait(t, i+1)[i]
		if want := signature(secrets[i], got.body); got.header.Get("X-Service-Signature") != want {
			t.Errorf("after %d rotations X-Service-Signature is %q, want %q", i, got.header.Get("X-Service-Signature"), want)
		}
		want := standardSignature(t, secrets[i], got)
		if i > 0 { // only the previous secret stays valid
			want += " " + standardSignature(t, secrets[i-1], got)
		}
		if got.header.Get("Webhook-Signature") != want {
			t.Errorf("after %d rotations webhook-signature is %q, want %q", i, got.header.Get("Webhook-Signature"), want)
		}

		before := time.Now()
		a := w.call("POST", "/v1/webhooks/$wh/rotate-secret", "").wantStatus(200)
		wantKeys(t, a.object(), webhookKeys+" signing_secret")
		secrets = append(secrets, a.str("signing_secret"))
		until, err := time.Parse(time.RFC3339, a.str("old_secret_until"))
		if err != nil || until.Before(before.Add(24*time.Hour-time.Second)) || until.After(time.Now().Add(24*time.Hour)) {
			t.Errorf("the old secret is good until %s, %v", a.str("old_secret_until"), err)
		}
		shown := w.call("GET", "/v1/webhooks/$wh", "").wantStatus(200)
		if !strings.HasSuffix(secrets[i+1], shown.str("secret_hint")) || strings.Contains(string(shown.body), "signing_secret") {
			t.Errorf("got %s", shown.body)
		}
	}
	slices.Sort(secrets)
	if len(slices.Compact(secrets)) != 4 {
		t.Errorf("secrets repeat: %q", secrets)
	}
	w.server.query(t, `UPDATE webhooks SET old_until = 1`)
	wantContains(t, w.call("GET", "/v1/webhooks/$wh", "").json(), `{"old_secret_until": null}`)
	if got := strings.Count(strings.Join(w.auditActions(), " "), "webhook.secret_rotated"); got != 3 {
		t.Errorf("%d rotations are recorded", got)
	}
}

// Samples look like real events, go to one webhook only, and are not stored as
// events.
func TestWebhookSamples(t *testing.T) {
	t.Parallel()
	w, endpoint, other := newWorkspaceWithLoopback(t), newReceiver(t), newReceiver(t)
	all := `["run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated", "workflow.paused", "connection.broken", "connection.ending"]`
	w.createWebhook("wh", endpoint.url, all)
	w.createWebhook("other", other.url, all)
	stream := w.client.follow("/v1/events/stream")

	a := w.call("POST", "/v1/webhooks/$wh/test", "").wantStatus(202)
	sent, _ := a.object()["deliveries"].([]any)
	var events []string
	for _, item := range sent {
		delivery, _ := item.(map[string]any)
		wantKeys(t, delivery, deliveryKeys)
		events = append(events, fmt.Sprint(delivery["event"]))
		// Every response is checked against the documented schema.
		detail := w.waitForDelivery(fmt.Sprint(delivery["id"]))
		wantContains(t, detail.json(), `{"sample": true, "status": "delivered", "attempt_count": 1, "next_at": null,
			"last_attempt": {"number": 1, "status_code": 200, "error": null}, "attempts": [{"number": 1, "status_code": 200, "error": null, "answer": "thank you"}]}`)
		wantKeys(t, detail.object(), detailKeys)
	}
	want := []string{"run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated", "workflow.paused", "connection.broken", "connection.ending"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).wantStatus(200)
	w.call("POST", "/v1/webhooks/$wh/test", `{"events": ["run.failed", "run.failed"]}`).wantStatus(202)
	last := endpoint.wait(t, len(want)+1)[len(want)]
	if last.header.Get("X-Service-Event") != "run.failed" {
		t.Errorf("got %v", last.header)
	}

	wantContains(t, w.call("GET", "/v1/events", "").json(), `{"data": []}`)
	wantContains(t, w.deliveries("other", "").json(), `{"data": []}`)
	// The sample did not publish an event: the stream starts with the next real
	// one.
	w.workflow("wf")
	w.patch("wf", `{"state": "active"}`)
	if e, _ := stream.next(); e.name != "workflow.activated" || !strings.Contains(e.data, w.names["wf"]) {
		t.Errorf("the stream tells %+v", e)
	}
	if got := other.wait(t, 1); len(got) != 1 || !strings.Contains(string(got[0].body), w.names["wf"]) {
		t.Errorf("another webhook got %d requests", len(got))
	}
}

func TestWebhookSampleErrors(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a test is recorded and makes no events",
			setup: setupWebhook, request: "POST /v1/webhooks/$wh/test", scope: "write", body: `{"events": ["run.failed"]}`, status: 202, members: "deliveries",
			contains: `{"deliveries": [{"webhook_id": "$wh", "event": "run.failed", "run_id": "~run_[0-9a-z]{26}", "workflow_id": "~wf_[0-9a-z]{26}",
				"sample": true, "status": "pending", "attempt_count": 0, "last_attempt": null, "finished_at": null}]}`,
			audit: "webhook.tested",
		},
		{
			name:  "an unknown event is rejected",
			setup: setupWebhook, request: "POST /v1/webhooks/$wh/test", body: `{"events": ["run.done"]}`, status: 400, code: "invalid_request", pointers: []string{"/events"},
		},
		{
			name:  "events must not be empty",
			setup: setupWebhook, request: "POST /v1/webhooks/$wh/test", body: `{"events": []}`, status: 400, code: "invalid_request", pointers: []string{"/events"},
		},
		{
			name:    "an unknown webhook is webhook_not_found",
			request: "POST /v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13/test", status: 404, code: "webhook_not_found",
		},
		{
			name:    "the log of a deleted webhook is not found",
			setup:   func(w *testWorkspace) { setupDelivery(w); w.call("DELETE", "/v1/webhooks/$wh", "").wantStatus(204) },
			request: "GET /v1/deliveries/$dlv", scope: "read", status: 404, code: "delivery_not_found", message: "$dlv",
		},
		{
			name: "disabling a webhook drops what waits for it",
			setup: func(w *testWorkspace) {
				setupDelivery(w)
				w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).wantStatus(200)
			},
			request: "GET /v1/deliveries/$dlv", status: 200, contains: `{"status": "dropped", "next_at": null, "finished_at": "~.+"}`,
		},
	})
}

func TestDeliveryLog(t *testing.T) {
	t.Parallel()
	w, endpoint := newWorkspaceWithLoopback(t), newReceiver(t)
	w.createWebhook("wh", endpoint.url, `["run.started", "run.succeeded", "workflow.activated"]`)
	w.workflow("wf", setStep)
	w.patch("wf", `{"state": "active"}`)
	w.runToEnd("a", "wf", "")
	w.runToEnd("b", "wf", "")
	endpoint.wait(t, 5)
	eventually(t, "all are delivered", func() bool { return len(w.deliveries("wh", "?status=delivered").items()) == 5 })

	list := w.deliveries("wh", "")
	if diff := cmp.Diff([]string{"run.succeeded", "run.started", "run.succeeded", "run.started", "workflow.activated"}, list.column("event")); diff != "" {
		t.Error(diff)
	}
	wantKeys(t, list.items()[0], deliveryKeys)
	wantContains(t, list.items()[4], w.expand(`{"run_id": null, "workflow_id": "$wf", "sample": false}`))
	made := list.column("created_at")
	for query, want := range map[string]int{
		"?status=pending": 0, "?status=exhausted": 0, "?status=dropped": 0, "?event=run.started": 2, "?event=run.failed": 0,
		"?run_id=" + w.names["a"]: 2, "?run_id=run_x": 0, "?run_id=" + w.names["b"] + "&event=run.started&status=delivered": 1,
		"?since=" + made[4]: 5, "?until=" + made[4]: 0, "?since=2100-01-01T00:00:00Z": 0, "?until=2100-01-01T00:00:00Z&since=2020-01-01T00:00:00%2B01:00": 5,
	} {
		if got := len(w.deliveries("wh", query).items()); got != want {
			t.Errorf("%s: %d deliveries, want %d", query, got, want)
		}
	}
	for _, query := range []string{"?status=sent", "?event=run.done", "?since=yesterday", "?until=2026", "?since=", "?limit=0", "?run_id=" + strings.Repeat("x", 201)} {
		lenientClient := w.client
		lenientClient.lenient = true
		lenientClient.call("GET", w.expand("/v1/webhooks/$wh/deliveries"+query), "").wantStatus(400, "invalid_request")
	}
	w.call("GET", "/v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13/deliveries", "").wantStatus(404, "webhook_not_found")

	// Pagination returns the same list.
	var walked []string
	for query := "?limit=2"; query != ""; {
		page := w.deliveries("wh", query)
		walked = append(walked, page.column("id")...)
		query = ""
		if cursor, ok := page.object()["next_cursor"].(string); ok {
			query = "?limit=2&cursor=" + cursor
		}
	}
	if diff := cmp.Diff(list.column("id"), walked); diff != "" {
		t.Errorf("the pages are not the list (-list +pages):\n%s", diff)
	}
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	w, endpoint := newWorkspaceWithLoopback(t), newReceiver(t)
	w.createWebhook("wh", endpoint.url, `["run.succeeded"]`)
	w.workflow("wf", setStep)
	w.runToEnd("run", "wf", "")
	first := endpoint.wait(t, 1)[0]
	w.names["dlv"] = w.deliveries("wh", "").column("id")[0]
	w.waitForDelivery(w.names["dlv"])
	audited := len(w.auditActions())
	a := w.create("again", "/v1/deliveries/$dlv/redeliver", "")
	wantContains(t, a.json(), w.expand(`{"webhook_id": "$wh", "run_id": "$run", "status": "pending", "attempt_count": 0}`))
	wantKeys(t, a.object(), deliveryKeys)
	if got := a.header.Get("Location"); got != "/v1/deliveries/"+w.names["again"] {
		t.Errorf("Location is %q", got)
	}
	second := endpoint.wait(t, 2)[1]
	if string(first.body) != string(second.body) || first.header.Get("Webhook-Id") != second.header.Get("Webhook-Id") ||
		first.header.Get("X-Service-Delivery") == second.header.Get("X-Service-Delivery") {
		t.Errorf("first %v %s, then %v %s", first.header, first.body, second.header, second.body)
	}
	wantContains(t, w.waitForDelivery(w.names["again"]).json(), w.expand(`{"status": "delivered", "attempt_count": 1}`))
	wantContains(t, w.call("GET", "/v1/deliveries/$dlv", "").json(), `{"status": "delivered", "attempt_count": 1}`)
	if got := w.auditActions()[audited:]; !slices.Equal(got, []string{"delivery.redelivered"}) {
		t.Errorf("audit entries are %v", got)
	}
	w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).wantStatus(200)
	if a := w.call("POST", "/v1/deliveries/$dlv/redeliver", "").wantStatus(409, "webhook_disabled"); !strings.Contains(a.message(), w.names["wh"]) {
		t.Errorf("the message is %q", a.message())
	}
	for _, id := range []string{"dlv_01m7facgqmf46bs8r42wfv2z13", "nonsense"} {
		w.call("POST", "/v1/deliveries/"+id+"/redeliver", "").wantStatus(404, "delivery_not_found")
	}
}

// Events that a webhook missed while it was disabled are delivered on request,
// each once.
func TestRedeliverRange(t *testing.T) {
	t.Parallel()
	w, endpoint := newWorkspaceWithLoopback(t), newReceiver(t)
	w.createWebhook("wh", endpoint.url, `["run.started", "run.succeeded"]`)
	w.workflow("wf", setStep)
	respond := endpoint.hold() // a webhook that is already disabled gets no more deliveries
	w.runToEnd("a", "wf", "")
	respond(http.StatusGone)
	eventually(t, "the webhook is disabled", func() bool {
		return w.call("GET", "/v1/webhooks/$wh", "").object()["enabled"] == false
	})
	hook := w.call("GET", "/v1/webhooks/$wh", "")
	wantContains(t, hook.json(), `{"disabled_reason": "the endpoint returned 410 Gone", "failing_since": "~.+"}`)
	eventually(t, "what waits is dropped", func() bool { return len(w.deliveries("wh", "?status=dropped").items()) == 2 })
	const since = `{"since": "2026-01-01T00:00:00Z"}`
	w.call("POST", "/v1/webhooks/$wh/redeliver", since).wantStatus(409, "webhook_disabled")

	endpoint.setStatus(http.StatusOK)
	wantContains(t, w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": true}`).wantStatus(200).json(), `{"failing_since": null, "disabled_reason": null}`)
	seen := len(endpoint.wait(t, 1))
	wantContains(t, w.call("POST", "/v1/webhooks/$wh/redeliver", `{"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}`).wantStatus(200).json(),
		`{"redelivered": 0, "more": false}`)
	wantContains(t, w.call("POST", "/v1/webhooks/$wh/redeliver", since).wantStatus(200).json(), `{"redelivered": 2, "more": false}`)
	for _, got := range endpoint.wait(t, seen+2)[seen:] {
		if !strings.Contains(string(got.body), w.names["a"]) {
			t.Errorf("got %s", got.body)
		}
	}
	eventually(t, "both are delivered", func() bool { return len(w.deliveries("wh", "?status=delivered").items()) == 2 })
	wantContains(t, w.call("POST", "/v1/webhooks/$wh/redeliver", since).wantStatus(200).json(), `{"redelivered": 0, "more": false}`)
	wantContains(t, w.call("POST", "/v1/webhooks/$wh/redeliver", `{"since": "2026-01-01T00:00:00Z", "status": ["delivered", "dropped"]}`).wantStatus(200).json(),
		`{"redelivered": 2, "more": false}`)
}

func TestRedeliverRangeErrors(t *testing.T) {
	var scenarios []scenario
	for body, point := range map[string]string{
		`{}`:                     "/since",
		`{"since": "yesterday"}`: "/since",
		`{"since": null}`:        "/since",
		`{"since": "2026-01-01T00:00:00Z", "until": "soon"}`:       "/until",
		`{"since": "2026-01-01T00:00:00Z", "status": ["pending"]}`: "/status",
		`{"since": "2026-01-01T00:00:00Z", "status": []}`:          "/status",
		`{"since": "2026-01-01T00:00:00Z", "limit": 5}`:            "/limit",
	} {
		scenarios = append(scenarios, scenario{
			name: "a range of deliveries is rejected: " + body, setup: setupWebhook, request: "POST /v1/webhooks/$wh/redeliver", body: body,
			status: 400, code: "invalid_request", pointers: []string{point},
		})
	}
	runScenarios(t, append(scenarios, scenario{
		name: "redelivering to an unknown webhook is webhook_not_found", request: "POST /v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13/redeliver",
		body: `{"since": "2026-01-01T00:00:00Z"}`, status: 404, code: "webhook_not_found",
	}))
}

// A receiver that starts a run of the workflow it is notified about is stopped.
func TestWebhookLoopIsStopped(t *testing.T) {
	t.Parallel()
	w, endpoint := newWorkspaceWithLoopback(t), newReceiver(t)
	w.createWebhook("wh", endpoint.url, `["run.succeeded"]`)
	w.workflow("wf", setStep)
	rejected, start := make(chan *response, 1), w.server.url+w.expand("/v1/workflows/$wf/runs")
	endpoint.mu.Lock()
	endpoint.handler = func(_ http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequest(http.MethodPost, start, http.NoBody)
		if err != nil {
			return
		}
		request.Header.Set("Authorization", "Bearer "+w.key)
		request.Header.Set("X-Service-Depth", r.Header.Get("X-Service-Depth"))
		if a, err := w.exchange(request, ""); err == nil && a.status != http.StatusCreated {
			rejected <- a
		}
	}
	endpoint.mu.Unlock()
	w.startRun("run", "wf", "")
	select {
	case a := <-rejected:
		a.wantStatus(409, "chain_depth_exceeded")
	case <-time.After(5 * time.Minute):
		t.Fatal("the circle does not end")
	}
	var depths []string
	for _, got := range endpoint.wait(t, 11) {
		depths = append(depths, got.header.Get("X-Service-Depth"))
	}
	if got := strings.Join(depths, " "); got != "0 1 2 3 4 5 6 7 8 9 10" {
		t.Errorf("the depths are %s", got)
	}
	if n := len(w.call("GET", "/v1/runs", "").items()); n != 11 {
		t.Errorf("there are %d runs", n)
	}
}

func TestDepthHeader(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a run can stand below ten others",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", requestHeaders: []string{"X-Service-Depth", "9"}, status: 201, events: "run.started run.succeeded",
		},
		{
			name:  "a run below eleven others is chain_depth_exceeded",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", requestHeaders: []string{"X-Service-Depth", "10"}, status: 409, code: "chain_depth_exceeded",
		},
		{
			name:  "whatever the number is",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", requestHeaders: []string{"X-Service-Depth", "9223372036854775807"}, status: 409, code: "chain_depth_exceeded",
		},
		{
			name:  "a negative depth is rejected",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", lenient: true, requestHeaders: []string{"X-Service-Depth", "-1"}, status: 400, code: "invalid_request", message: "X-Service-Depth",
		},
		{
			name:  "a depth that is not a number is rejected",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", lenient: true, requestHeaders: []string{"X-Service-Depth", "deep"}, status: 400, code: "invalid_request", message: "X-Service-Depth",
		},
	})
}
