package api_test

import (
	"strings"
	"testing"
)

// A reference in the payload of an event or in a signed call is data, and knowing the id
// of a file gives nobody its bytes.
func TestReferencesFromOutsideGiveNoAccess(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	setupStoredFile(w)
	forged := w.expand(`{"$file": "$stored", "name": "a", "type": "text/plain", "size": 5, "sha256": "b"}`)
	kind := `{"id": "kind", "uses": "data.set", "with": {"values": {"of": "${{ type(trigger.payload.f) }}"}}}`

	w.workflow("event", kind)
	w.patch("event", `{"triggers": [{"id": "failures", "type": "event", "events": ["run.failed"]}]}`)
	w.names["fired"] = w.call("POST", "/v1/workflows/$event/triggers/failures/test", `{"payload": {"f": `+forged+`}}`).wantStatus(201).str("id")
	wantContains(t, w.waitForStatus("fired", "succeeded").json(), `{"trigger": {"type": "event"}, "steps": [{"output": {"of": "map"}}]}`)

	w.call("PUT", "/v1/secrets/hook_secret", `{"value": "s3cr3t-of-the-hook"}`)
	path := w.activeHook("signed", `"verify": {"scheme": "github", "secret": "${{ secrets.hook_secret }}"}`, kind)
	body := `{"f": ` + forged + `}`
	w.names["called"] = hookCaller(w).call("POST", path, body, "Content-Type", "application/json", "X-Hub-Signature-256", "sha256="+sign("s3cr3t-of-the-hook", body)).wantStatus(202).str("run_id")
	wantContains(t, w.waitForStatus("called", "succeeded").json(), `{"steps": [{"output": {"of": "map"}}]}`)

	// Another workspace can hold the same data, but gets no bytes for it.
	other.workflow("wf", strings.ReplaceAll(kind, "type(trigger.payload.f)", "trigger.payload.f"))
	other.runToEnd("run", "wf", `{"payload": {"f": `+forged+`}}`)
	other.call("GET", "/v1/files/"+w.names["stored"], "").wantStatus(404, "file_not_found")
	w.withScopes("execute", "write").call("GET", w.expand("/v1/files/$stored"), "").wantStatus(403, "insufficient_scope")
	w.call("DELETE", "/v1/files/$stored", "").wantStatus(204) // nothing refers to it
}
