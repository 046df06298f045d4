package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/uid"
)

// givenSecret makes a secret that no other workspace has.
func givenSecret(w *world) {
	w.t.Helper()
	w.names["secret"] = uid.New("secret")
	w.call("PUT", "/v1/secrets/$secret", `{"value": "the value of $secret"}`).want(http.StatusCreated)
}

// givenVariable makes a variable that no other workspace has.
func givenVariable(w *world) {
	w.t.Helper()
	w.names["variable"] = uid.New("variable")
	w.call("PUT", "/v1/variables/$variable", `{"value": {"region": "eu"}}`).want(http.StatusCreated)
}

const secretKeys = "name created_at created_by updated_at updated_by"

func TestSecrets(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a new secret is created, and shown without its value",
			call: "PUT /v1/secrets/shop_token", as: "write", body: `{"value": "s3cret-value"}`, status: 201, keys: secretKeys,
			headers: []string{"Location", "/v1/secrets/shop_token"}, audit: "secret.created",
			answer: `{"name": "shop_token", "created_by": "~key_.*", "updated_by": "~key_.*"}`,
			then: func(w *world, a *answer) {
				if a.text("created_at") != a.text("updated_at") {
					w.t.Errorf("got %s", a.body)
				}
			},
		},
		{
			name:  "the value of a secret can be replaced",
			given: givenSecret, call: "PUT /v1/secrets/$secret", as: "write", body: `{"value": "another value"}`, status: 200, keys: secretKeys,
			headers: []string{"Location", ""}, audit: "secret.updated", answer: `{"name": "$secret"}`,
			then: func(w *world, a *answer) {
				if a.text("created_by") == a.text("updated_by") || a.text("created_at") > a.text("updated_at") {
					w.t.Errorf("got %s", a.body)
				}
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"secrets": 1}}`)
			},
		},
		{
			name:  "a secret is read without its value",
			given: givenSecret, call: "GET /v1/secrets/$secret", as: "read", status: 200, keys: secretKeys, answer: `{"name": "$secret"}`,
		},
		{
			name: "secrets are listed by name",
			given: func(w *world) {
				for _, name := range []string{"b", "a", "Z", "_"} {
					w.call("PUT", "/v1/secrets/"+name, `{"value": "value"}`).want(201)
				}
			},
			call: "GET /v1/secrets", as: "read", status: 200, keys: "data next_cursor",
			answer: `{"data": [{"name": "Z"}, {"name": "_"}, {"name": "a"}, {"name": "b"}], "next_cursor": null}`,
		},
		{
			name:  "a deleted secret is gone, and its name is free",
			given: givenSecret, call: "DELETE /v1/secrets/$secret", as: "write", status: 204, audit: "secret.deleted",
			then: func(w *world, _ *answer) {
				w.call("GET", "/v1/secrets/$secret", "").want(404, "secret_not_found")
				w.call("DELETE", "/v1/secrets/$secret", "").want(404, "secret_not_found")
				w.call("PUT", "/v1/secrets/$secret", `{"value": "again"}`).want(201)
			},
		},
		{
			name:  "the case of a name counts",
			given: givenSecret, call: "GET /v1/secrets/SECRET", status: 404, code: "secret_not_found", says: "SECRET",
		},
		{
			name:  "a variable of the same name is something else",
			given: givenSecret, call: "GET /v1/variables/$secret", status: 404, code: "variable_not_found", says: "$secret",
		},
		{name: "the value is required", call: "PUT /v1/secrets/a", body: `{}`, loose: true, status: 400, code: "invalid_request", points: []string{"/value"}},
		{name: "the value must not be null", call: "PUT /v1/secrets/a", body: `{"value": null}`, status: 400, code: "invalid_request", points: []string{"/value"}},
		{name: "the value must be text", call: "PUT /v1/secrets/a", body: `{"value": 12345}`, status: 400, code: "invalid_request", points: []string{"/value"}},
		{name: "a value of three characters cannot be masked", call: "PUT /v1/secrets/a", body: `{"value": "äöü"}`, status: 400, code: "invalid_request", points: []string{"/value"}, says: "at least 4 characters"},
		{name: "a value of four characters is fine", call: "PUT /v1/secrets/a", body: `{"value": "äöüß"}`, status: 201, audit: "secret.created"},
		{name: "a value has no NUL", call: "PUT /v1/secrets/a", body: `{"value": "abc\u0000d"}`, status: 400, code: "invalid_request", points: []string{"/value"}, says: "NUL"},
		{name: "a value of 64 KiB is fine", call: "PUT /v1/secrets/a", body: `{"value": "` + strings.Repeat("x", 64<<10) + `"}`, status: 201, audit: "secret.created"},
		{name: "a larger value is refused", call: "PUT /v1/secrets/a", body: `{"value": "` + strings.Repeat("x", 64<<10+1) + `"}`, status: 400, code: "invalid_request", points: []string{"/value"}, says: "65536"},
		{name: "nothing else can be set", call: "PUT /v1/secrets/a", body: `{"value": "abcd", "name": "b"}`, status: 400, code: "invalid_request", points: []string{"/name"}},
	})
}

func TestVariables(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a new variable is created and shown",
			call: "PUT /v1/variables/region", as: "write", body: `{"value": "eu"}`, status: 201, keys: secretKeys + " value",
			headers: []string{"Location", "/v1/variables/region"}, answer: `{"name": "region", "value": "eu"}`, audit: "variable.created",
		},
		{
			name:  "the value of a variable can be replaced by one of another type",
			given: givenVariable, call: "PUT /v1/variables/$variable", as: "write", body: `{"value": [1, 2.50, {"a": null}, 12345678901234567890]}`, status: 200,
			answer: `{"name": "$variable", "value": [1, 2.50, {"a": null}, 12345678901234567890]}`, audit: "variable.updated",
			then: func(w *world, a *answer) {
				wantContains(w.t, w.call("GET", "/v1/variables/$variable", "").json(), `{"value": [1, 2.50, {"a": null}, 12345678901234567890]}`)
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"variables": 1, "variable_bytes": 40}}`)
			},
		},
		{
			name: "variables are listed by name, with their values",
			given: func(w *world) {
				w.call("PUT", "/v1/variables/b", `{"value": null}`).want(201)
				w.call("PUT", "/v1/variables/a", `{"value": {"x": 1}}`).want(201)
			},
			call: "GET /v1/variables", as: "read", status: 200, keys: "data next_cursor",
			answer: `{"data": [{"name": "a", "value": {"x": 1}}, {"name": "b", "value": null}], "next_cursor": null}`,
		},
		{
			name:  "a deleted variable is gone",
			given: givenVariable, call: "DELETE /v1/variables/$variable", as: "write", status: 204, audit: "variable.deleted",
			then: func(w *world, _ *answer) {
				w.call("GET", "/v1/variables/$variable", "").want(404, "variable_not_found")
				w.call("DELETE", "/v1/variables/$variable", "").want(404, "variable_not_found")
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"variables": 0, "variable_bytes": 0}}`)
			},
		},
		{name: "the value is required", call: "PUT /v1/variables/a", body: `{}`, loose: true, status: 400, code: "invalid_request", points: []string{"/value"}},
		{name: "a value of 64 KiB is fine", call: "PUT /v1/variables/a", body: `{"value": "` + strings.Repeat("x", 64<<10-2) + `"}`, status: 201, audit: "variable.created"},
		{name: "a larger value is refused", call: "PUT /v1/variables/a", body: `{"value": "` + strings.Repeat("x", 64<<10-1) + `"}`, status: 400, code: "invalid_request", points: []string{"/value"}, says: "65536"},
		{name: "a value is nested at most as deep as a body", call: "PUT /v1/variables/a", body: `{"value": ` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, status: 400, code: "invalid_request"},
		{name: "a name is not repeated in a value", call: "PUT /v1/variables/a", body: `{"value": {"a": 1, "a": 2}}`, status: 400, code: "invalid_json"},
	})
}

// A name has to fit into an expression.
func TestNamesOfSecretsAndVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "_", "A9_z", "true", "in", strings.Repeat("x", 63)} {
		for _, kind := range []string{"secrets", "variables"} {
			w.call("PUT", "/v1/"+kind+"/"+name, `{"value": "abcd"}`).want(201)
			w.call("GET", "/v1/"+kind+"/"+name, "").want(200)
		}
		a := w.call("POST", "/v1/expressions/evaluate", fmt.Sprintf(`{"expression": "vars.%s + secrets.%s"}`, name, name)).want(200)
		wantContains(t, a.json(), `{"valid": true, "value": "abcd***"}`)
	}
	for _, name := range []string{"9a", "a-b", "a.b", "a b", "ä", "%", "'", "a\n", "\x00", "$wf", strings.Repeat("x", 64), "<b>"} {
		for _, kind := range []string{"secrets", "variables"} {
			path := "/v1/" + kind + "/" + url.PathEscape(name)
			a := w.call("PUT", path, `{"value": "abcd"}`).want(400, "invalid_request")
			if !strings.Contains(a.message(), "name") {
				t.Errorf("%q: %s", name, a.body)
			}
			w.call("GET", path, "").want(404)
			w.call("DELETE", path, "").want(404)
		}
	}
}

// What one workspace puts under a name leaves that of another alone.
func TestNamesBelongToAWorkspace(t *testing.T) {
	t.Parallel()
	one, two := newWorld(t), newWorld(t)
	one.call("PUT", "/v1/variables/region", `{"value": "eu"}`).want(201)
	two.call("PUT", "/v1/variables/region", `{"value": "us"}`).want(201)
	wantContains(t, one.call("GET", "/v1/variables/region", "").json(), `{"value": "eu"}`)
	two.call("DELETE", "/v1/variables/region", "").want(204)
	one.call("PUT", "/v1/secrets/token", `{"value": "abcd"}`).want(201)
	two.call("PUT", "/v1/secrets/token", `{"value": "efgh"}`).want(201)
	two.call("DELETE", "/v1/secrets/token", "").want(204)
	one.call("GET", "/v1/secrets/token", "").want(200)
	wantContains(t, one.call("POST", "/v1/expressions/evaluate", `{"expression": "vars.region"}`).json(), `{"value": "eu"}`)
	wantContains(t, two.call("POST", "/v1/expressions/evaluate", `{"expression": "vars.region"}`).json(), `{"value": null}`)
}

func TestLimitsOfSecretsAndVariables(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newWorld(t)
	for i := range 100 {
		w.call("PUT", fmt.Sprintf("/v1/secrets/s%d", i), `{"value": "abcd"}`).want(201)
		w.call("PUT", fmt.Sprintf("/v1/variables/v%d", i), `{"value": 1}`).want(201)
	}
	for i := range 16 {
		w.call("PUT", fmt.Sprintf("/v1/variables/v%d", i), `{"value": "`+strings.Repeat("x", 64<<10-10)+`"}`).want(200)
	}
	s.operator(t).call("PATCH", "/v1/workspaces/"+w.id, `{"plan": "free"}`).want(200)
	s.restart(t) // forgets what was used of this minute
	for kind, most := range map[string]string{"secrets": "100", "variables": "100"} {
		a := w.call("PUT", "/v1/"+kind+"/one_more", `{"value": "abcd"}`).want(403, "plan_limit_exceeded")
		if !strings.Contains(a.message(), most) {
			t.Errorf("the message is %s", a.message())
		}
	}
	w.call("PUT", "/v1/secrets/s0", `{"value": "efgh"}`).want(200)
	w.call("PUT", "/v1/variables/v0", `{"value": 2}`).want(200)
	w.call("PUT", "/v1/variables/v0", `{"value": "`+strings.Repeat("x", 64<<10-10)+`"}`).want(200)
	a := w.call("PUT", "/v1/variables/v20", `{"value": "`+strings.Repeat("x", 200)+`"}`).want(403, "plan_limit_exceeded")
	if !strings.Contains(a.message(), "1048576 bytes") {
		t.Errorf("the message is %s", a.message())
	}
}

// References are checked when a workflow is saved, and not again afterwards.
func TestReferences(t *testing.T) {
	const call = `{"id": "a", "uses": "http.request", "with": {"url": "https://example.com", "headers": {"x": "${{ secrets.token }}"}}}`
	token := func(w *world) {
		givenWorkflow(w)
		w.call("PUT", "/v1/secrets/token", `{"value": "abcd"}`).want(201)
	}
	runScenarios(t, []scenario{
		{name: "a workflow can refer to a secret", given: token, call: "PATCH /v1/workflows/$wf", body: `{"steps": [` + call + `]}`, status: 200},
		{
			name: "a name that is almost right gets a hint", given: token,
			call: "PATCH /v1/workflows/$wf", body: `{"steps": [` + strings.ReplaceAll(call, "token", "tokn") + `]}`,
			status: 422, code: "workflow_invalid", points: []string{"/steps/0/with/headers/x"}, says: `did you mean "token"?`,
		},
		{
			name: "validating looks at the names too", given: token,
			call: "POST /v1/workflows/$wf/validate", body: `{"steps": [` + strings.ReplaceAll(call, "token", "tokn") + `]}`, status: 200,
			answer: `{"valid": false, "problems": [{"pointer": "/steps/0/with/headers/x", "message": "there is no secret \"tokn\"", "hint": "did you mean \"token\"?"}]}`,
		},
		{
			name: "the secret of another workspace does not exist",
			given: func(w *world) {
				token(newWorld(w.t))
				givenWorkflow(w)
			},
			call: "PATCH /v1/workflows/$wf", body: `{"steps": [` + call + `]}`, status: 422, code: "workflow_invalid", points: []string{"/steps/0/with/headers/x"}, says: `there is no secret "token"`,
		},
		{
			name: "a secret can be deleted while a workflow refers to it",
			given: func(w *world) {
				token(w)
				w.patch("wf", `{"steps": [`+call+`]}`)
			},
			call: "DELETE /v1/secrets/token", status: 204, audit: "secret.deleted",
			then: func(w *world, _ *answer) {
				w.patch("wf", `{"name": "Still there"}`)
				w.call("PATCH", "/v1/workflows/$wf", `{"steps": [`+call+`, `+setStep+`]}`).want(422, "workflow_invalid")
			},
		},
	})
}
