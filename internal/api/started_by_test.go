package api_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestStartedBy(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", failStep)
	w.workflow("child", setStep)
	key := client{t: t, server: w.server, key: w.call("POST", "/v1/api-keys", `{"name": "CI: nightly", "scopes": ["execute", "read"]}`).wantStatus(http.StatusCreated).str("key")}
	ada := w.addUser("operator")
	const byKey = `{"type": "api_key", "id": "~key_.+", "name": "CI: nightly"}`
	byAda := `{"type": "user", "id": "` + ada.id + `", "name": "P. Erson"}`

	for name, test := range map[string]struct {
		start func() *response
		want  string
	}{
		"a key": {
			func() *response {
				return key.call("POST", w.expand("/v1/workflows/$wf/runs"), "", "Prefer", "wait=60").wantStatus(http.StatusOK)
			}, byKey,
		},
		"a person": {
			func() *response {
				return ada.call("POST", w.expand("/ui/v1/workflows/$wf/runs"), "", "Prefer", "wait=60").wantStatus(http.StatusOK)
			}, byAda,
		},
	} {
		started := test.start()
		w.names["run"] = started.str("id")
		wantContains(t, started.json(), `{"trigger": {"type": "manual"}, "started_by": `+test.want+`}`)
		wantContains(t, w.call("GET", "/v1/runs/$run", "").json(), `{"started_by": `+test.want+`}`)
		wantContains(t, w.call("GET", "/v1/runs?text=$run", "").json(), `{"data": [{"started_by": `+test.want+`}]}`)
		t.Log(name)
	}
	// A retry was started by the caller who retried.
	again := key.call("POST", w.expand("/v1/runs/$run/retry"), "", "Prefer", "wait=60").wantStatus(http.StatusOK)
	wantContains(t, again.json(), `{"started_by": `+byKey+`}`)

	// Steps and triggers are not actors.
	w.workflow("parent", strings.Replace(subStep, "$child", w.names["child"], 1))
	w.runToEnd("above", "parent", "")
	child := w.call("GET", "/v1/workflows/$child/runs", "").items()[0]["id"].(string)
	wantContains(t, w.call("GET", "/v1/runs/"+child, "").json(), `{"trigger": {"type": "run"}, "started_by": null}`)
}
