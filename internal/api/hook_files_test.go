package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/config"
)

// newFileServer starts a server whose steps may call this machine, and a sink that
// returns what it receives as {"type", "text"}.
func newFileServer(t *testing.T) (*testWorkspace, *httptest.Server) {
	t.Helper()
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"type": r.Header.Get("Content-Type"), "text": string(body)})
	}))
	t.Cleanup(sink.Close)
	s := newServer(t, func(c *config.Serve) {
		c.EgressAllow = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
	})
	return s.newTestWorkspace(t), sink
}

// send returns a step that sends a value to the sink.
func send(sink *httptest.Server, id, value string) string {
	return fmt.Sprintf(`{"id": %q, "uses": "http.request", "with": {"url": %q, "method": "POST", "body": "${{ %s }}"}}`, id, sink.URL, value)
}

// form returns a form with files: pairs of a field, or of a field and a file name, and
// the content.
func form(parts ...string) (body, mediaType string) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for i := 0; i+1 < len(parts); i += 2 {
		name, file, isFile := strings.Cut(parts[i], "/")
		var part io.Writer
		if isFile {
			part, _ = w.CreateFormFile(name, file)
		} else {
			part, _ = w.CreateFormField(name)
		}
		_, _ = io.WriteString(part, parts[i+1])
	}
	_ = w.Close()
	return out.String(), w.FormDataContentType()
}

// storedFiles returns how many files and blobs are recorded.
func (s *server) storedFiles(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(s.query(t, `SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM file_blobs)`))
}

func TestHookReceivesFiles(t *testing.T) {
	t.Parallel()
	w, sink := newFileServer(t)
	path := w.activeHook("wf", "", send(sink, "photo", "trigger.payload.photo"), send(sink, "second", "trigger.payload.pages[1]"), send(sink, "all", "trigger.payload"))
	body, media := form("title", "Grüße", "photo/a b.png", "PNG\x00\xff"[:3], "pages/1.txt", "one", "pages/2.txt", "two", "tag", "x", "tag", "y")
	w.names["run"] = hookCaller(w).call("POST", path, body, "Content-Type", media).wantStatus(202).str("run_id")
	ended := w.waitForStatus("run", "succeeded")
	wantContains(t, ended.json(), `{"trigger": {"payload": {"title": "Grüße", "tag": ["x", "y"],
			"photo": {"$file": "~^file_.+", "name": "a b.png", "type": "application/octet-stream", "size": 3},
			"pages": [{"name": "1.txt", "size": 3}, {"name": "2.txt"}]}},
		"steps": [{"output": {"body": {"type": "application/octet-stream", "text": "PNG"}}}, {"output": {"body": {"text": "two"}}}, {"output": {"body": {"type": "application/json"}}}]}`)
	calls := w.call("GET", "/v1/workflows/$wf/triggers/hook/requests", "").wantStatus(200)
	wantContains(t, calls.json(), `{"data": [{"outcome": "started", "size": `+fmt.Sprint(len(body))+`, "payload": {"photo": {"$file": "~^file_.+"}}}]}`)
	if got := w.server.storedFiles(t); got != "[[3 3]]" {
		t.Errorf("stored: %s", got)
	}
	if got := fmt.Sprint(w.server.query(t, `SELECT count(*) FROM file_refs`)); got != "[[6]]" { // the run and the recorded call
		t.Errorf("%s references", got)
	}

	w.names["run"] = hookCaller(w).call("POST", path, "GIF89a", "Content-Type", "image/gif", "Content-Disposition", `attachment; filename="x.gif"`).wantStatus(202).str("run_id")
	wantContains(t, w.call("GET", "/v1/runs/$run", "").json(), `{"trigger": {"payload": {"file": {"name": "x.gif", "type": "image/gif", "size": 6}}}}`)
}

// A call that starts no run leaves no file behind.
func TestHookDiscardsFiles(t *testing.T) {
	t.Parallel()
	w, sink := newFileServer(t)
	w.call("PUT", "/v1/secrets/hook_secret", `{"value": "s3cr3t-of-the-hook"}`)
	signed := w.activeHook("signed", `"verify": {"scheme": "github", "secret": "${{ secrets.hook_secret }}"}, "dedupe": "${{ trigger.payload.id }}"`, send(sink, "a", "trigger.payload.doc"))
	c := hookCaller(w)
	body, media := form("id", "7", "doc/a.txt", "hello")
	for name, signature := range map[string]string{"wrong": sign("another", body), "of a part": sign("s3cr3t-of-the-hook", body[:10])} {
		if a := c.call("POST", signed, body, "Content-Type", media, "X-Hub-Signature-256", "sha256="+signature); a.status != 401 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if got := w.server.storedFiles(t); got != "[[0 0]]" {
		t.Errorf("stored after rejected calls: %s", got)
	}
	right := "sha256=" + sign("s3cr3t-of-the-hook", body)
	w.names["run"] = c.call("POST", signed, body, "Content-Type", media, "X-Hub-Signature-256", right).wantStatus(202).str("run_id")
	wantContains(t, w.waitForStatus("run", "succeeded").json(), `{"steps": [{"output": {"body": {"text": "hello"}}}]}`)
	if a := c.call("POST", signed, body, "Content-Type", media, "X-Hub-Signature-256", right).wantStatus(202); a.object()["duplicate"] != true {
		t.Errorf("got %s", a.body)
	}
	if got := w.server.storedFiles(t); got != "[[1 1]]" {
		t.Errorf("stored after a duplicate: %s", got)
	}

	open := w.activeHook("open", "")
	before, _, _ := strings.Cut(body, "filename")
	for name, test := range map[string]struct {
		body, media, encoding string
		status                int
	}{
		"truncated":           {body[:len(body)-10], media, "", 400},
		"truncated in a file": {body[:strings.Index(body, "hello")+2], media, "", 400},
		"truncated headers":   {before, media, "", 400},
		"no boundary":         {body, "multipart/form-data", "", 400},
		"compressed":          {body, media, "gzip", 415},
		"not a form":          {"hello", media, "", 400},
		"many fields":         {strings.Repeat("--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n", 1001) + "--B--\r\n", "multipart/form-data; boundary=B", "", 400},
	} {
		if a := c.call("POST", open, test.body, "Content-Type", test.media, "Content-Encoding", test.encoding); a.status != test.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	w.patch("open", `{"state": "paused"}`)
	c.call("POST", open, body, "Content-Type", media).wantStatus(404)
	if got := w.server.storedFiles(t); got != "[[1 1]]" {
		t.Errorf("stored in the end: %s", got)
	}
}

func TestHookFileTooLarge(t *testing.T) {
	t.Parallel()
	w := newServer(t).newTestWorkspaceWith(t, `{"name": "Small", "plan": "free"}`)
	path := w.activeHook("wf", "")
	large := strings.Repeat("x", 25<<20+1)
	body, media := form("a/a.bin", large)
	hookCaller(w).call("POST", path, body, "Content-Type", media).wantStatus(413, "file_too_large")
	hookCaller(w).call("POST", path, large, "Content-Type", "image/png").wantStatus(413, "file_too_large")
	body, media = form("a", strings.Repeat("x", 300<<10))
	hookCaller(w).call("POST", path, body, "Content-Type", media).wantStatus(413, "payload_too_large")
	if got := w.server.storedFiles(t); got != "[[0 0]]" {
		t.Errorf("stored: %s", got)
	}
}

func TestHookRespondsWithFile(t *testing.T) {
	t.Parallel()
	w, _ := newFileServer(t)
	path := w.activeHook("wf", `"respond": "result"`, `{"id": "out", "uses": "data.set", "with": {"values": {"response": {"status": 201, "body": "${{ trigger.payload.file }}"}}}}`)
	call := func(body, media string) (http.Header, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", media)
		request.Header.Set("Content-Disposition", `attachment; filename="a.pdf"`)
		response, err := w.server.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		got, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusCreated {
			t.Fatalf("%d %s, %v", response.StatusCode, got, err)
		}
		return response.Header, string(got)
	}
	header, got := call("%PDF-1", "application/pdf")
	if got != "%PDF-1" || header.Get("Content-Type") != "application/pdf" || header.Get("Content-Length") != "6" ||
		header.Get("Content-Disposition") != "inline; filename=a.pdf" || !strings.Contains(header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("got %v %q", header, got)
	}
	header, got = call(`{"file": {"$file": "file_1", "name": "a", "type": "b", "size": 1, "sha256": "c"}}`, "application/json")
	if header.Get("Content-Type") != "application/json" || !strings.Contains(got, "file_1") {
		t.Errorf("got %v %q", header, got)
	}
}

// Runs and tests of triggers are started with files of the workspace.
func TestStartRunWithFiles(t *testing.T) {
	t.Parallel()
	w, sink := newFileServer(t)
	path := w.activeHook("wf", "", send(sink, "a", "trigger.files.photo"))
	body, media := form("photo/a.txt", "hello")
	w.names["run"] = hookCaller(w).call("POST", path, body, "Content-Type", media).wantStatus(202).str("run_id")
	first := w.waitForStatus("run", "succeeded")
	photo := first.object()["trigger"].(map[string]any)["payload"].(map[string]any)["photo"].(map[string]any)
	w.names["file"] = photo["$file"].(string)
	for _, address := range []string{"/v1/workflows/$wf/runs", "/v1/workflows/$wf/triggers/hook/test"} {
		w.names["again"] = w.call("POST", address, `{"payload": {"n": 1}, "files": {"photo": "$file"}}`).wantStatus(201).str("id")
		wantContains(t, w.waitForStatus("again", "succeeded").json(), `{"trigger": {"payload": {"n": 1, "photo": {"$file": "`+w.names["file"]+`"}}}, "steps": [{"output": {"body": {"text": "hello"}}}]}`)
		for body, status := range map[string]int{
			`{"files": {"photo": "file_01m7fe3gv0es8r65rzyjka792g"}}`: 404,
			`{"files": {"photo": "nope"}}`:                            404,
			`{"payload": {"photo": 1}, "files": {"photo": "$file"}}`:  400,
		} {
			if a := w.call("POST", address, body); a.status != status || !strings.Contains(string(a.body), "/files/photo") {
				t.Errorf("%s: %d %s", body, a.status, a.body)
			}
		}
		executor := w.withScopes("execute")
		executor.call("POST", w.expand(address), w.expand(`{"files": {"photo": "$file"}}`)).wantStatus(201)
	}
	// A file of another workspace does not exist.
	other := w.server.newTestWorkspace(t)
	other.workflow("wf", echoStep)
	if a := other.call("POST", "/v1/workflows/$wf/runs", `{"files": {"photo": "`+w.names["file"]+`"}}`); a.status != 404 {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

// A run says which of its values are references to files.
func TestRunsNameTheirFiles(t *testing.T) {
	t.Parallel()
	w, sink := newFileServer(t)
	path := w.activeHook("real", "", send(sink, "send", "trigger.payload.photo"), `{"id": "keep", "uses": "data.set", "with": {"values": {"list": ["${{ trigger.payload.photo }}"], "data": {"$file": "x"}}}}`)
	body, media := form("photo/a.txt", "text", "title", "x")
	w.names["run"] = hookCaller(w).call("POST", path, body, "Content-Type", media).wantStatus(202).str("run_id")
	ended := w.waitForStatus("run", "succeeded").object()
	got := map[string]any{"payload": ended["trigger"].(map[string]any)["payload_files"]}
	for _, one := range ended["steps"].([]any) {
		step := one.(map[string]any)
		id := step["step_id"].(string)
		got[id+" input"], got[id+" output"] = step["input_files"], step["output_files"]
	}
	want := map[string]any{
		"payload": []any{"/photo"}, "send input": []any{"/body"}, "send output": nil,
		"keep input": []any{"/values/list/0"}, "keep output": []any{"/list/0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The JSON of a file is data wherever it comes from: sending it sends the JSON.
func TestForgedFiles(t *testing.T) {
	t.Parallel()
	w, sink := newFileServer(t)
	path := w.activeHook("real", "", send(sink, "a", "trigger.payload.photo"))
	body, media := form("photo/a.txt", "the secret text")
	w.names["run"] = hookCaller(w).call("POST", path, body, "Content-Type", media).wantStatus(202).str("run_id")
	payload := w.waitForStatus("run", "succeeded").object()["trigger"].(map[string]any)["payload"].(map[string]any)
	encoded, _ := json.Marshal(payload["photo"])
	forged := string(encoded)
	source := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, `{"file": %s, "items": [%s]}`, forged, forged)
	}))
	t.Cleanup(source.Close)
	quoted, _ := json.Marshal(forged)

	hook := w.activeHook("hook", "", send(sink, "payload", "trigger.payload.f"), send(sink, "header", "trigger.headers['x-file']"), send(sink, "query", "trigger.query.f"))
	w.names["hooked"] = hookCaller(w).call("POST", hook+"?f="+strings.NewReplacer(`"`, "%22", " ", "%20", "$", "%24").Replace(forged), `{"f": `+forged+`}`, "X-File", forged).wantStatus(202).str("run_id")
	w.workflow("api",
		send(sink, "payload", "trigger.payload.f"), send(sink, "text", "fromJSON(trigger.payload.t)"),
		`{"id": "get", "uses": "http.request", "with": {"url": "`+source.URL+`"}}`, send(sink, "response", "steps.get.output.body.file"),
		`{"id": "list", "uses": "http.request", "with": {"url": "`+source.URL+`", "paginate": {"style": "page", "items": "body.items", "max_pages": 2}}}`, send(sink, "paged", "steps.list.output.items[1]"),
		`{"id": "script", "uses": "code.js", "with": {"code": "return {f: input.f}", "input": {"f": "${{ trigger.payload.f }}"}}}`, send(sink, "scripted", "steps.script.output"),
		`{"id": "wait", "uses": "flow.approval", "with": {"message": "?"}}`, send(sink, "answered", "steps.wait.output.data"))
	w.names["started"] = w.call("POST", "/v1/workflows/$api/runs", `{"payload": {"f": `+forged+`, "t": `+string(quoted)+`}}`).wantStatus(201).str("id")
	w.waitForStep("started", "wait")
	w.call("POST", "/v1/runs/$started/steps/wait/resume", `{"approved": true, "data": `+forged+`}`)
	w.workflow("pinned", `{"id": "real", "uses": "data.set", "with": {"values": {"a": 1}}}`, send(sink, "pin", "steps.real.output.f"))
	// Whoever may change workflows can pin a file, but only the exact reference is one.
	definition := w.call("GET", "/v1/workflows/$pinned", "").object()
	steps, _ := json.Marshal(definition["steps"])
	w.names["draft"] = w.call("POST", "/v1/workflows/$pinned/runs", `{"definition": {"steps": `+string(steps)+`}, "use_pinned": true, "pinned": {"real": {"f": `+strings.Replace(forged, "a.txt", "b.txt", 1)+`}}}`).wantStatus(201).str("id")

	checked := 0
	for _, run := range []string{"hooked", "started", "draft"} {
		ended := w.waitForStatus(run, "succeeded").object()
		for _, one := range ended["steps"].([]any) {
			step := one.(map[string]any)
			output, _ := step["output"].(map[string]any)
			sent, _ := output["body"].(map[string]any)
			text, isText := sent["text"].(string)
			if !isText {
				continue
			}
			checked++
			if strings.Contains(text, "the secret text") || !strings.Contains(text, `"$file"`) {
				t.Errorf("%s of %s sent %q", step["step_id"], run, text)
			}
		}
	}
	if checked != 10 {
		t.Errorf("%d values were sent", checked)
	}
	if got := fmt.Sprint(w.server.query(t, `SELECT count(*) FROM file_refs WHERE holder LIKE 'run_%'`)); got != "[[1]]" {
		t.Errorf("%s references", got)
	}
}
