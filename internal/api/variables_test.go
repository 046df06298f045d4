package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/uid"
)

// setupSecret creates a secret that no other workspace has.
func setupSecret(w *testWorkspace) {
	w.t.Helper()
	w.names["secret"] = uid.New("secret")
	w.call("PUT", "/v1/secrets/$secret", `{"value": "the value of $secret"}`).wantStatus(http.StatusCreated)
}

// setupVariable creates a variable that no other workspace has.
func setupVariable(w *testWorkspace) {
	w.t.Helper()
	w.names["variable"] = uid.New("variable")
	w.call("PUT", "/v1/variables/$variable", `{"value": {"region": "eu"}}`).wantStatus(http.StatusCreated)
}

const secretKeys = "name created_at created_by updated_at updated_by"

func TestSecrets(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "a new secret is created, and shown without its value",
			request: "PUT /v1/secrets/shop_token", scope: "write", body: `{"value": "s3cret-value"}`, status: 201, members: secretKeys,
			headers: []string{"Location", "/v1/secrets/shop_token"}, audit: "secret.created",
			contains: `{"name": "shop_token", "created_by": "~key_.*", "updated_by": "~key_.*"}`,
			after: func(w *testWorkspace, a *response) {
				if a.str("created_at") != a.str("updated_at") {
					w.t.Errorf("got %s", a.body)
				}
			},
		},
		{
			name:  "the value of a secret can be replaced",
			setup: setupSecret, request: "PUT /v1/secrets/$secret", scope: "write", body: `{"value": "another value"}`, status: 200, members: secretKeys,
			headers: []string{"Location", ""}, audit: "secret.updated", contains: `{"name": "$secret"}`,
			after: func(w *testWorkspace, a *response) {
				if a.str("created_by") == a.str("updated_by") || a.str("created_at") > a.str("updated_at") {
					w.t.Errorf("got %s", a.body)
				}
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"secrets": 1}}`)
			},
		},
		{
			name:  "a secret is read without its value",
			setup: setupSecret, request: "GET /v1/secrets/$secret", scope: "read", status: 200, members: secretKeys, contains: `{"name": "$secret"}`,
		},
		{
			name: "secrets are listed by name",
			setup: func(w *testWorkspace) {
				for _, name := range []string{"b", "a", "Z", "_"} {
					w.call("PUT", "/v1/secrets/"+name, `{"value": "value"}`).wantStatus(201)
				}
			},
			request: "GET /v1/secrets", scope: "read", status: 200, members: "data next_cursor",
			contains: `{"data": [{"name": "Z"}, {"name": "_"}, {"name": "a"}, {"name": "b"}], "next_cursor": null}`,
		},
		{
			name:  "a deleted secret is not found, and its name can be used again",
			setup: setupSecret, request: "DELETE /v1/secrets/$secret", scope: "write", status: 204, audit: "secret.deleted",
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/secrets/$secret", "").wantStatus(404, "secret_not_found")
				w.call("DELETE", "/v1/secrets/$secret", "").wantStatus(404, "secret_not_found")
				w.call("PUT", "/v1/secrets/$secret", `{"value": "again"}`).wantStatus(201)
			},
		},
		{
			name:  "the case of a name counts",
			setup: setupSecret, request: "GET /v1/secrets/SECRET", status: 404, code: "secret_not_found", message: "SECRET",
		},
		{
			name:  "a variable of the same name is something else",
			setup: setupSecret, request: "GET /v1/variables/$secret", status: 404, code: "variable_not_found", message: "$secret",
		},
		{name: "the value is required", request: "PUT /v1/secrets/a", body: `{}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/value"}},
		{name: "the value must not be null", request: "PUT /v1/secrets/a", body: `{"value": null}`, status: 400, code: "invalid_request", pointers: []string{"/value"}},
		{name: "the value must be text", request: "PUT /v1/secrets/a", body: `{"value": 12345}`, status: 400, code: "invalid_request", pointers: []string{"/value"}},
		{name: "a value of three characters cannot be masked", request: "PUT /v1/secrets/a", body: `{"value": "äöü"}`, status: 400, code: "invalid_request", pointers: []string{"/value"}, message: "at least 4 characters"},
		{name: "nothing else can be set", request: "PUT /v1/secrets/a", body: `{"value": "abcd", "name": "b"}`, status: 400, code: "invalid_request", pointers: []string{"/name"}},
	})
}

func TestVariables(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "a new variable is created and shown",
			request: "PUT /v1/variables/region", scope: "write", body: `{"value": "eu"}`, status: 201, members: secretKeys + " value",
			headers: []string{"Location", "/v1/variables/region"}, contains: `{"name": "region", "value": "eu"}`, audit: "variable.created",
		},
		{
			name:  "the value of a variable can be replaced by one of another type",
			setup: setupVariable, request: "PUT /v1/variables/$variable", scope: "write", body: `{"value": [1, 2.50, {"a": null}, 12345678901234567890]}`, status: 200,
			contains: `{"name": "$variable", "value": [1, 2.50, {"a": null}, 12345678901234567890]}`, audit: "variable.updated",
			after: func(w *testWorkspace, a *response) {
				wantContains(w.t, w.call("GET", "/v1/variables/$variable", "").json(), `{"value": [1, 2.50, {"a": null}, 12345678901234567890]}`)
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"variables": 1, "variable_bytes": 40}}`)
			},
		},
		{
			name: "variables are listed by name, with their values",
			setup: func(w *testWorkspace) {
				w.call("PUT", "/v1/variables/b", `{"value": null}`).wantStatus(201)
				w.call("PUT", "/v1/variables/a", `{"value": {"x": 1}}`).wantStatus(201)
			},
			request: "GET /v1/variables", scope: "read", status: 200, members: "data next_cursor",
			contains: `{"data": [{"name": "a", "value": {"x": 1}}, {"name": "b", "value": null}], "next_cursor": null}`,
		},
		{
			name:  "a deleted variable is not found",
			setup: setupVariable, request: "DELETE /v1/variables/$variable", scope: "write", status: 204, audit: "variable.deleted",
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/variables/$variable", "").wantStatus(404, "variable_not_found")
				w.call("DELETE", "/v1/variables/$variable", "").wantStatus(404, "variable_not_found")
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"variables": 0, "variable_bytes": 0}}`)
			},
		},
		{name: "the value is required", request: "PUT /v1/variables/a", body: `{}`, lenient: true, status: 400, code: "invalid_request", pointers: []string{"/value"}},
		{name: "a value is nested at most as deep as a body", request: "PUT /v1/variables/a", body: `{"value": ` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, status: 400, code: "invalid_request"},
		{name: "a name is not repeated in a value", request: "PUT /v1/variables/a", body: `{"value": {"a": 1, "a": 2}}`, status: 400, code: "invalid_json"},
	})
}

// Names must be valid in expressions.
func TestSecretAndVariableNames(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	for _, name := range []string{"a", "_", "A9_z", "true", "in", strings.Repeat("x", 63)} {
		for _, kind := range []string{"secrets", "variables"} {
			w.call("PUT", "/v1/"+kind+"/"+name, `{"value": "abcd"}`).wantStatus(201)
			w.call("GET", "/v1/"+kind+"/"+name, "").wantStatus(200)
		}
		a := w.call("POST", "/v1/expressions/evaluate", fmt.Sprintf(`{"expression": "vars.%s + secrets.%s"}`, name, name)).wantStatus(200)
		wantContains(t, a.json(), `{"valid": true, "value": "abcd***"}`)
	}
	for _, name := range []string{"a-b", "ä", "%", "a\n"} {
		for _, kind := range []string{"secrets", "variables"} {
			path := "/v1/" + kind + "/" + url.PathEscape(name)
			a := w.call("PUT", path, `{"value": "abcd"}`).wantStatus(400, "invalid_request")
			if !strings.Contains(a.message(), "name") {
				t.Errorf("%q: %s", name, a.body)
			}
			w.call("GET", path, "").wantStatus(404)
			w.call("DELETE", path, "").wantStatus(404)
		}
	}
}

// The same name in two workspaces refers to two values.
func TestNamesAreScopedToWorkspace(t *testing.T) {
	t.Parallel()
	one, two := newTestWorkspace(t), newTestWorkspace(t)
	one.call("PUT", "/v1/variables/region", `{"value": "eu"}`).wantStatus(201)
	two.call("PUT", "/v1/variables/region", `{"value": "us"}`).wantStatus(201)
	wantContains(t, one.call("GET", "/v1/variables/region", "").json(), `{"value": "eu"}`)
	two.call("DELETE", "/v1/variables/region", "").wantStatus(204)
	one.call("PUT", "/v1/secrets/token", `{"value": "abcd"}`).wantStatus(201)
	two.call("PUT", "/v1/secrets/token", `{"value": "efgh"}`).wantStatus(201)
	two.call("DELETE", "/v1/secrets/token", "").wantStatus(204)
	one.call("GET", "/v1/secrets/token", "").wantStatus(200)
	wantContains(t, one.call("POST", "/v1/expressions/evaluate", `{"expression": "vars.region"}`).json(), `{"value": "eu"}`)
	wantContains(t, two.call("POST", "/v1/expressions/evaluate", `{"expression": "vars.region"}`).json(), `{"value": null}`)
}

// References are checked only when a workflow is saved.
func TestReferences(t *testing.T) {
	const call = `{"id": "a", "uses": "http.request", "with": {"url": "https://example.com", "headers": {"x": "${{ secrets.token }}"}}}`
	token := func(w *testWorkspace) {
		setupWorkflow(w)
		w.call("PUT", "/v1/secrets/token", `{"value": "abcd"}`).wantStatus(201)
	}
	runScenarios(t, []scenario{
		{name: "a workflow can refer to a secret", audit: "workflow.updated", setup: token, request: "PATCH /v1/workflows/$wf", body: `{"steps": [` + call + `]}`, status: 200},
		{
			name: "a name that is almost right gets a hint", setup: token,
			request: "PATCH /v1/workflows/$wf", body: `{"steps": [` + strings.ReplaceAll(call, "token", "tokn") + `]}`,
			status: 422, code: "workflow_invalid", pointers: []string{"/steps/0/with/headers/x"}, message: `did you mean "token"?`,
		},
		{
			name: "validating looks at the names too", setup: token,
			request: "POST /v1/workflows/$wf/validate", body: `{"steps": [` + strings.ReplaceAll(call, "token", "tokn") + `]}`, status: 200,
			contains: `{"valid": false, "problems": [{"pointer": "/steps/0/with/headers/x", "message": "there is no secret \"tokn\"", "hint": "did you mean \"token\"?"}]}`,
		},
		{
			name: "the secret of another workspace does not exist",
			setup: func(w *testWorkspace) {
				token(newTestWorkspace(w.t))
				setupWorkflow(w)
			},
			request: "PATCH /v1/workflows/$wf", body: `{"steps": [` + call + `]}`, status: 422, code: "workflow_invalid", pointers: []string{"/steps/0/with/headers/x"}, message: `there is no secret "token"`,
		},
		{
			name: "a secret can be deleted while a workflow refers to it",
			setup: func(w *testWorkspace) {
				token(w)
				w.patch("wf", `{"steps": [`+call+`]}`)
			},
			request: "DELETE /v1/secrets/token", status: 204, audit: "secret.deleted",
			after: func(w *testWorkspace, _ *response) {
				w.patch("wf", `{"name": "Still there"}`)
				w.call("PATCH", "/v1/workflows/$wf", `{"steps": [`+call+`, `+setStep+`]}`).wantStatus(422, "workflow_invalid")
			},
		},
	})
}
