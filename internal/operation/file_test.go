package operation_test

import (
	"context"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

const uploads = `
operations:
  upload:
    title: Upload
    input: {file: {type: file, required: true}}
    do:
      - {id: session, method: POST, path: /sessions, json: {name: "${{ input.file.name }}"}, idempotency: safe, output: "${{ headers.location }}"}
      - id: sent
        method: PUT
        url: ${{ results.session }}
        headers: {Content-Range: "bytes ${{ chunk.offset }}-${{ chunk.end }}/${{ chunk.total }}"}
        raw: ${{ chunk.data }}
        chunk:
          file: input.file
          size: 4
          next: "status == 308 ? (headers.range == nil ? 0 : int(split(headers.range, '-')[1]) + 1) : chunk.total"
          ask: {method: PUT, url: "${{ results.session }}", headers: {Content-Range: "bytes */${{ chunk.total }}"}}
        errors: [{when: "status == 404", kind: restart}]
    output: {id: "${{ results.sent.id }}"}
  upload_parts:
    title: Upload parts
    input: {file: {type: file, required: true}}
    request:
      method: POST
      path: /parts
      headers: {Key: "${{ step.key }}"}
      multipart: {part: "${{ chunk.data }}"}
      chunk: {file: input.file, size: 4}
      on_unknown: fail
`

// upload is a request for an upload of a file with ten bytes.
func upload() (action.Request, *actiontest.Files) {
	files := actiontest.NewFiles()
	req := request(map[string]any{"file": files.Add("digits", "text/plain", "0123456789")})
	req.Files = files
	return req, files
}

var session = answer(200, ``, "Location", "https://api.shop.example/s/1")

func stored(bytes string) *egress.Response { return answer(308, ``, "Range", bytes) }

func TestChunks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []any
		want    string
	}{
		"in parts":              {[]any{session, stored("0-3"), stored("0-7"), answer(201, `{"id": 7}`)}, "bytes 0-3/10 0123|bytes 4-7/10 4567|bytes 8-9/10 89"},
		"less than what's sent": {[]any{session, stored("0-1"), stored("0-5"), answer(201, `{"id": 7}`)}, "bytes 0-3/10 0123|bytes 2-5/10 2345|bytes 6-9/10 6789"},
		"ended early":           {[]any{session, answer(201, `{"id": 7}`)}, "bytes 0-3/10 0123"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, uploads, tc.answers...)
			req, files := upload()
			output, checkpoints, err := h.run(t, "upload", req)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "output", asJSON(t, output), `{"id":7}`)
			want(t, "parts", strings.Join(h.service.parts(), "|"), tc.want)
			if checkpoints != len(h.service.sent)-2 { // the session costs none
				t.Errorf("%d checkpoints for %d requests", checkpoints, len(h.service.sent))
			}
			if files.Unclosed != 0 {
				t.Errorf("%d files are open", files.Unclosed)
			}
		})
	}
}

// parts returns the ranges and bodies of the requests with a range.
func (s *service) parts() []string {
	var out []string
	for i, header := range s.headers {
		if r := header.Get("Content-Range"); r != "" {
			out = append(out, strings.TrimSpace(r+" "+s.bodies[i]))
		}
	}
	return out
}

// An empty file is one request.
func TestChunkOfAnEmptyFile(t *testing.T) {
	t.Parallel()
	h := newHarness(t, uploads, session, answer(201, `{"id": 7}`))
	req, files := upload()
	req.Input["file"] = files.Add("empty", "text/plain", "")
	if _, _, err := h.run(t, "upload", req); err != nil {
		t.Fatal(err)
	}
	want(t, "parts", strings.Join(h.service.parts(), "|"), "bytes 0--1/0")
}

// If it is not known whether the service has a part, it is asked.
func TestChunkAfterInterruption(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []any
		want    string
	}{
		"it has the part":      {[]any{stored("0-7"), answer(201, `{"id": 7}`)}, "bytes */10|bytes 8-9/10 89"},
		"it does not have it":  {[]any{stored("0-3"), stored("0-7"), answer(201, `{"id": 7}`)}, "bytes */10|bytes 4-7/10 4567|bytes 8-9/10 89"},
		"it has lost them all": {[]any{stored(""), stored("0-3"), stored("0-7"), answer(201, `{"id": 7}`)}, "bytes */10|bytes 0-3/10 0123|bytes 4-7/10 4567|bytes 8-9/10 89"},
		"it has everything":    {[]any{answer(200, `{"id": 7}`)}, "bytes */10"},
		"it has lost all":      {[]any{answer(404, ``), session, answer(201, `{"id": 7}`)}, "bytes */10|bytes 0-3/10 0123"},
	} {
		for _, retried := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if stored, ok := tc.answers[0].(*egress.Response); ok && stored.Header.Get("Range") == "" {
					stored.Header.Del("Range")
				}
				h := newHarness(t, uploads, append([]any{session, stored("0-3")}, tc.answers...)...)
				req, _ := upload()
				result, err := h.entry("upload").Action.Run(t.Context(), req)
				if err != nil || result.Checkpoint == nil {
					t.Fatalf("%v, %v", result, err)
				}
				if err := req.Resume(*result.Checkpoint); err != nil {
					t.Fatal(err)
				}
				req.Interrupted, req.Retried = !retried, retried
				output, _, err := h.run(t, "upload", req)
				if err != nil {
					t.Fatal(err)
				}
				want(t, "output", asJSON(t, output), `{"id":7}`)
				want(t, "parts", strings.Join(h.service.parts(), "|"), "bytes 0-3/10 0123|"+tc.want)
			})
		}
	}
}

// A part that the service does not store is sent again later, not at once and for ever.
func TestChunkThatIsNotStored(t *testing.T) {
	t.Parallel()
	h := newHarness(t, uploads, session, stored("0-3"), stored("0-3"))
	req, _ := upload()
	_, _, err := h.run(t, "upload", req)
	if failure := wantFailure(t, err, "unavailable"); !failure.Retryable {
		t.Error("it is final")
	}
	for _, nonsense := range []string{"0-10", "x-y"} {
		h := newHarness(t, uploads, session, stored(nonsense))
		req, _ := upload()
		if _, _, err := h.run(t, "upload", req); err == nil {
			t.Errorf("%s is accepted as a position", nonsense)
		}
	}
}

// Without a position in the answer, a part that was sent is stored. Each has a key of its own.
func TestChunksWithoutPositions(t *testing.T) {
	t.Parallel()
	h := newHarness(t, uploads, answer(200, `{}`), answer(200, `{}`), answer(200, `{"ok": true}`))
	req, _ := upload()
	output, _, err := h.run(t, "upload_parts", req)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "output", asJSON(t, output), `{"ok":true}`)
	for i, part := range []string{"\r\n\r\n0123\r\n--", "\r\n\r\n4567\r\n--", "\r\n\r\n89\r\n--"} {
		if !strings.Contains(h.service.bodies[i], part) || !strings.Contains(h.service.bodies[i], `filename="digits"`) {
			t.Errorf("the part %d is %q", i, h.service.bodies[i])
		}
		want(t, "key", h.service.headers[i].Get("Key"), []string{"run_1/a/0", "run_1/a/4", "run_1/a/8"}[i])
	}
	// Such a part must not be sent twice.
	h = newHarness(t, uploads)
	req.Interrupted = true
	_, _, err = h.run(t, "upload_parts", req)
	wantFailure(t, err, "outcome_unknown")
	req.Input["file"], req.Interrupted = "text", false
	_, _, err = h.run(t, "upload_parts", req)
	wantFailure(t, err, action.InvalidInput)
}

const mails = `
operations:
  send:
    title: Send
    input: {to: {type: list, items: {type: string}}, file: {type: file}}
    request:
      method: POST
      path: /send
      raw: {$mime: {to: "${{ input.to }}", subject: Hello, text: Hi, attachments: "${{ input.file }}"}}
  send_json:
    title: Send
    input: {to: {type: string}, file: {type: file}}
    request:
      method: POST
      path: /send
      json: {raw: {$base64: {$mime: {to: "${{ input.to }}", subject: Hello, text: Hi, attachments: "${{ input.file }}"}}, prefix: "mime:"}}
`

const attachments = `
operations:
  attach:
    title: Attach
    input: {files: {type: list, items: {type: file}}}
    request: {method: POST, path: /files, json: {files: {$each: input.files, as: {name: "${{ item.name }}", size: "${{ item.none }}", data: {$base64: "${{ item }}"}}}}}
`

func TestFilesInJSON(t *testing.T) {
	t.Parallel()
	h := newHarness(t, attachments, answer(200, `{}`), answer(200, `{}`), answer(200, `{}`))
	req, files := upload()
	for _, tc := range []struct {
		files any
		want  string
	}{
		{[]any{files.Add("a.txt", "text/plain", "first"), files.Add("b.txt", "text/plain", "second")}, `{"files":[{"data":"Zmlyc3Q=","name":"a.txt"},{"data":"c2Vjb25k","name":"b.txt"}]}`},
		{[]any{}, `{"files":[]}`},
		{nil, `{}`},
	} {
		req.Input = map[string]any{"files": tc.files}
		if _, _, err := h.run(t, "attach", req); err != nil {
			t.Fatal(err)
		}
		want(t, "body", h.service.bodies[len(h.service.bodies)-1], tc.want)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	h := newHarness(t, mails, answer(200, `{}`), answer(200, `{}`))
	req, files := upload()
	req.Input = map[string]any{"to": []any{"ada@example.org", "bob@example.org"}, "file": files.Add("digits", "text/plain", "0123456789")}
	if _, _, err := h.run(t, "send", req); err != nil {
		t.Fatal(err)
	}
	text := h.service.bodies[0]
	want(t, "type", h.service.headers[0].Get("Content-Type"), "message/rfc822")
	if !strings.HasPrefix(text, "To: <ada@example.org>, <bob@example.org>\r\nSubject: Hello\r\n") || !strings.Contains(text, "\r\n\r\nMDEyMzQ1Njc4OQ==\r\n") {
		t.Errorf("the message is %s", text)
	}
	req.Input["to"] = "ada@example.org, bob@example.org"
	if _, _, err := h.run(t, "send_json", req); err != nil {
		t.Fatal(err)
	}
	encoded, _ := strings.CutPrefix(strings.TrimSuffix(h.service.bodies[1], `"}`), `{"raw":"mime:`)
	if decoded, err := base64.StdEncoding.DecodeString(encoded); err != nil || string(decoded) != text {
		t.Errorf("%v: the message in JSON is %s", err, decoded)
	}
	req.Input["to"] = "nobody"
	_, _, err := h.run(t, "send_json", req)
	if failure := wantFailure(t, err, action.InvalidInput); failure.Message != `to: "nobody" is not an e-mail address` {
		t.Error(failure.Message)
	}
}

// Files inside of JSON are stored, and everything else of the answer can be read.
func TestBlobs(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  draw:
    title: Draw
    request: {method: POST, path: /images, blobs: ["data[].b64"], file_name: image.png}
    output: {files: "${{ map(body.data, .b64) }}", model: "${{ body.model }}"}
`
	h := newHarness(t, manifest, answer(200, `{"model": "m", "data": [{"b64": "AAEC"}, {"b64": "AwQF"}]}`))
	req, files := upload()
	output, _, err := h.run(t, "draw", req)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "first", string(files.Content["file_2"]), "\x00\x01\x02")
	want(t, "second", string(files.Content["file_3"]), "\x03\x04\x05")
	if text := asJSON(t, output); !strings.Contains(text, `"$file":"file_3","name":"image.png"`) || !strings.Contains(text, `"model":"m"`) {
		t.Error(text)
	}
	h = newHarness(t, manifest, answer(400, `{"error": "no"}`))
	_, _, err = h.run(t, "draw", req)
	wantFailure(t, err, "invalid")
	h = newHarness(t, manifest)
	req.Files = nil
	_, _, err = h.run(t, "draw", req)
	wantFailure(t, err, action.InvalidInput)
}

// Stream implements transfer.Client.
func (s *service) Stream(ctx context.Context, r egress.Request) (*egress.Stream, error) {
	resp, err := s.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return egress.NewStream(resp.Status, resp.Header, r.URL, resp.Body), nil
}

// body returns what a request sends.
func body(t *testing.T, r egress.Request) string {
	t.Helper()
	if r.Upload == nil {
		return string(r.Body)
	}
	from, err := r.Upload()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	sent, err := io.ReadAll(from)
	if err != nil || int64(len(sent)) != r.UploadLength {
		t.Fatalf("%d bytes of %d, %v", len(sent), r.UploadLength, err)
	}
	return string(sent)
}

// The files that the parts of a batch make are those of the run, also after checkpoints.
// Requests that only read are recorded together.
func TestFilesOfABatch(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int{"GET": 0, "POST": 2} {
		if checkpoints := filesOfABatch(t, method); checkpoints != want {
			t.Errorf("%s: %d checkpoints, want %d", method, checkpoints, want)
		}
	}
}

func filesOfABatch(t *testing.T, method string) int {
	t.Helper()
	manifest := `
operations:
  get:
    title: Get
    input: {ids: {type: list, items: {type: string}}}
    do:
      - id: files
        method: ` + method + `
        path: /attachments/${{ batch[0] }}
        batch: {of: input.ids, size: 1}
        blobs: [data]
        file_name: ${{ batch[0] }}.txt
        output: ["${{ body.data }}"]
    output: {files: "${{ results.files.items }}", same: "${{ items }}"}
`
	h := newHarness(t, manifest, answer(200, `{"data": "QQ"}`), answer(200, `{"data": "Qg"}`), answer(200, `{"data": "Qw"}`))
	req, _ := upload()
	req.Input = map[string]any{"ids": []any{"a", "b", "c"}}
	output, checkpoints, err := h.run(t, "get", req)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range expr.Files(output.(map[string]any)["files"]) {
		names = append(names, f.Name)
	}
	want(t, "files", strings.Join(names, " "), "a.txt b.txt c.txt")
	if len(expr.Files(output)) != 6 {
		t.Errorf("the output is %v", output)
	}
	return checkpoints
}
