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

// receiver is an endpoint that keeps what it gets.
type receiver struct {
	url string

	mu     sync.Mutex
	got    []received
	answer http.HandlerFunc
}

type received struct {
	header http.Header
	body   []byte
}

// newReceiver starts an endpoint that answers 200 until told otherwise.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thank you") }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.got = append(r.got, received{request.Header.Clone(), body})
		answer := r.answer
		r.mu.Unlock()
		answer(w, request)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// answers makes the endpoint answer with a status from now on.
func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "answer "+fmt.Sprint(status))
	}
}

// wait waits until the endpoint has got so many requests, and returns them.
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

// newSendingWorld is a world on a server that may send to this machine.
func newSendingWorld(t *testing.T) *world {
	t.Helper()
	return newServer(t, func(c *config.Serve) {
		c.EgressAllow = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
	}).newWorld(t)
}

func (w *world) hook(name, url, events string) *answer {
	w.t.Helper()
	return w.make(name, "/v1/webhooks", fmt.Sprintf(`{"url": %q, "events": %s}`, url, events))
}

// settled waits until a delivery is not pending any more.
func (w *world) settled(id string) *answer {
	w.t.Helper()
	var a *answer
	eventually(w.t, "the delivery has ended", func() bool {
		a = w.call("GET", "/v1/deliveries/"+id, "").want(200)
		return a.text("status") != "pending"
	})
	return a
}

// deliveries lists those of a webhook.
func (w *world) deliveries(name, query string) *answer {
	w.t.Helper()
	return w.call("GET", "/v1/webhooks/$"+name+"/deliveries"+query, "").want(200)
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
	w, endpoint := newSendingWorld(t), newReceiver(t)
	secrets := []string{w.hook("wh", endpoint.url, `["run.failed"]`).text("signing_secret")}
	w.call("POST", "/v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13/rotate-secret", "").want(404, "webhook_not_found")
	for i := range 3 {
		w.call("POST", "/v1/webhooks/$wh/test", "").want(202)
		got := endpoint.wait(t, i+1)[i]
		if want := signature(secrets[i], got.body); got.header.Get("X-Service-Signature") != want {
			t.Errorf("after %d rotations X-Service-Signature is %q, want %q", i, got.header.Get("X-Service-Signature"), want)
		}
		want := standardSignature(t, secrets[i], got)
		if i > 0 { // only the one before, however many there were
			want += " " + standardSignature(t, secrets[i-1], got)
		}
		if got.header.Get("Webhook-Signature") != want {
			t.Errorf("after %d rotations webhook-signature is %q, want %q", i, got.header.Get("Webhook-Signature"), want)
		}

		before := time.Now()
		a := w.call("POST", "/v1/webhooks/$wh/rotate-secret", "").want(200)
		wantKeys(t, a.object(), webhookKeys+" signing_secret")
		secrets = append(secrets, a.text("signing_secret"))
		until, err := time.Parse(time.RFC3339, a.text("old_secret_until"))
		if err != nil || until.Before(before.Add(24*time.Hour-time.Second)) || until.After(time.Now().Add(24*time.Hour)) {
			t.Errorf("the old secret is good until %s, %v", a.text("old_secret_until"), err)
		}
		shown := w.call("GET", "/v1/webhooks/$wh", "").want(200)
		if !strings.HasSuffix(secrets[i+1], shown.text("secret_hint")) || strings.Contains(string(shown.body), "signing_secret") {
			t.Errorf("got %s", shown.body)
		}
	}
	slices.Sort(secrets)
	if len(slices.Compact(secrets)) != 4 {
		t.Errorf("secrets repeat: %q", secrets)
	}
	w.server.rows(t, `UPDATE webhooks SET old_until = 1`)
	wantContains(t, w.call("GET", "/v1/webhooks/$wh", "").json(), `{"old_secret_until": null}`)
	if got := strings.Count(strings.Join(w.audited(), " "), "webhook.secret_rotated"); got != 3 {
		t.Errorf("%d rotations are recorded", got)
	}
}

// Samples look like what happens, go to one webhook only, and are no events.
func TestWebhookIsTested(t *testing.T) {
	t.Parallel()
	w, endpoint, other := newSendingWorld(t), newReceiver(t), newReceiver(t)
	all := `["run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated", "workflow.paused"]`
	w.hook("wh", endpoint.url, all)
	w.hook("other", other.url, all)
	stream := w.client.follow("/v1/events/stream")

	a := w.call("POST", "/v1/webhooks/$wh/test", "").want(202)
	sent, _ := a.object()["deliveries"].([]any)
	var events []string
	for _, item := range sent {
		delivery, _ := item.(map[string]any)
		wantKeys(t, delivery, deliveryKeys)
		events = append(events, fmt.Sprint(delivery["event"]))
		// That each body has the documented shape is checked with every answer.
		detail := w.settled(fmt.Sprint(delivery["id"]))
		wantContains(t, detail.json(), `{"sample": true, "status": "delivered", "attempt_count": 1, "next_at": null,
			"last_attempt": {"number": 1, "status_code": 200, "error": null}, "attempts": [{"number": 1, "status_code": 200, "error": null, "answer": "thank you"}]}`)
		wantKeys(t, detail.object(), detailKeys)
	}
	want := []string{"run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated", "workflow.paused"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).want(200)
	w.call("POST", "/v1/webhooks/$wh/test", `{"events": ["run.failed", "run.failed"]}`).want(202)
	last := endpoint.wait(t, 7)[6]
	if last.header.Get("X-Service-Event") != "run.failed" {
		t.Errorf("got %v", last.header)
	}

	wantContains(t, w.call("GET", "/v1/events", "").json(), `{"data": []}`)
	wantContains(t, w.deliveries("other", "").json(), `{"data": []}`)
	// The first thing that the stream tells is the first thing that happens.
	w.workflow("wf")
	w.patch("wf", `{"state": "active"}`)
	if e, _ := stream.next(); e.name != "workflow.activated" || !strings.Contains(e.data, w.names["wf"]) {
		t.Errorf("the stream tells %+v", e)
	}
	if got := other.wait(t, 1); len(got) != 1 || !strings.Contains(string(got[0].body), w.names["wf"]) {
		t.Errorf("another webhook got %d requests", len(got))
	}
}

func TestWebhookTestRules(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a test is recorded and makes no events",
			given: givenWebhook, call: "POST /v1/webhooks/$wh/test", as: "write", body: `{"events": ["run.failed"]}`, status: 202, keys: "deliveries",
			answer: `{"deliveries": [{"webhook_id": "$wh", "event": "run.failed", "run_id": "~run_[0-9a-z]{26}", "workflow_id": "~wf_[0-9a-z]{26}",
				"sample": true, "status": "pending", "attempt_count": 0, "last_attempt": null, "finished_at": null}]}`,
			audit: "webhook.tested",
		},
		{
			name:  "an unknown event is refused",
			given: givenWebhook, call: "POST /v1/webhooks/$wh/test", body: `{"events": ["run.done"]}`, status: 400, code: "invalid_request", points: []string{"/events"},
		},
		{
			name:  "events must not be empty",
			given: givenWebhook, call: "POST /v1/webhooks/$wh/test", body: `{"events": []}`, status: 400, code: "invalid_request", points: []string{"/events"},
		},
		{
			name: "an unknown webhook is webhook_not_found",
			call: "POST /v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13/test", status: 404, code: "webhook_not_found",
		},
		{
			name:  "the log of a deleted webhook is gone",
			given: func(w *world) { givenDelivery(w); w.call("DELETE", "/v1/webhooks/$wh", "").want(204) },
			call:  "GET /v1/deliveries/$dlv", as: "read", status: 404, code: "delivery_not_found", says: "$dlv",
		},
		{
			name:  "disabling a webhook drops what waits for it",
			given: func(w *world) { givenDelivery(w); w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).want(200) },
			call:  "GET /v1/deliveries/$dlv", status: 200, answer: `{"status": "dropped", "next_at": null, "finished_at": "~.+"}`,
		},
	})
}

func TestDeliveryLog(t *testing.T) {
	t.Parallel()
	w, endpoint := newSendingWorld(t), newReceiver(t)
	w.hook("wh", endpoint.url, `["run.started", "run.succeeded", "workflow.activated"]`)
	w.workflow("wf", setStep)
	w.patch("wf", `{"state": "active"}`)
	w.finish("a", "wf", "")
	w.finish("b", "wf", "")
	endpoint.wait(t, 5)
	eventually(t, "all are delivered", func() bool { return len(w.deliveries("wh", "?status=delivered").items()) == 5 })

	list := w.deliveries("wh", "")
	if diff := cmp.Diff([]string{"run.succeeded", "run.started", "run.succeeded", "run.started", "workflow.activated"}, list.column("event")); diff != "" {
		t.Error(diff)
	}
	wantKeys(t, list.items()[0], deliveryKeys)
	wantContains(t, list.items()[4], w.fill(`{"run_id": null, "workflow_id": "$wf", "sample": false}`))
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
		loose := w.client
		loose.loose = true
		loose.call("GET", w.fill("/v1/webhooks/$wh/deliveries"+query), "").want(400, "invalid_request")
	}
	w.call("GET", "/v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13/deliveries", "").want(404, "webhook_not_found")

	// Page by page it is the same list.
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
	w, endpoint := newSendingWorld(t), newReceiver(t)
	w.hook("wh", endpoint.url, `["run.succeeded"]`)
	w.workflow("wf", setStep)
	w.finish("run", "wf", "")
	first := endpoint.wait(t, 1)[0]
	w.names["dlv"] = w.deliveries("wh", "").column("id")[0]
	w.settled(w.names["dlv"])
	audited := len(w.audited())
	a := w.make("again", "/v1/deliveries/$dlv/redeliver", "")
	wantContains(t, a.json(), w.fill(`{"webhook_id": "$wh", "run_id": "$run", "status": "pending", "attempt_count": 0}`))
	wantKeys(t, a.object(), deliveryKeys)
	if got := a.header.Get("Location"); got != "/v1/deliveries/"+w.names["again"] {
		t.Errorf("Location is %q", got)
	}
	second := endpoint.wait(t, 2)[1]
	if string(first.body) != string(second.body) || first.header.Get("Webhook-Id") != second.header.Get("Webhook-Id") ||
		first.header.Get("X-Service-Delivery") == second.header.Get("X-Service-Delivery") {
		t.Errorf("first %v %s, then %v %s", first.header, first.body, second.header, second.body)
	}
	wantContains(t, w.settled(w.names["again"]).json(), w.fill(`{"status": "delivered", "attempt_count": 1}`))
	wantContains(t, w.call("GET", "/v1/deliveries/$dlv", "").json(), `{"status": "delivered", "attempt_count": 1}`)
	if got := w.audited()[audited:]; !slices.Equal(got, []string{"delivery.redelivered"}) {
		t.Errorf("audit entries are %v", got)
	}
	w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).want(200)
	if a := w.call("POST", "/v1/deliveries/$dlv/redeliver", "").want(409, "webhook_disabled"); !strings.Contains(a.message(), w.names["wh"]) {
		t.Errorf("the message is %q", a.message())
	}
	for _, id := range []string{"dlv_01m7facgqmf46bs8r42wfv2z13", "nonsense"} {
		w.call("POST", "/v1/deliveries/"+id+"/redeliver", "").want(404, "delivery_not_found")
	}
}

// What a webhook missed while it was disabled comes when it is asked for, each
// event once.
func TestRedeliverRange(t *testing.T) {
	t.Parallel()
	w, endpoint := newSendingWorld(t), newReceiver(t)
	w.hook("wh", endpoint.url, `["run.started", "run.succeeded"]`)
	w.workflow("wf", setStep)
	endpoint.answers(http.StatusGone)
	w.finish("a", "wf", "")
	eventually(t, "the webhook is disabled", func() bool {
		return w.call("GET", "/v1/webhooks/$wh", "").object()["enabled"] == false
	})
	hook := w.call("GET", "/v1/webhooks/$wh", "")
	wantContains(t, hook.json(), `{"disabled_reason": "the endpoint answered 410 Gone", "failing_since": "~.+"}`)
	eventually(t, "what waits is dropped", func() bool { return len(w.deliveries("wh", "?status=dropped").items()) == 2 })
	const since = `{"since": "2026-01-01T00:00:00Z"}`
	w.call("POST", "/v1/webhooks/$wh/redeliver", since).want(409, "webhook_disabled")

	endpoint.answers(http.StatusOK)
	wantContains(t, w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": true}`).want(200).json(), `{"failing_since": null, "disabled_reason": null}`)
	seen := len(endpoint.wait(t, 1))
	wantContains(t, w.call("POST", "/v1/webhooks/$wh/redeliver", `{"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}`).want(200).json(),
		`{"redelivered": 0, "more": false}`)
	wantContains(t, w.call("POST", "/v1/webhooks/$wh/redeliver", since).want(200).json(), `{"redelivered": 2, "more": false}`)
	for _, got := range endpoint.wait(t, seen+2)[seen:] {
		if !strings.Contains(string(got.body), w.names["a"]) {
			t.Errorf("got %s", got.body)
		}
	}
	eventually(t, "both are delivered", func() bool { return len(w.deliveries("wh", "?status=delivered").items()) == 2 })
	wantContains(t, w.call("POST", "/v1/webhooks/$wh/redeliver", since).want(200).json(), `{"redelivered": 0, "more": false}`)
	wantContains(t, w.call("POST", "/v1/webhooks/$wh/redeliver", `{"since": "2026-01-01T00:00:00Z", "status": ["delivered", "dropped"]}`).want(200).json(),
		`{"redelivered": 2, "more": false}`)
}

func TestRedeliverRangeRules(t *testing.T) {
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
			name: "a range of deliveries is refused: " + body, given: givenWebhook, call: "POST /v1/webhooks/$wh/redeliver", body: body,
			status: 400, code: "invalid_request", points: []string{point},
		})
	}
	runScenarios(t, append(scenarios, scenario{
		name: "redelivering to an unknown webhook is webhook_not_found", call: "POST /v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13/redeliver",
		body: `{"since": "2026-01-01T00:00:00Z"}`, status: 404, code: "webhook_not_found",
	}))
}

// A receiver that starts the workflow whose run it is told of is stopped.
func TestCircleOfRunsEnds(t *testing.T) {
	t.Parallel()
	w, endpoint := newSendingWorld(t), newReceiver(t)
	w.hook("wh", endpoint.url, `["run.succeeded"]`)
	w.workflow("wf", setStep)
	refused, start := make(chan *answer, 1), w.server.url+w.fill("/v1/workflows/$wf/runs")
	endpoint.mu.Lock()
	endpoint.answer = func(_ http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequest(http.MethodPost, start, http.NoBody)
		if err != nil {
			return
		}
		request.Header.Set("Authorization", "Bearer "+w.key)
		request.Header.Set("X-Service-Depth", r.Header.Get("X-Service-Depth"))
		if a, err := w.exchange(request, ""); err == nil && a.status != http.StatusCreated {
			refused <- a
		}
	}
	endpoint.mu.Unlock()
	w.run("run", "wf", "")
	select {
	case a := <-refused:
		a.want(409, "chain_depth_exceeded")
	case <-time.After(20 * time.Second):
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

func TestDepthRules(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "a run can stand below ten others",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/runs", with: []string{"X-Service-Depth", "9"}, status: 201, events: "run.started run.succeeded",
		},
		{
			name:  "a run below eleven others is chain_depth_exceeded",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/runs", with: []string{"X-Service-Depth", "10"}, status: 409, code: "chain_depth_exceeded",
		},
		{
			name:  "whatever the number is",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/runs", with: []string{"X-Service-Depth", "9223372036854775807"}, status: 409, code: "chain_depth_exceeded",
		},
		{
			name:  "a negative depth is refused",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/runs", loose: true, with: []string{"X-Service-Depth", "-1"}, status: 400, code: "invalid_request", says: "X-Service-Depth",
		},
		{
			name:  "a depth that is no number is refused",
			given: givenWorkflow, call: "POST /v1/workflows/$wf/runs", loose: true, with: []string{"X-Service-Depth", "deep"}, status: 400, code: "invalid_request", says: "X-Service-Depth",
		},
	})
}
