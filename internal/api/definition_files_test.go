package api_test

import (
	"strings"
	"testing"
)

// unknownFile is the id of a file that does not exist.
const unknownFile = "file_01m7fcp3qae35rw9hmckwyqppc"

// namesFile is a step that passes on the file that it names, with its type.
const (
	namesFile = `{"id": "set", "uses": "data.set", "with": {"values": {"it": {"$file": "$stored"}, "list": [{"$file": "$stored"}], "plain": {"$file": "$stored", "x": 1}}}}`
	kinds     = `{"id": "kinds", "uses": "data.set", "with": {"values": {"of": "${{ type(steps.set.output.it) + type(steps.set.output.plain) }}", "name": "${{ steps.set.output.it.name }}"}}}`
)

func TestFilesInDefinitions(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupStoredFile(w)
	w.workflow("wf", w.expand(namesFile), kinds)
	// The definition stays as it was written.
	wantContains(t, w.call("GET", "/v1/workflows/$wf", "").json(), w.expand(`{"steps": [{"with": {"values": {"it": {"$file": "$stored"}}}}, {}]}`))
	w.call("DELETE", "/v1/files/$stored", "").wantStatus(409, "file_in_use")
	ran := w.runToEnd("run", "wf", "")
	wantContains(t, ran.json(), w.expand(`{"status": "succeeded", "steps": [{"output": {"it": {"$file": "$stored", "name": "hello.txt", "size": 5}, "plain": {"$file": "$stored", "x": 1}}}, {"output": {"of": "filemap", "name": "hello.txt"}}]}`))

	// An old version keeps its files.
	w.patch("wf", `{"steps": []}`)
	w.call("DELETE", "/v1/files/$stored", "").wantStatus(409, "file_in_use")
	wantContains(t, w.call("POST", "/v1/workflows/$wf/versions/2/restore", "").wantStatus(200).json(), `{"version": 4}`)

	// What the run shows keeps its references in previews.
	wantContains(t, w.call("POST", "/v1/expressions/evaluate", `{"run_id": "$run", "expression": "type(steps.set.output.it) + type(steps.set.output.plain)"}`).json(), `{"valid": true, "value": "filemap"}`)
	wantContains(t, w.call("POST", "/v1/expressions/evaluate", `{"run_id": "$run", "expression": "steps.set.output.it"}`).json(), w.expand(`{"valid": true, "value": {"$file": "$stored"}}`))
	wantContains(t, w.call("POST", "/v1/expressions/evaluate", `{"context": {"steps": {"set": {"output": {"it": {"$file": "$stored"}}}}}, "expression": "type(steps.set.output.it)"}`).json(), `{"value": "map"}`)
	wantContains(t, w.call("POST", "/v1/workflows/$wf/steps/kinds/test", `{"run_id": "$run"}`).wantStatus(200).json(), `{"status": "succeeded", "output": {"of": "filemap"}}`)
}

func TestUnknownFilesInDefinitions(t *testing.T) {
	step := strings.ReplaceAll(namesFile, "$stored", unknownFile)
	pointers := []string{"/steps/0/with/values/it", "/steps/0/with/values/list/0"}
	loop := `{"id": "loop", "foreach": "${{ [1] }}", "steps": [` + step + `]}`
	runScenarios(t, []scenario{
		{
			name: "when it is saved", setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"steps": [` + step + `]}`,
			status: 422, code: "workflow_invalid", pointers: pointers, message: `there is no file "` + unknownFile + `"`,
		},
		{name: "in a loop", setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"steps": [` + loop + `]}`, status: 422, code: "workflow_invalid", pointers: []string{"/steps/0/steps/0/with/values/it", "/steps/0/steps/0/with/values/list/0"}},
		{name: "in an import", request: "POST /v1/workflows/import", body: `{"name": "a", "steps": [` + step + `]}`, status: 422, code: "workflow_invalid", pointers: pointers},
		{name: "in a draft", setup: setupWorkflow, request: "POST /v1/workflows/$wf/runs", body: `{"definition": {"steps": [` + step + `]}}`, status: 422, code: "workflow_invalid", pointers: []string{"/definition" + pointers[0], "/definition" + pointers[1]}},
		{name: "in a pin", setup: setupWorkflow, request: "PATCH /v1/workflows/$wf", body: `{"pinned": {"set": {"a": [{"$file": "` + unknownFile + `"}]}}}`, status: 400, code: "invalid_request", pointers: []string{"/pinned/set/a/0"}, message: "there is no file"},
		{name: "where no file is expected", setup: func(w *testWorkspace) { setupWorkflow(w); setupStoredFile(w) }, request: "PATCH /v1/workflows/$wf", body: `{"steps": [{"id": "log", "uses": "log.write", "with": {"message": {"$file": "$stored"}}}]}`, status: 422, code: "workflow_invalid", pointers: []string{"/steps/0/with/message"}, message: "not a file"},
	})
}

func TestFilesInDrafts(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupStoredFile(w)
	w.workflow("wf")
	draft := w.expand(`"definition": {"steps": [` + namesFile + `, ` + kinds + `]}`)
	w.names["run"] = w.runDraft(`{` + draft + `}`).str("id")
	wantContains(t, w.call("GET", "/v1/runs/$run", "").json(), `{"status": "succeeded", "steps": [{}, {"output": {"of": "filemap"}}]}`)
	w.call("DELETE", "/v1/files/$stored", "").wantStatus(409, "file_in_use")

	// The output of the run is pinned, as the builder does it.
	output := `{"it": {"$file": "$stored", "name": "hello.txt", "type": "text/plain", "size": 5, "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}, "plain": {"$file": "$stored", "name": "other"}}`
	w.patch("wf", w.expand(`{"pinned": {"set": `+output+`}}`))
	pinned := w.runDraft(`{"use_pinned": true, ` + draft + `}`)
	wantContains(t, pinned.json(), w.expand(`{"steps": [{"pinned": true, "output": `+output+`}, {"output": {"of": "filemap", "name": "hello.txt"}}]}`))
	wantContains(t, w.call("POST", "/v1/expressions/evaluate", `{"workflow_id": "$wf", "expression": "type(steps.set.output.it) + type(steps.set.output.plain)"}`).json(), `{"value": "filemap"}`)

	// A pin that names a file gets the reference.
	wantContains(t, w.patch("wf", w.expand(`{"pinned": {"set": {"it": {"$file": "$stored"}, "plain": {}}}}`)).json(), w.expand(`{"pinned": {"set": {"it": {"$file": "$stored", "name": "hello.txt"}}}}`))
	wantContains(t, w.runDraft(`{"use_pinned": true, `+draft+`}`).json(), `{"steps": [{}, {"output": {"of": "filemap"}}]}`)
	wantContains(t, w.runDraft(`{"use_pinned": true, "pinned": {"set": {"it": {"$file": "`+w.names["stored"]+`"}, "plain": {}}}, `+draft+`}`).json(), `{"steps": [{}, {"output": {"of": "filemap"}}]}`)
	w.patch("wf", `{"pinned": null}`)
}

// Without the scope write, nobody turns data into a reference.
func TestNamingFilesNeedsWrite(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupStoredFile(w)
	w.workflow("wf", setStep, kinds)
	runner := w.withScopes("execute", "read")
	pins := w.expand(`"use_pinned": true, "pinned": {"set": {"it": {"$file": "$stored", "name": "x"}, "plain": {"$file": "$stored"}}}`)
	got := runner.call("POST", w.expand("/v1/workflows/$wf/steps/kinds/test"), `{`+pins+`}`).wantStatus(200)
	wantContains(t, got.json(), `{"output": {"of": "mapmap"}}`)
	runner.call("POST", w.expand("/v1/workflows/$wf/runs"), w.expand(`{"definition": {"steps": [`+namesFile+`]}}`)).wantStatus(403, "insufficient_scope")
	w.call("DELETE", "/v1/files/$stored", "").wantStatus(204)
}
