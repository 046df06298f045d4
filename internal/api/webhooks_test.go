package api_test

import (
	"fmt"
	"strings"
	"testing"
)

const webhookKeys = "id url events workflow_id enabled disabled_reason failing_since secret_hint old_secret_until created_at updated_at"

func setupWebhook(w *testWorkspace) {
	a := w.create("wh", "/v1/webhooks", `{"url": "https://hooks.example.com/a?token=t", "events": ["run.failed", "run.started"]}`)
	w.names["secret"] = a.str("signing_secret")
}

// setupDelivery creates a webhook with one delivery, a sample.
func setupDelivery(w *testWorkspace) {
	setupWebhook(w)
	sent := w.call("POST", "/v1/webhooks/$wh/test", `{"events": ["run.failed"]}`).wantStatus(202)
	w.names["dlv"] = sent.object()["deliveries"].([]any)[0].(map[string]any)["id"].(string)
}

func TestCreateWebhook(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "a new webhook is live and shows its signing secret",
			request: "POST /v1/webhooks", scope: "write", body: `{"url": "https://hooks.example.com/a", "events": ["run.failed"]}`,
			status: 201, members: webhookKeys + " signing_secret", headers: []string{"Location", "/v1/webhooks/wh_[0-9a-z]{26}"},
			contains: `{"id": "~wh_[0-9a-z]{26}", "url": "https://hooks.example.com/a", "events": ["run.failed"], "workflow_id": null, "enabled": true,
				"disabled_reason": null, "signing_secret": "~whsec_[A-Za-z0-9+/]{43}="}`,
			audit: "webhook.created",
			after: func(w *testWorkspace, a *response) {
				secret := a.str("signing_secret")
				if hint := a.str("secret_hint"); secret[len(secret)-4:] != hint {
					w.t.Errorf("the hint is %q, the secret %q", hint, secret)
				}
			},
		},
		{
			name:  "reads show the hint, never the secret",
			setup: setupWebhook, request: "GET /v1/webhooks/$wh", scope: "read", status: 200, members: webhookKeys,
			after: func(w *testWorkspace, a *response) {
				list := w.call("GET", "/v1/webhooks", "").wantStatus(200)
				for _, body := range [][]byte{a.body, list.body, w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).body} {
					if strings.Contains(string(body), w.names["secret"]) || !strings.Contains(string(body), "secret_hint") {
						w.t.Errorf("got %s", body)
					}
				}
				wantKeys(w.t, list.items()[0], webhookKeys)
			},
		},
		{
			name:    "events of all names are known, and duplicates are folded",
			request: "POST /v1/webhooks", body: `{"url": "http://example.com", "events": ["workflow.paused", "run.started", "run.cancelled", "run.started",
				"workflow.activated", "connection.ending", "connection.broken", "run.failed", "run.succeeded", "workflow.paused"]}`,
			status: 201, audit: "webhook.created",
			contains: `{"events": ["run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated", "workflow.paused", "connection.broken", "connection.ending"]}`,
		},
		{
			name:  "a webhook can be bound to a workflow",
			setup: setupWorkflow, request: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "$wf"}`,
			status: 201, contains: `{"workflow_id": "$wf"}`, audit: "webhook.created",
		},
		{
			name:    "a workflow_id of null means all workflows",
			request: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": null}`,
			status: 201, contains: `{"workflow_id": null}`, audit: "webhook.created",
		},
		{
			name:    "an unknown workflow is workflow_not_found, and the message names it",
			request: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm"}`,
			status: 404, code: "workflow_not_found", message: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name:    "the workflow of another workspace is workflow_not_found",
			setup:   func(w *testWorkspace) { o := newTestWorkspace(w.t); o.workflow("wf"); w.names["wf"] = o.names["wf"] },
			request: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "$wf"}`,
			status: 404, code: "workflow_not_found", message: "$wf",
		},
		{
			name: "a list carries data and next_cursor, newest first",
			setup: func(w *testWorkspace) {
				setupWebhook(w)
				w.create("newer", "/v1/webhooks", `{"url": "https://example.com/b", "events": ["run.failed"]}`)
			},
			request: "GET /v1/webhooks", scope: "read", status: 200, members: "data next_cursor",
			contains: `{"data": [{"id": "$newer"}, {"id": "$wh"}], "next_cursor": null}`,
		},
	})
}

func TestCreateWebhookErrors(t *testing.T) {
	url := func(text string) string { return fmt.Sprintf(`{"url": %q, "events": ["run.failed"]}`, text) }
	var scenarios []scenario
	add := func(name, body string, status int, code, point string) {
		sc := scenario{
			name: "creating a webhook: " + name, request: "POST /v1/webhooks", body: body, status: status, code: code, pointers: []string{point},
		}
		scenarios = append(scenarios, sc)
		sc.name, sc.request, sc.setup = "changing a webhook: "+name, "PATCH /v1/webhooks/$wh", setupWebhook
		sc.after = func(w *testWorkspace, _ *response) {
			wantContains(w.t, w.call("GET", "/v1/webhooks/$wh", "").json(), `{"url": "https://hooks.example.com/a?token=t", "events": ["run.started", "run.failed"]}`)
		}
		scenarios = append(scenarios, sc)
	}
	for _, text := range []string{
		"", "example.com", "/path", "//example.com/x", "ftp://example.com", "javascript:alert(1)", "https://", "https:///path", "https:example.com",
		"https://user@example.com", "https://user:pass@example.com", "https://example.com/#part", "https://exa mple.com", "https://example.com:port/",
		"https://example.com/" + strings.Repeat("x", 2040), "http://[::1", "https://:443/", "\u0000https://example.com", "https://example.com/\n",
	} {
		add(fmt.Sprintf("the url %.40q is rejected", text), strings.ReplaceAll(url(text), `\x00`, `\u0000`), 400, "invalid_request", "/url")
	}
	for _, text := range []string{
		"http://localhost", "http://LOCALHOST:8080/x", "http://localhost./", "http://a.localhost", "http://127.0.0.1", "http://127.1", "http://2130706433", "http://0x7f.0.0.1",
		"http://0177.0.0.1", "http://10.0.0.7", "http://172.16.0.1", "http://192.168.1.1", "http://169.254.169.254/latest", "http://100.64.0.1", "http://0.0.0.0",
		"http://[::1]", "http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]", "http://[fe80::1]", "http://[fe80::1%25eth0]", "http://[fc00::1]", "http://[64:ff9b::7f00:1]",
		"http://[2002:7f00:1::]", "http://224.0.0.1", "http://255.255.255.255", "http://[::]",
	} {
		add(fmt.Sprintf("the url %q is webhook_url_not_allowed", text), url(text), 422, "webhook_url_not_allowed", "/url")
	}
	add("events must not be empty", `{"url": "https://example.com", "events": []}`, 400, "invalid_request", "/events")
	add("an unknown event is rejected", `{"url": "https://example.com", "events": ["run.failed", "run.paused"]}`, 400, "invalid_request", "/events")
	add("names of events are case-sensitive", `{"url": "https://example.com", "events": ["Run.Failed"]}`, 400, "invalid_request", "/events")
	add("an event must be text", `{"url": "https://example.com", "events": [1]}`, 400, "invalid_request", "/events/0")
	add("an event must not be null", `{"url": "https://example.com", "events": [null]}`, 400, "invalid_request", "/events/0")
	add("events must be an array", `{"url": "https://example.com", "events": "run.failed"}`, 400, "invalid_request", "/events")
	add("an empty workflow_id is rejected", `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": ""}`, 400, "invalid_request", "/workflow_id")
	add("the secret cannot be chosen", `{"url": "https://example.com", "events": ["run.failed"], "signing_secret": "x"}`, 400, "invalid_request", "/signing_secret")
	scenarios = append(scenarios,
		scenario{name: "the url is required", request: "POST /v1/webhooks", body: `{"events": ["run.failed"]}`, status: 400, code: "invalid_request", pointers: []string{"/url"}},
		scenario{name: "the events are required", request: "POST /v1/webhooks", body: `{"url": "https://example.com"}`, status: 400, code: "invalid_request", pointers: []string{"/events"}},
		scenario{name: "a new webhook cannot be disabled", request: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "enabled": false}`, status: 400, code: "invalid_request", pointers: []string{"/enabled"}},
	)
	for _, text := range []string{"https://example.com:8443/a/b?c=d&e=%20", "http://93.184.215.14/", "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/x", "https://xn--bcher-kva.example/"} {
		scenarios = append(scenarios, scenario{
			name: "the url " + text + " is accepted and stored unchanged", request: "POST /v1/webhooks", body: url(text),
			status: 201, contains: fmt.Sprintf(`{"url": %q}`, text), audit: "webhook.created",
		})
	}
	runScenarios(t, scenarios)
}

func TestPatchWebhook(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "events are replaced whole, the rest stays, and the secret too",
			setup: setupWebhook, request: "PATCH /v1/webhooks/$wh", scope: "write", body: `{"events": ["workflow.paused"]}`, status: 200, members: webhookKeys,
			contains: `{"events": ["workflow.paused"], "url": "https://hooks.example.com/a?token=t", "enabled": true}`, audit: "webhook.updated",
			after: func(w *testWorkspace, a *response) {
				if !strings.HasSuffix(w.names["secret"], a.str("secret_hint")) || a.str("updated_at") < a.str("created_at") {
					w.t.Errorf("got %s", a.body)
				}
			},
		},
		{
			name:  "a webhook can be disabled",
			setup: setupWebhook, request: "PATCH /v1/webhooks/$wh", body: `{"enabled": false}`,
			status: 200, contains: `{"enabled": false, "disabled_reason": null}`, audit: "webhook.updated",
		},
		{
			name: "a webhook can be put back into service",
			setup: func(w *testWorkspace) {
				setupWebhook(w)
				w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).wantStatus(200)
			},
			request: "PATCH /v1/webhooks/$wh", body: `{"enabled": true}`, requestHeaders: []string{"Content-Type", "application/merge-patch+json"},
			status: 200, contains: `{"enabled": true}`, audit: "webhook.updated",
		},
		{
			name: "a webhook can be bound and set free again",
			setup: func(w *testWorkspace) {
				setupWebhook(w)
				setupWorkflow(w)
				w.call("PATCH", "/v1/webhooks/$wh", `{"workflow_id": "$wf"}`).wantStatus(200)
			},
			request: "PATCH /v1/webhooks/$wh", body: `{"workflow_id": null}`, status: 200, contains: `{"workflow_id": null}`, audit: "webhook.updated",
		},
		{
			name:  "binding it to an unknown workflow is workflow_not_found",
			setup: setupWebhook, request: "PATCH /v1/webhooks/$wh", body: `{"workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm"}`, status: 404, code: "workflow_not_found",
		},
		{
			name: "binding it to the workflow of another workspace is workflow_not_found",
			setup: func(w *testWorkspace) {
				setupWebhook(w)
				o := newTestWorkspace(w.t)
				o.workflow("wf")
				w.names["wf"] = o.names["wf"]
			},
			request: "PATCH /v1/webhooks/$wh", body: `{"workflow_id": "$wf"}`, status: 404, code: "workflow_not_found",
		},
		{
			name:  "url, events and enabled must not be null",
			setup: setupWebhook, request: "PATCH /v1/webhooks/$wh", body: `{"url": null, "events": null, "enabled": null}`,
			status: 400, code: "invalid_request", pointers: []string{"/url", "/events", "/enabled"},
		},
		{
			name:    "an unknown webhook is webhook_not_found, and the message names it",
			request: "PATCH /v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13", body: `{}`, status: 404, code: "webhook_not_found", message: "wh_01m7facgqmf46bs8r42wfv2z13",
		},
		{
			name:  "a deleted webhook is not found",
			setup: setupWebhook, request: "DELETE /v1/webhooks/$wh", scope: "write", status: 204, audit: "webhook.deleted",
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/webhooks/$wh", "").wantStatus(404, "webhook_not_found")
				w.call("DELETE", "/v1/webhooks/$wh", "").wantStatus(404, "webhook_not_found")
				w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": true}`).wantStatus(404, "webhook_not_found")
				wantContains(w.t, w.call("GET", "/v1/webhooks", "").json(), `{"data": []}`)
			},
		},
	})
}

// A notification is queued in the same transaction as the change, for the
// subscribed webhooks only.
func TestNotificationsAreQueued(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	w.workflow("other")
	hook := func(name, rest string) {
		w.create(name, "/v1/webhooks", `{"url": "https://example.com/`+name+`", `+rest+`}`)
	}
	hook("all", `"events": ["run.started", "run.succeeded", "workflow.activated"]`)
	hook("bound", `"events": ["run.started"], "workflow_id": "$wf"`)
	hook("elsewhere", `"events": ["run.started"], "workflow_id": "$other"`)
	hook("failures", `"events": ["run.failed"]`)
	hook("off", `"events": ["run.started"]`)
	w.call("PATCH", "/v1/webhooks/$off", `{"enabled": false}`).wantStatus(200)
	hook("deleted", `"events": ["run.started"]`)
	w.call("DELETE", "/v1/webhooks/$deleted", "").wantStatus(204)
	w.patch("wf", `{"state": "active"}`)
	w.runToEnd("run", "wf", "")

	got := map[string]string{}
	for _, row := range w.server.query(t, `SELECT d.webhook_id, e.type FROM deliveries d JOIN events e ON e.id = d.event_id
		WHERE d.workspace_id = ? ORDER BY e.seq`, w.id) {
		got[row[0]] += row[1] + " "
	}
	want := map[string]string{
		w.names["all"]:   "workflow.activated run.started run.succeeded ",
		w.names["bound"]: "run.started ",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("queued are %v, want %v", got, want)
	}
}
