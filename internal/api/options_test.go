package api_test

import "testing"

// What a service answers is tested in test/services; these requests are rejected before
// anything is sent.
func TestListOptions(t *testing.T) {
	const slack = `{"name": "team", "integration": "slack", "auth": "bearer", "fields": {"token": "xoxb-1234"}}`
	setup := func(w *testWorkspace) {
		setupConnection(w)
		w.create("slack", "/v1/connections", slack)
		w.create("github", "/v1/connections", `{"name": "code", "integration": "github", "auth": "bearer", "fields": {"token": "ghp_1234"}}`)
	}
	const channel = `{"operation": "slack.post_message", "input": "channel"}`
	runReadOnlyScenarios(t, setup, []scenario{
		{name: "a scope is needed", request: "POST /v1/connections/$slack/options", scope: "read", body: channel, status: 403, code: "insufficient_scope"},
		{name: "another connection", request: "POST /v1/connections/conn_01m7facgqmf46bs8r42wfv2z13/options", scope: "write", body: channel, status: 404, code: "connection_not_found"},
		{name: "a custom connection", request: "POST /v1/connections/$conn/options", body: channel, status: 400, code: "invalid_request", pointers: []string{"/operation"}, message: "needs a connection of Slack"},
		{name: "an operation is required", request: "POST /v1/connections/$slack/options", body: `{"input": "channel"}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/operation"}},
		{name: "an operation or a trigger, not both", request: "POST /v1/connections/$slack/options", body: `{"operation": "slack.post_message", "trigger": "gmail.new_message", "input": "label"}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/trigger"}},
		{name: "an unknown trigger", request: "POST /v1/connections/$slack/options", body: `{"trigger": "gmail.new_mesage", "input": "label"}`, status: 400, code: "invalid_request", pointers: []string{"/trigger"}, message: "gmail.new_message"},
		{name: "a trigger of another service", request: "POST /v1/connections/$slack/options", body: `{"trigger": "gmail.new_message", "input": "label"}`, status: 400, code: "invalid_request", pointers: []string{"/trigger"}, message: "needs a connection of Gmail"},
		{name: "an input is required", request: "POST /v1/connections/$slack/options", body: `{"operation": "slack.post_message"}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/input"}},
		{name: "an unknown operation", request: "POST /v1/connections/$slack/options", body: `{"operation": "slack.post_mesage", "input": "channel"}`, status: 400, code: "invalid_request", pointers: []string{"/operation"}, message: "slack.post_message"},
		{name: "an action that is no operation", request: "POST /v1/connections/$slack/options", body: `{"operation": "http.request", "input": "url"}`, status: 400, code: "invalid_request", pointers: []string{"/operation"}},
		{name: "an unknown input", request: "POST /v1/connections/$slack/options", body: `{"operation": "slack.post_message", "input": "chanel"}`, status: 400, code: "invalid_request", pointers: []string{"/input"}, message: "channel"},
		{name: "an input of its own", request: "POST /v1/connections/$slack/options", body: `{"operation": "slack.post_message", "input": "text"}`, status: 400, code: "invalid_request", pointers: []string{"/input"}, message: "enter a value"},
		{name: "a search where there is none", request: "POST /v1/connections/$slack/options", body: `{"operation": "slack.post_message", "input": "channel", "search": "gen"}`, status: 400, code: "invalid_request", pointers: []string{"/search"}},
		{name: "a list as input", request: "POST /v1/connections/$slack/options", body: `{"operation": "slack.post_message", "input": "channel", "with": []}`, status: 400, code: "invalid_request", pointers: []string{"/with"}},
		{name: "what has to be chosen first", request: "POST /v1/connections/$github/options", body: `{"operation": "github.create_issue", "input": "labels", "with": {}}`, status: 400, code: "invalid_request", pointers: []string{"/with/repository"}, message: "choose Repository first"},
		{name: "what is an expression", request: "POST /v1/connections/$github/options", body: `{"operation": "github.create_issue", "input": "labels", "with": {"repository": "${{ vars.repository }}"}}`, status: 400, code: "invalid_request", pointers: []string{"/with/repository"}, message: "Repository is an expression"},
	})
}
