package api_test

import (
	"fmt"
	"strings"
	"testing"
)

const webhookKeys = "id url events workflow_id enabled disabled_reason failing_since secret_hint old_secret_until created_at updated_at"

func givenWebhook(w *world) {
	a := w.make("wh", "/v1/webhooks", `{"url": "https://hooks.example.com/a?token=t", "events": ["run.failed", "run.started"]}`)
	w.names["secret"] = a.text("signing_secret")
}

// givenDelivery puts a webhook with one delivery into a world: a sample.
func givenDelivery(w *world) {
	givenWebhook(w)
	sent := w.call("POST", "/v1/webhooks/$wh/test", `{"events": ["run.failed"]}`).want(202)
	w.names["dlv"] = sent.object()["deliveries"].([]any)[0].(map[string]any)["id"].(string)
}

func TestCreateWebhook(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a new webhook is live and shows its signing secret",
			call: "POST /v1/webhooks", as: "write", body: `{"url": "https://hooks.example.com/a", "events": ["run.failed"]}`,
			status: 201, keys: webhookKeys + " signing_secret", headers: []string{"Location", "/v1/webhooks/wh_[0-9a-z]{26}"},
			answer: `{"id": "~wh_[0-9a-z]{26}", "url": "https://hooks.example.com/a", "events": ["run.failed"], "workflow_id": null, "enabled": true,
				"disabled_reason": null, "signing_secret": "~whsec_[A-Za-z0-9+/]{43}="}`,
			audit: "webhook.created",
			then: func(w *world, a *answer) {
				secret := a.text("signing_secret")
				if hint := a.text("secret_hint"); secret[len(secret)-4:] != hint {
					w.t.Errorf("the hint is %q, the secret %q", hint, secret)
				}
			},
		},
		{
			name:  "reads show the hint, never the secret",
			given: givenWebhook, call: "GET /v1/webhooks/$wh", as: "read", status: 200, keys: webhookKeys,
			then: func(w *world, a *answer) {
				list := w.call("GET", "/v1/webhooks", "").want(200)
				for _, body := range [][]byte{a.body, list.body, w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).body} {
					if strings.Contains(string(body), w.names["secret"]) || !strings.Contains(string(body), "secret_hint") {
						w.t.Errorf("got %s", body)
					}
				}
				wantKeys(w.t, list.items()[0], webhookKeys)
			},
		},
		{
			name: "events of all names are known, and duplicates are folded",
			call: "POST /v1/webhooks", body: `{"url": "http://example.com", "events": ["workflow.paused", "run.started", "run.cancelled", "run.started",
				"workflow.activated", "run.failed", "run.succeeded", "workflow.paused"]}`,
			status: 201, audit: "webhook.created",
			answer: `{"events": ["run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated", "workflow.paused"]}`,
		},
		{
			name:  "a webhook can be bound to a workflow",
			given: givenWorkflow, call: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "$wf"}`,
			status: 201, answer: `{"workflow_id": "$wf"}`, audit: "webhook.created",
		},
		{
			name: "a workflow_id of null means all workflows",
			call: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": null}`,
			status: 201, answer: `{"workflow_id": null}`, audit: "webhook.created",
		},
		{
			name: "an unknown workflow is workflow_not_found, and the message names it",
			call: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm"}`,
			status: 404, code: "workflow_not_found", says: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name:  "the workflow of another workspace is workflow_not_found",
			given: func(w *world) { o := newWorld(w.t); o.workflow("wf"); w.names["wf"] = o.names["wf"] },
			call:  "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "$wf"}`,
			status: 404, code: "workflow_not_found", says: "$wf",
		},
		{
			name: "a list carries data and next_cursor, newest first",
			given: func(w *world) {
				givenWebhook(w)
				w.make("newer", "/v1/webhooks", `{"url": "https://example.com/b", "events": ["run.failed"]}`)
			},
			call: "GET /v1/webhooks", as: "read", status: 200, keys: "data next_cursor",
			answer: `{"data": [{"id": "$newer"}, {"id": "$wh"}], "next_cursor": null}`,
		},
	})
}

func TestWebhookRules(t *testing.T) {
	url := func(text string) string { return fmt.Sprintf(`{"url": %q, "events": ["run.failed"]}`, text) }
	var scenarios []scenario
	add := func(name, body string, status int, code, point string) {
		sc := scenario{
			name: "creating a webhook: " + name, call: "POST /v1/webhooks", body: body, status: status, code: code, points: []string{point},
		}
		scenarios = append(scenarios, sc)
		sc.name, sc.call, sc.given = "changing a webhook: "+name, "PATCH /v1/webhooks/$wh", givenWebhook
		sc.then = func(w *world, _ *answer) {
			wantContains(w.t, w.call("GET", "/v1/webhooks/$wh", "").json(), `{"url": "https://hooks.example.com/a?token=t", "events": ["run.started", "run.failed"]}`)
		}
		scenarios = append(scenarios, sc)
	}
	for _, text := range []string{
		"", "example.com", "/path", "//example.com/x", "ftp://example.com", "javascript:alert(1)", "https://", "https:///path", "https:example.com",
		"https://user@example.com", "https://user:pass@example.com", "https://example.com/#part", "https://exa mple.com", "https://example.com:port/",
		"https://example.com/" + strings.Repeat("x", 2040), "http://[::1", "https://:443/", "\u0000https://example.com", "https://example.com/\n",
	} {
		add(fmt.Sprintf("the url %.40q is refused", text), strings.ReplaceAll(url(text), `\x00`, `\u0000`), 400, "invalid_request", "/url")
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
	add("an unknown event is refused", `{"url": "https://example.com", "events": ["run.failed", "run.paused"]}`, 400, "invalid_request", "/events")
	add("names of events are case-sensitive", `{"url": "https://example.com", "events": ["Run.Failed"]}`, 400, "invalid_request", "/events")
	add("an event must be text", `{"url": "https://example.com", "events": [1]}`, 400, "invalid_request", "/events/0")
	add("an event must not be null", `{"url": "https://example.com", "events": [null]}`, 400, "invalid_request", "/events/0")
	add("events must be an array", `{"url": "https://example.com", "events": "run.failed"}`, 400, "invalid_request", "/events")
	add("an empty workflow_id is refused", `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": ""}`, 400, "invalid_request", "/workflow_id")
	add("the secret cannot be chosen", `{"url": "https://example.com", "events": ["run.failed"], "signing_secret": "x"}`, 400, "invalid_request", "/signing_secret")
	scenarios = append(scenarios,
		scenario{name: "the url is required", call: "POST /v1/webhooks", body: `{"events": ["run.failed"]}`, status: 400, code: "invalid_request", points: []string{"/url"}},
		scenario{name: "the events are required", call: "POST /v1/webhooks", body: `{"url": "https://example.com"}`, status: 400, code: "invalid_request", points: []string{"/events"}},
		scenario{name: "a new webhook cannot be disabled", call: "POST /v1/webhooks", body: `{"url": "https://example.com", "events": ["run.failed"], "enabled": false}`, status: 400, code: "invalid_request", points: []string{"/enabled"}},
	)
	for _, text := range []string{"https://example.com:8443/a/b?c=d&e=%20", "http://93.184.215.14/", "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/x", "https://xn--bcher-kva.example/"} {
		scenarios = append(scenarios, scenario{
			name: "the url " + text + " is accepted and kept as it is", call: "POST /v1/webhooks", body: url(text),
			status: 201, answer: fmt.Sprintf(`{"url": %q}`, text), audit: "webhook.created",
		})
	}
	runScenarios(t, scenarios)
}

func TestPatchWebhook(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:  "events are replaced whole, the rest stays, and the secret too",
			given: givenWebhook, call: "PATCH /v1/webhooks/$wh", as: "write", body: `{"events": ["workflow.paused"]}`, status: 200, keys: webhookKeys,
			answer: `{"events": ["workflow.paused"], "url": "https://hooks.example.com/a?token=t", "enabled": true}`, audit: "webhook.updated",
			then: func(w *world, a *answer) {
				if !strings.HasSuffix(w.names["secret"], a.text("secret_hint")) || a.text("updated_at") < a.text("created_at") {
					w.t.Errorf("got %s", a.body)
				}
			},
		},
		{
			name:  "a webhook can be disabled",
			given: givenWebhook, call: "PATCH /v1/webhooks/$wh", body: `{"enabled": false}`,
			status: 200, answer: `{"enabled": false, "disabled_reason": null}`, audit: "webhook.updated",
		},
		{
			name:  "a webhook can be put back into service",
			given: func(w *world) { givenWebhook(w); w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": false}`).want(200) },
			call:  "PATCH /v1/webhooks/$wh", body: `{"enabled": true}`, with: []string{"Content-Type", "application/merge-patch+json"},
			status: 200, answer: `{"enabled": true}`, audit: "webhook.updated",
		},
		{
			name: "a webhook can be bound and set free again",
			given: func(w *world) {
				givenWebhook(w)
				givenWorkflow(w)
				w.call("PATCH", "/v1/webhooks/$wh", `{"workflow_id": "$wf"}`).want(200)
			},
			call: "PATCH /v1/webhooks/$wh", body: `{"workflow_id": null}`, status: 200, answer: `{"workflow_id": null}`, audit: "webhook.updated",
		},
		{
			name:  "binding it to an unknown workflow is workflow_not_found",
			given: givenWebhook, call: "PATCH /v1/webhooks/$wh", body: `{"workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm"}`, status: 404, code: "workflow_not_found",
		},
		{
			name:  "binding it to the workflow of another workspace is workflow_not_found",
			given: func(w *world) { givenWebhook(w); o := newWorld(w.t); o.workflow("wf"); w.names["wf"] = o.names["wf"] },
			call:  "PATCH /v1/webhooks/$wh", body: `{"workflow_id": "$wf"}`, status: 404, code: "workflow_not_found",
		},
		{
			name:  "url, events and enabled must not be null",
			given: givenWebhook, call: "PATCH /v1/webhooks/$wh", body: `{"url": null, "events": null, "enabled": null}`,
			status: 400, code: "invalid_request", points: []string{"/url", "/events", "/enabled"},
		},
		{
			name: "an unknown webhook is webhook_not_found, and the message names it",
			call: "PATCH /v1/webhooks/wh_01m7facgqmf46bs8r42wfv2z13", body: `{}`, status: 404, code: "webhook_not_found", says: "wh_01m7facgqmf46bs8r42wfv2z13",
		},
		{
			name:  "a deleted webhook is gone",
			given: givenWebhook, call: "DELETE /v1/webhooks/$wh", as: "write", status: 204, audit: "webhook.deleted",
			then: func(w *world, _ *answer) {
				w.call("GET", "/v1/webhooks/$wh", "").want(404, "webhook_not_found")
				w.call("DELETE", "/v1/webhooks/$wh", "").want(404, "webhook_not_found")
				w.call("PATCH", "/v1/webhooks/$wh", `{"enabled": true}`).want(404, "webhook_not_found")
				wantContains(w.t, w.call("GET", "/v1/webhooks", "").json(), `{"data": []}`)
			},
		},
	})
}

// A notification is queued with the change it tells of, for the webhooks that
// want it and no others.
func TestNotificationsAreQueued(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf")
	w.workflow("other")
	hook := func(name, rest string) {
		w.make(name, "/v1/webhooks", `{"url": "https://example.com/`+name+`", `+rest+`}`)
	}
	hook("all", `"events": ["run.started", "run.succeeded", "workflow.activated"]`)
	hook("bound", `"events": ["run.started"], "workflow_id": "$wf"`)
	hook("elsewhere", `"events": ["run.started"], "workflow_id": "$other"`)
	hook("failures", `"events": ["run.failed"]`)
	hook("off", `"events": ["run.started"]`)
	w.call("PATCH", "/v1/webhooks/$off", `{"enabled": false}`).want(200)
	hook("deleted", `"events": ["run.started"]`)
	w.call("DELETE", "/v1/webhooks/$deleted", "").want(204)
	w.patch("wf", `{"state": "active"}`)
	w.finish("run", "wf", "")

	got := map[string]string{}
	for _, row := range w.server.rows(t, `SELECT d.webhook_id, e.type FROM deliveries d JOIN events e ON e.id = d.event_id
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
