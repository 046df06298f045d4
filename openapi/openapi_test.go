package openapi_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/openapi"
)

// operation is one operation of the document, with the name of its subtest.
type operation struct {
	name, method string
	*openapi3.Operation
	params openapi3.Parameters // its own and those of its path
}

func (op operation) public() bool { return op.Extensions["x-required-scope"] == "public" }

// publicRoute reports whether the operation is outside the API proper: it takes
// no key and any body, and may return an HTML page.
func (op operation) publicRoute() bool { return op.Extensions["x-door"] == true }

// session reports whether the operation is for people who sign in: it uses a
// session cookie and takes no Idempotency-Key.
func (op operation) session() bool { return op.Extensions["x-session"] == true }

// replays reports whether the operation takes an Idempotency-Key. An upload does not,
// because its body is not kept to be compared.
func (op operation) replays() bool {
	upload := op.OperationID == "uploadFile" || op.OperationID == "createUpload"
	return op.method == http.MethodPost && !op.publicRoute() && !op.session() && !upload
}

func (op operation) takes(in, name string) bool {
	return op.params.GetByInAndName(in, name) != nil
}

var document = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(openapi.YAML) })

// load returns the document, which all tests share and none changes.
func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return doc
}

// operations returns the operations that clients call, notifications those that the service calls.
func operations(doc *openapi3.T) []operation    { return collect(doc.Paths.Map()) }
func notifications(doc *openapi3.T) []operation { return collect(doc.Webhooks) }

func collect(items map[string]*openapi3.PathItem) []operation {
	var ops []operation
	for _, path := range slices.Sorted(maps.Keys(items)) {
		for method, op := range items[path].Operations() {
			params := slices.Concat(items[path].Parameters, op.Parameters)
			ops = append(ops, operation{method + " " + path, method, op, params})
		}
	}
	return ops
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc := load(t)
	if !doc.IsOpenAPI31OrLater() {
		t.Errorf("openapi = %q, want 3.1", doc.OpenAPI)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableMultiError()); err != nil {
		t.Fatal(err)
	}
}

func TestJSONMatchesYAML(t *testing.T) {
	t.Parallel()
	got, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := openapi3.NewLoader().LoadFromData(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(t, load(t)), plain(t, fromJSON)); diff != "" {
		t.Errorf("JSON differs from YAML (-yaml +json):\n%s", diff)
	}
	again, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, again) {
		t.Error("the second call returns a different document")
	}
}

func plain(t *testing.T, doc *openapi3.T) any {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOperationsAreDescribed(t *testing.T) {
	t.Parallel()
	doc := load(t)
	seen := map[string]string{}
	for _, op := range slices.Concat(operations(doc), notifications(doc)) {
		if op.OperationID == "" || op.Summary == "" || op.Description == "" {
			t.Errorf("%s: operationId, summary and description must not be empty", op.name)
		}
		if other, dup := seen[op.OperationID]; dup {
			t.Errorf("%s: operationId %s is that of %s", op.name, op.OperationID, other)
		}
		seen[op.OperationID] = op.name
		if len(op.Tags) == 0 {
			t.Errorf("%s: no tags", op.name)
		}
		for _, tag := range op.Tags {
			if doc.Tags.Get(tag) == nil {
				t.Errorf("%s: tag %q is not declared", op.name, tag)
			}
		}
	}
}

func TestOperationsDeclareAScope(t *testing.T) {
	t.Parallel()
	for _, op := range operations(load(t)) {
		scope, _ := op.Extensions["x-required-scope"].(string)
		if !slices.Contains([]string{"read", "write", "execute", "admin", "public", "session"}, scope) || scope == "session" && !op.session() {
			t.Errorf("%s: x-required-scope = %q", op.name, scope)
		}
		if open := op.Security != nil && len(*op.Security) == 0; open != op.public() {
			t.Errorf("%s: x-required-scope = %q, but security: [] is %t", op.name, scope, open)
		}
		// The callback of a consent completes a POST; services can only redirect there.
		// Whoever uploads asks how much has arrived.
		exempt := op.OperationID == "finishConsent" || op.OperationID == "getUpload"
		if op.method == http.MethodGet && (scope == "write" || scope == "execute") && !exempt {
			t.Errorf("%s: a GET requires the scope %s", op.name, scope)
		}
	}
}

func TestExamplesMatchTheirSchemas(t *testing.T) {
	t.Parallel()
	doc := load(t)
	for _, op := range slices.Concat(operations(doc), notifications(doc)) {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			if op.RequestBody != nil {
				checkExamples(t, "request", op.RequestBody.Value.Content, openapi3.VisitAsRequest())
			}
			for status, res := range op.Responses.Map() {
				checkExamples(t, status, res.Value.Content, openapi3.VisitAsResponse())
			}
		})
	}
}

func checkExamples(t *testing.T, where string, content openapi3.Content, direction openapi3.SchemaValidationOption) {
	t.Helper()
	for mediaType, media := range content {
		values := map[string]any{}
		if media.Example != nil {
			values["example"] = media.Example
		}
		for name, example := range media.Examples {
			values[name] = example.Value.Value
		}
		if len(values) == 0 {
			t.Errorf("%s %s: no example", where, mediaType)
		}
		for name, value := range values {
			err := media.Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020(), openapi3.MultiErrors(), direction)
			if err != nil {
				t.Errorf("%s %s, example %s: %v", where, mediaType, name, err)
			}
		}
	}
}

func TestResponsesCarryTheirHeaders(t *testing.T) {
	t.Parallel()
	always := []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	byStatus := map[string]string{"201": "Location", "401": "WWW-Authenticate", "429": "Retry-After", "503": "Retry-After"}
	for _, op := range operations(load(t)) {
		for status, res := range op.Responses.Map() {
			want := always
			if name, ok := byStatus[status]; ok && (!op.session() || name == "Retry-After") {
				want = append(slices.Clone(always), name)
			}
			for _, name := range want {
				if h := res.Value.Headers[name]; h == nil || !h.Value.Required {
					t.Errorf("%s %s: header %s is not required", op.name, status, name)
				}
			}
		}
	}
}

func TestOperationsListTheirStatuses(t *testing.T) {
	t.Parallel()
	for _, op := range operations(load(t)) {
		want := []string{"500"}
		if op.publicRoute() {
			want = append(want, "404", "429")
		}
		switch {
		case op.OperationID == "finishConsent": // redirects a browser also after a failure
			want = append(want, "302")
		case !op.public():
			want = append(want, "401", "403", "429", "503")
		}
		if len(op.params) > 0 && op.OperationID != "finishConsent" || op.method != http.MethodGet {
			want = append(want, "400")
		}
		if strings.Contains(op.name, "{") && op.method != http.MethodPut { // PUT creates what is missing
			want = append(want, "404")
		}
		if op.method != http.MethodGet && op.method != http.MethodOptions && !op.publicRoute() {
			want = append(want, "413", "415", "507")
		}
		if op.replays() {
			want = append(want, "409", "422")
		}
		if op.method != http.MethodGet && op.session() {
			want = append(want, "403", "429")
		}
		if op.takes("header", "If-Match") {
			want = append(want, "412")
		}
		for _, status := range want {
			if op.Responses.Value(status) == nil {
				t.Errorf("%s: status %s is missing", op.name, status)
			}
		}
	}
}

func TestPostsTakeAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, op := range operations(load(t)) {
		if got, want := op.takes("header", "Idempotency-Key"), op.replays(); got != want {
			t.Errorf("%s: takes Idempotency-Key = %t, want %t", op.name, got, want)
		}
		if op.replays() && !op.documents("Idempotent-Replayed") {
			t.Errorf("%s: no 2xx response documents Idempotent-Replayed", op.name)
		}
	}
}

// documents reports whether a 2xx response of the operation can carry the header.
func (op operation) documents(header string) bool {
	for status, res := range op.Responses.Map() {
		if strings.HasPrefix(status, "2") && res.Value.Headers[header] != nil {
			return true
		}
	}
	return false
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	lists := 0
	for _, op := range operations(load(t)) {
		ok := op.Responses.Value("200")
		if ok == nil || !strings.HasPrefix(op.OperationID, "list") {
			continue
		}
		lists++
		schema := ok.Value.Content["application/json"].Schema.Value
		if diff := cmp.Diff([]string{"data", "next_cursor"}, schema.Required); diff != "" {
			t.Errorf("%s: required (-want +got):\n%s", op.name, diff)
		}
		if !op.takes("query", "limit") || !op.takes("query", "cursor") {
			t.Errorf("%s: takes no limit or no cursor", op.name)
		}
	}
	if lists == 0 {
		t.Error("no lists found")
	}
}

// TestErrorCodes checks the codes of each response against the list of all codes.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	doc := load(t)
	codes := doc.Extensions["x-error-codes"].(map[string]any)
	for _, op := range operations(doc) {
		for status, res := range op.Responses.Map() {
			if strings.HasPrefix(status, "2") || status == "304" || res.Value.Content["text/html"] != nil || status == "303" || status == "302" {
				continue
			}
			listed, _ := res.Value.Extensions["x-error-codes"].([]any)
			media := res.Value.Content["application/json"]
			if media == nil || media.Schema.Ref != "#/components/schemas/Error" {
				t.Errorf("%s %s: the body is not an Error", op.name, status)
				continue
			}
			for _, code := range listed {
				entry, _ := codes[code.(string)].(map[string]any)
				if got := fmt.Sprint(entry["status"]); got != status || entry["meaning"] == nil {
					t.Errorf("%s %s: %s is listed with status %s", op.name, status, code, got)
				}
				if media.Examples[code.(string)] == nil {
					t.Errorf("%s %s: no example of %s", op.name, status, code)
				}
			}
			if len(listed) != len(media.Examples) {
				t.Errorf("%s %s: %d codes, %d examples", op.name, status, len(listed), len(media.Examples))
			}
		}
	}
	for code, entry := range codes["in_runs"].(map[string]any) {
		if entry.(map[string]any)["meaning"] == nil {
			t.Errorf("in_runs: %s has no meaning", code)
		}
	}
}

// TestObjectsAreClosed checks that every object either lists its members and allows no others or is explicitly
// free-form, and that members of responses are always present.
func TestObjectsAreClosed(t *testing.T) {
	t.Parallel()
	optional := map[string][]string{
		"Error":             {"details"},
		"ErrorDetail":       {"line", "column"},
		"WorkflowListItem":  {"activity"}, // only with include=activity
		"RunStartedData":    {"draft"},    // absent unless the run executes a draft
		"RunFinishedData":   {"draft"},
		"RunFailedData":     {"draft"},
		"FieldDiff":         {"from", "to"}, // absent if the member is missing, as opposed to null
		"ValidationProblem": {"hint", "line", "column"},
		"RunTrigger":        {"payload_files"}, // absent if there are no references to files
		"RunStep":           {"input_files", "output_files"},
		"StepTested":        {"input_files", "output_files"},
	}
	requests := []string{ // written by clients and returned unchanged
		"AccountPatch", "ApiKeyCreate", "Concurrency", "ConcurrencyPatch", "ConnectionApply", "ConnectionCreate", "ConnectionDefinition", "ConnectionPatch", "ExpressionEvaluate", "ExpressionTerm",
		"InvitationAccept", "MemberPatch", "OAuthAppCreate", "OptionsQuery", "RedeliverRange", "Repeat", "Retry", "RunRetry", "RunStart", "SampleData", "SecretPut", "Settings", "SettingsPatch", "StateKeyPut", "Step", "StepAnswer", "StepTest", "TableColumnCreate", "TableColumnPatch", "TableCreate", "TablePatch", "TableRowCreate", "TableRowPatch", "TemplateUse", "Trigger", "TriggerTest",
		"VariablePut", "Verify", "WebhookCreate", "WebhookPatch", "WebhookTest", "WorkflowCreate", "WorkflowDefinition", "WorkflowImport", "WorkflowPatch", "WorkspaceCreate", "WorkspacePatch",
	}
	for name, ref := range load(t).Components.Schemas {
		visit := func(_ string, ref *openapi3.SchemaRef) error {
			s := ref.Value
			if s.Type == nil || !s.Type.Includes("object") {
				return nil
			}
			extra := s.AdditionalProperties
			if extra.Has == nil && extra.Schema == nil {
				t.Errorf("%s: an object without additionalProperties", name)
			}
			return nil
		}
		if err := ref.WalkSubtree(visit); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(requests, name) || strings.HasPrefix(ref.Value.Description, "The input of `") {
			continue
		}
		for _, s := range []*openapi3.Schema{ref.Value, propertyOf(ref.Value, "error")} {
			for property := range s.Properties {
				if !slices.Contains(s.Required, property) && !slices.Contains(optional[name], property) {
					t.Errorf("%s: %s is not required", name, property)
				}
			}
		}
	}
}

func propertyOf(s *openapi3.Schema, name string) *openapi3.Schema {
	if p := s.Properties[name]; p != nil {
		return p.Value
	}
	return &openapi3.Schema{}
}

// TestSchemasReject checks that the validator the other tests rely on rejects bad values.
func TestSchemasReject(t *testing.T) {
	t.Parallel()
	doc := load(t)
	for _, tc := range []struct{ schema, value string }{
		{"Error", `{"error": {"code": "not_found", "message": "m"}}`},
		{"Error", `{"error": {"code": "NotFound", "message": "m", "request_id": "r"}}`},
		{"Error", `{"error": {"code": "not_found", "message": "m", "request_id": "r", "inner": "x"}}`},
		{"Error", `{"error": {"code": "not_found", "message": "m", "request_id": "r",
			"details": [{"pointer": "a", "message": "m"}]}}`},
		{"WorkflowCreate", `{"name": ""}`},
		{"WorkflowCreate", `{"name": "a", "steps": []}`},
		{"WorkflowPatch", `{"steps": null}`},
		{"WorkflowPatch", `{"state": "deleted"}`},
		{"WorkflowPatch", `{"layout": {"a": [1]}}`},
		{"WorkflowPatch", `{"layout": {"A b": [1, 2]}}`},
		{"WorkflowDefinition", `{"steps": [{"id": "a"}]}`},
		{"WorkflowDefinition", `{"steps": [{"id": "A", "uses": "data.set", "with": {"values": {}}}]}`},
		{"WorkflowDefinition", `{"steps": [{"id": "a", "uses": "data.set"}]}`},
		{"WorkflowDefinition", `{"steps": [{"id": "a", "uses": "data.set", "with": {"value": {}}}]}`},
		{"WorkflowDefinition", `{"steps": [{"id": "a", "uses": "flow.wait", "with": {"for": "1s", "until": "x"}}]}`},
		{"WorkflowDefinition", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}}, "timeout": "soon"}]}`},
		{"WorkflowDefinition", `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {}},
			"retry": {"max_attempts": 21}}]}`},
		{"RunListItem", `{"id": "run_01m7f9hb3mevr88y42wdngtn4v", "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm",
			"status": "running", "started_at": "2026-11-15T09:45:10.004Z", "finished_at": null, "duration_ms": null}`},
		{"RunListItem", `{"id": "run_01m7f9hb3mevr88y42wdngtn4v", "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm",
			"status": "queued", "started_at": "2026-11-15T09:45:10.004Z", "finished_at": null, "duration_ms": 1}`},
		{"RunListItem", `{"id": "run_01m7f9hb3mevr88y42wdngtn4v", "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm",
			"status": "running", "started_at": "2026-11-15T09:45:10Z", "finished_at": null, "duration_ms": 1}`},
		{"RunListItem", `{"id": "run_01m7f9hb3mevr88y42wdngtn4v", "workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm",
			"status": "running", "started_at": "2026-11-15T09:45:10.004Z", "finished_at": null, "duration_ms": 1, "steps": []}`},
		{"RunStart", `{"payload": []}`},
		{"WebhookCreate", `{"url": "https://example.com", "events": []}`},
		{"WebhookCreate", `{"url": "https://example.com", "events": ["run.paused"]}`},
		{"ApiKeyCreate", `{"name": "a", "scopes": ["root"]}`},
		{"WorkspaceCreate", `{"name": "a", "requests_per_minute": 5}`},
		{"WorkspaceCreate", `{"name": "a", "plan": "pro", "requests_per_minute": 5}`},
		{"WorkspaceCreate", `{"name": "a", "plan": "enterprise"}`},
	} {
		var value any
		if err := json.Unmarshal([]byte(tc.value), &value); err != nil {
			t.Fatal(err)
		}
		schema := doc.Components.Schemas[tc.schema].Value
		if schema.VisitJSON(value, openapi3.EnableJSONSchema2020()) == nil {
			t.Errorf("%s accepts %s", tc.schema, tc.value)
		}
	}
}

func TestSignatureExample(t *testing.T) {
	t.Parallel()
	example := load(t).Extensions["x-signature-example"].(map[string]any)
	secret, body := example["signing_secret"].(string), example["body"].(string)
	headers := example["headers"].(map[string]any)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	stamp := headers["webhook-timestamp"].(string)
	if _, err := strconv.ParseInt(stamp, 10, 64); err != nil {
		t.Error(err)
	}
	want := map[string]any{
		"X-Service-Signature": "sha256=" + hex.EncodeToString(sign([]byte(secret), body)),
		"webhook-id":          headers["webhook-id"],
		"webhook-timestamp":   stamp,
		"webhook-signature": "v1," + base64.StdEncoding.EncodeToString(
			sign(raw, headers["webhook-id"].(string)+"."+stamp+"."+body)),
	}
	if diff := cmp.Diff(want, headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
