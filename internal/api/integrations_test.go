package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

func TestIntegrations(t *testing.T) {
	const keys = "id name category docs keywords connection auth hosts operations triggers own confirm_hosts"
	runScenarios(t, []scenario{
		{
			name:    "the list has every integration, sorted by id",
			request: "GET /v1/integrations?limit=100", scope: "read", status: 200, members: "data next_cursor", contains: `{"next_cursor": null}`,
			after: func(w *testWorkspace, a *response) {
				catalog, err := integration.Builtin()
				if err != nil {
					w.t.Fatal(err)
				}
				ids := a.column("id")
				if !slices.IsSorted(ids) || len(ids) != len(catalog.List()) {
					w.t.Errorf("the integrations are %v", ids)
				}
				for _, item := range a.items() {
					wantKeys(w.t, item, keys)
				}
			},
		},
		{
			name:    "an integration lists its operations",
			request: "GET /v1/integrations/telegram", scope: "read", status: 200,
			contains: `{"connection": "telegram"}`,
			after: func(w *testWorkspace, a *response) {
				var got struct {
					Operations []struct{ Action, Title string }
				}
				if err := json.Unmarshal(a.body, &got); err != nil {
					w.t.Fatal(err)
				}
				if len(got.Operations) == 0 || got.Operations[0].Action != "telegram.send_message" || got.Operations[0].Title != "Send a message" {
					w.t.Errorf("the operations are %+v", got.Operations)
				}
			},
		},
		{
			name:    "an integration lists its triggers",
			request: "GET /v1/integrations/gmail", scope: "read", status: 200,
			contains: `{"triggers": [{"type": "gmail.new_message", "title": "New message", "every": "1m", "deprecated": null}]}`,
		},
		{
			name:    "an icon is an image that is sent again only if it has changed",
			request: "GET /v1/integrations/gmail/icon", scope: "read", status: 200, headers: []string{"Content-Type", "image/svg\\+xml", "ETag", `".+"`},
			after: func(w *testWorkspace, a *response) {
				if problems := integration.CheckIcon(a.body); problems != nil {
					w.t.Error(problems)
				}
				w.call("GET", "/v1/integrations/gmail/icon", "", "If-None-Match", a.header.Get("ETag")).wantStatus(304)
				w.call("GET", "/v1/integrations/slack/icon", "", "If-None-Match", a.header.Get("ETag")).wantStatus(200)
			},
		},
		{name: "the icon of an integration that does not exist", request: "GET /v1/integrations/gmial/icon", status: 404, code: "integration_not_found"},
		{
			name:    "a trigger says what its settings are and what its runs get",
			request: "GET /v1/integrations/gmail/triggers/new_message", scope: "read", status: 200, members: "type title summary every deprecated connection input_schema sample",
			contains: `{"type": "gmail.new_message", "connection": "google", "input_schema": {"properties": {"label": {"type": "string", "default": "INBOX", "x-options": "list_labels"}}}, "sample": {"id": "m1", "subject": "Hello"}}`,
		},
		{
			name:    "a trigger that does not exist",
			request: "GET /v1/integrations/gmail/triggers/new_mesage", scope: "read", status: 404, code: "trigger_not_found",
			contains: `{"error": {"message": "~.*did you mean \"new_message\".*"}}`,
		},
		{name: "a trigger of an integration that does not exist", request: "GET /v1/integrations/gmial/triggers/new_message", status: 404, code: "integration_not_found"},
		{
			name:  "the trigger of a service is checked",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", scope: "write",
			body:   `{"triggers": [{"id": "mail", "type": "gmail.new_message", "connection": "office", "with": {"label": 7}}]}`,
			status: 200, contains: `{"valid": false, "problems": [{"pointer": "/triggers/0/with/label"}, {"pointer": "/triggers/0/connection", "message": "~.*there is no connection.*"}]}`,
		},
		{
			name:    "an operation is an action",
			request: "GET /v1/actions/telegram.send_message", scope: "read", status: 200,
			contains: `{"name": "telegram.send_message", "keywords": ["bot", "chat", "message"], "accepts_connection": true, "integration": "telegram", "input_schema": {"required": ["chat", "text"], "properties": {"text": {"type": "string"}}}}`,
		},
		{
			name:    "an operation that does not exist",
			request: "GET /v1/actions/telegram.send_mesage", scope: "read", status: 404, code: "action_not_found",
			contains: `{"error": {"message": "~.*telegram.send_message.*"}}`,
		},
		{
			name:  "a step with an operation needs a connection",
			setup: setupWorkflow, request: "POST /v1/workflows/$wf/validate", scope: "write",
			body:   `{"steps": [{"id": "send", "uses": "telegram.send_message", "with": {"chat": "1", "text": "Hello"}}]}`,
			status: 200, contains: `{"valid": false, "problems": [{"pointer": "/steps/0/connection", "message": "~.*needs a connection.*"}]}`,
		},
		{
			name:    "the list is read page by page like every list",
			request: "GET /v1/integrations?limit=1", status: 200, contains: `{"data": [{}], "next_cursor": "~.+"}`,
			after: func(w *testWorkspace, a *response) {
				all := w.call("GET", "/v1/integrations?limit=100", "").wantStatus(200).column("id")
				walked := slices.Concat(readPages(w.client, "/v1/integrations?limit=7", "id")...)
				if fmt.Sprint(all) != fmt.Sprint(walked) {
					w.t.Errorf("all are %v, page by page %v", all, walked)
				}
				w.call("GET", "/v1/integrations?category=crm&cursor="+a.str("next_cursor"), "").wantStatus(400, "invalid_cursor")
			},
		},
		{
			name:    "the list can be filtered",
			request: "GET /v1/integrations?category=support", status: 200, contains: `{"data": [{"id": "intercom"}, {"id": "zendesk"}], "next_cursor": null}`,
			after: func(w *testWorkspace, _ *response) {
				for query, want := range map[string]string{
					"text=GitL":                  "gitlab",
					"text=crm":                   "hubspot pipedrive salesforce zoho",
					"text=crm+zo":                "zoho",
					"text=crm&category=commerce": "",
					"text=jira":                  "atlassian jira",
				} {
					ids := w.call("GET", "/v1/integrations?"+query, "").wantStatus(200).column("id")
					if got := strings.Join(ids, " "); got != want {
						w.t.Errorf("%s lists %s, want %s", query, got, want)
					}
				}
			},
		},
		{name: "an unknown category is rejected", request: "GET /v1/integrations?category=things", status: 400, code: "invalid_request"},
		{name: "an unknown parameter is rejected", request: "GET /v1/integrations?kind=x", status: 400, code: "invalid_request"},
		{
			name:    "an integration says what to enter and where it goes",
			request: "GET /v1/integrations/shopify", scope: "read", status: 200, members: keys,
			contains: `{"id": "shopify", "name": "Shopify", "category": "commerce", "hosts": ["{shop}.myshopify.com"],
				"auth": [{"id": "client_credentials", "kind": "oauth2", "consent": false}, {"id": "oauth2", "kind": "oauth2", "consent": true},
					{"id": "api_key", "kind": "api_key", "consent": false, "app_fields": [], "scopes": [], "fields": [
						{"name": "shop", "secret": false, "required": true, "format": "host_label", "example": "my-store", "enum": []},
						{"name": "token", "secret": true, "required": true, "default": null, "pattern": null},
						{"name": "client_secret", "secret": true, "required": false}]}]}`,
		},
		{
			name:    "choices have labels, and learned hosts are shown by their domain",
			request: "GET /v1/integrations/zoho", status: 200,
			after: func(w *testWorkspace, a *response) {
				body := fmt.Sprint(a.object())
				for _, want := range []string{"label:Europe (zoho.eu) value:zoho.eu", "*.zohoapis.eu", "default:zoho.com"} {
					if !strings.Contains(body, want) {
						w.t.Errorf("the response lacks %q: %s", want, body)
					}
				}
			},
		},
		{name: "an unknown integration gets a hint", request: "GET /v1/integrations/slak", status: 404, code: "integration_not_found", contains: `{"error": {"message": "there is no integration \"slak\" (did you mean \"slack\"?)"}}`},
	})
}
