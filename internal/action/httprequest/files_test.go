package httprequest_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

// callWith runs the action with files.
func callWith(t *testing.T, files action.Files, server *httptest.Server, with map[string]any) (map[string]any, *action.Failure) {
	t.Helper()
	client := egress.New(egress.Config{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Limits: egress.Limits{Stall: time.Minute}})
	t.Cleanup(client.Close)
	if path, ok := with["url"].(string); ok && strings.HasPrefix(path, "/") {
		with["url"] = server.URL + path
	}
	result, err := httprequest.Entry(client).Action.Run(t.Context(), action.Request{
		Input: with, Now: time.Now(), Workspace: "ws_a", IdempotencyKey: "run_1/step", Run: action.Run{Depth: 4}, Files: files,
	})
	if err != nil {
		failure, ok := errors.AsType[*action.Failure](err)
		if !ok {
			t.Fatal(err)
		}
		return nil, failure
	}
	output, _ := result.Output.(map[string]any)
	return output, nil
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestResponseAsFile(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 20_000)
	for name, test := range map[string]struct {
		path, disposition, mediaType string
		gzipped                      bool
		wantName, wantType           string
	}{
		"named by the server":        {"/a/b", `attachment; filename="invoice 1.pdf"`, "application/pdf", false, "invoice 1.pdf", "application/pdf"},
		"named in another character": {"/a/b", `attachment; filename*=UTF-8''%e2%82%ac.pdf`, "application/pdf", false, "€.pdf", "application/pdf"},
		"named by the URL":           {"/a/gr%C3%BC%C3%9Fe.txt?x=1", "", "text/plain; charset=utf-8", false, "grüße.txt", "text/plain; charset=utf-8"},
		"named by its type":          {"/", "", "image/svg+xml", false, "download.svg", "image/svg+xml"},
		"compressed":                 {"/a.txt", "", "text/plain", true, "a.txt", "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := actiontest.NewFiles()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.mediaType)
				if test.disposition != "" {
					w.Header().Set("Content-Disposition", test.disposition)
				}
				if test.gzipped {
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					_, _ = io.WriteString(z, content)
					z.Close()
					return
				}
				_, _ = io.WriteString(w, content)
			})
			output, failure := callWith(t, files, server, map[string]any{"url": test.path, "response": "file"})
			if failure != nil {
				t.Fatal(failure)
			}
			f, ok := output["body"].(*expr.File)
			if !ok || output["status"] != 200 {
				t.Fatalf("got %v", output)
			}
			if f.Name != test.wantName || f.Type != test.wantType || f.Size != int64(len(content)) || string(files.Content[f.ID]) != content {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// A status that is no success keeps the body as a value, whether or not it is a failure.
func TestErrorResponseIsNoFile(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error": "gone"}`)
	})
	files := actiontest.NewFiles()
	_, failure := callWith(t, files, server, map[string]any{"url": "/x", "response": "file"})
	want := map[string]any{"error": "gone"}
	if failure == nil || failure.Code != transfer.HTTPError || !cmp.Equal(failure.Output["body"], any(want)) {
		t.Errorf("got %v", failure)
	}
	output, failure := callWith(t, files, server, map[string]any{"url": "/x", "response": "file", "fail_on": "never"})
	if failure != nil || !cmp.Equal(output["body"], any(want)) || len(files.Content) != 0 {
		t.Errorf("got %v, %v and %d files", output, failure, len(files.Content))
	}
}

func TestResponseLargerThanAFileMayBe(t *testing.T) {
	t.Parallel()
	files := actiontest.NewFiles()
	files.Limit = 100
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/compressed" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			_, _ = io.WriteString(z, strings.Repeat("x", 10_000_000)) // has 10 KB on the way
			return
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 101))
	})
	for n, path := range []string{"/plain", "/compressed"} {
		_, failure := callWith(t, files, server, map[string]any{"url": path, "response": "file"})
		if failure == nil || failure.Code != "file_too_large" || files.Aborted != n+1 {
			t.Errorf("%s: got %v, aborted %d times", path, failure, files.Aborted)
		}
	}
}

func TestResponseAsFileNeedsFiles(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	if _, failure := callWith(t, nil, server, map[string]any{"url": "/x", "response": "file"}); failure == nil || failure.Code != action.InvalidInput {
		t.Errorf("got %v", failure)
	}
}

// breaking serves content and closes the connection after each part of it.
func breaking(t *testing.T, content, tag string, part int, requests *[]string) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		*requests = append(*requests, r.Header.Get("Range")+" "+r.Header.Get("If-Range"))
		mu.Unlock()
		from := 0
		w.Header().Set("ETag", tag)
		if text := r.Header.Get("Range"); text != "" {
			from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(text, "bytes="), "-"))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = io.WriteString(w, content[from:min(len(content), from+part)])
		_ = http.NewResponseController(w).Flush()
		if from+part < len(content) {
			panic(http.ErrAbortHandler)
		}
	})
}

func TestInterruptedDownloadIsContinued(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 30)
	files := actiontest.NewFiles()
	var requests []string
	output, failure := callWith(t, files, breaking(t, content, `"v1"`, 130, &requests), map[string]any{"url": "/x", "response": "file"})
	if failure != nil {
		t.Fatal(failure)
	}
	if f := output["body"].(*expr.File); string(files.Content[f.ID]) != content {
		t.Errorf("got %q", files.Content[f.ID])
	}
	if diff := cmp.Diff([]string{" ", `bytes=130- "v1"`, `bytes=260- "v1"`}, requests); diff != "" {
		t.Error(diff)
	}
}

// Without a strong entity tag nobody can tell whether the rest belongs to the beginning.
func TestInterruptedDownloadThatCannotBeContinued(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{"", `W/"v1"`} {
		files := actiontest.NewFiles()
		var requests []string
		_, failure := callWith(t, files, breaking(t, strings.Repeat("x", 300), tag, 100, &requests), map[string]any{"url": "/x", "response": "file"})
		if failure == nil || failure.Code != string(egress.ConnectionFailed) || !failure.Retryable || len(requests) != 1 || files.Aborted != 1 {
			t.Errorf("tag %q: %v after %d requests", tag, failure, len(requests))
		}
	}
}

// A file that has changed on the server is not continued, also if the server ignores
// If-Range.
func TestChangedDownloadIsNotContinued(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusPartialContent} {
		var requests atomic.Int64
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, requests.Add(1)))
			w.Header().Set("Content-Length", "100")
			if r.Header.Get("Range") != "" {
				w.Header().Set("Content-Range", "bytes 50-149/150")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, strings.Repeat("y", 100))
				return
			}
			_, _ = io.WriteString(w, strings.Repeat("x", 50))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		files := actiontest.NewFiles()
		_, failure := callWith(t, files, server, map[string]any{"url": "/x", "response": "file"})
		if failure == nil || failure.Code != string(egress.ConnectionFailed) || requests.Load() != 2 || len(files.Content) != 0 {
			t.Errorf("status %d: %v after %d requests", status, failure, requests.Load())
		}
	}
}

func TestFileAsBody(t *testing.T) {
	t.Parallel()
	files := actiontest.NewFiles()
	f, empty := files.Add("a.csv", "text/csv", "a,b\n1,2\n"), files.Add("empty", "text/plain", "")
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/x", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprintf(w, "%s %d %s %s", r.Method, r.ContentLength, r.Header.Get("Content-Type"), body)
	})
	for name, test := range map[string]struct {
		with map[string]any
		want string
	}{
		"with its type":        {map[string]any{"url": "/x", "method": "PUT", "body": f}, "PUT 8 text/csv a,b\n1,2\n"},
		"with another type":    {map[string]any{"url": "/x", "method": "PUT", "body": f, "headers": map[string]any{"content-type": "text/plain"}}, "PUT 8 text/plain a,b\n1,2\n"},
		"after a redirect":     {map[string]any{"url": "/moved", "method": "POST", "body": f}, "POST 8 text/csv a,b\n1,2\n"},
		"an empty file":        {map[string]any{"url": "/x", "method": "POST", "body": empty}, "POST 0 text/plain "},
		"inside of other data": {map[string]any{"url": "/x", "method": "POST", "body": map[string]any{"f": f}}, `POST 142 application/json {"f":{"$file":"file_1","name":"a.csv","sha256":"` + f.SHA256 + `","size":8,"type":"text/csv"}}`},
		"what looks like one": {
			map[string]any{"url": "/x", "method": "POST", "body": map[string]any{"$file": f.ID, "name": "a", "type": "b", "size": 8, "sha256": f.SHA256}},
			`POST 125 application/json {"$file":"file_1","name":"a","sha256":"` + f.SHA256 + `","size":8,"type":"b"}`,
		},
	} {
		output, failure := callWith(t, files, server, test.with)
		if failure != nil || output["body"] != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, output["body"], failure, test.want)
		}
	}
	if files.Unclosed != 0 {
		t.Errorf("%d files are still open", files.Unclosed)
	}
}

func TestMissingFileAsBody(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	gone := expr.NewFile(expr.File{ID: "file_9", Name: "a", Type: "b", Size: 3})
	_, failure := callWith(t, actiontest.NewFiles(), server, map[string]any{"url": "/x", "method": "POST", "body": gone})
	if failure == nil || failure.Code != "file_not_found" {
		t.Errorf("got %v", failure)
	}
}

func TestMultipart(t *testing.T) {
	t.Parallel()
	files := actiontest.NewFiles()
	photo, page := files.Add(`a "b".png`, "image/png", "PNG"), files.Add("p1.txt", "text/plain", strings.Repeat("page", 50_000))
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Redirect(w, r, "/x", http.StatusPermanentRedirect)
			return
		}
		counted := &counter{Reader: r.Body}
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil {
			t.Error(err)
		}
		reader := multipart.NewReader(counted, params["boundary"])
		for {
			p, err := reader.NextPart()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Error(err)
				return
			}
			content, _ := io.ReadAll(p)
			fmt.Fprintf(w, "%s|%s|%s|%d|%.10s\n", p.FormName(), p.FileName(), p.Header.Get("Content-Type"), len(content), content)
		}
		_, _ = io.Copy(io.Discard, counted)
		if counted.n != r.ContentLength {
			t.Errorf("the length is %d, announced were %d", counted.n, r.ContentLength)
		}
	})
	want := "meta||application/json|7|{\"a\":1}\n" +
		"n||text/csv|1|7\n" +
		"tag|||1|a\ntag|||4|true\n" +
		"title|||7|Grüße\n" +
		"pages|p1.txt|text/plain|200000|pagepagepa\npages|one.bin|application/x|3|PNG\n" +
		"photo|a \"b\".png|image/png|3|PNG\n"
	for _, path := range []string{"/x", "/moved"} {
		output, failure := callWith(t, files, server, map[string]any{"url": path, "method": "POST", "multipart": map[string]any{
			"title": "Grüße", "photo": photo, "none": nil, "tag": []any{"a", true},
			"pages": []any{page, map[string]any{"file": photo, "filename": "one.bin", "type": "application/x"}},
			"meta":  map[string]any{"value": map[string]any{"a": 1}}, "n": map[string]any{"value": 7, "type": "text/csv"},
		}})
		if failure != nil {
			t.Fatal(failure)
		}
		if diff := cmp.Diff(want, output["body"]); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	if files.Unclosed != 0 {
		t.Errorf("%d files are still open", files.Unclosed)
	}
}

type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func TestInvalidParts(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	files := actiontest.NewFiles()
	f := files.Add("a", "text/plain", "a")
	for name, item := range map[string]any{
		"neither value nor file": map[string]any{"filename": "x"},
		"both":                   map[string]any{"value": 1, "file": f},
		"an unknown member":      map[string]any{"value": 1, "size": 2},
		"what looks like a file": map[string]any{"$file": f.ID, "name": "a"},
		"a plain object as file": map[string]any{"file": map[string]any{"$file": f.ID}},
		"a header in the type":   map[string]any{"value": 1, "type": "a/b\r\nX: y"},
		"a list in a list":       []any{[]any{1}},
	} {
		_, failure := callWith(t, files, server, map[string]any{"url": "/x", "method": "POST", "multipart": map[string]any{"p": item}})
		if failure == nil || failure.Code != action.InvalidInput || !strings.HasPrefix(failure.Message, "multipart/p: must be") {
			t.Errorf("%s: got %v", name, failure)
		}
	}
}

func TestBodiesCannotBeCombined(t *testing.T) {
	t.Parallel()
	check := httprequest.Entry(nil).Spec.Check
	if problems := check(map[string]any{"url": "https://a.example", "body": "x", "multipart": map[string]any{}}); len(problems) != 1 || problems[0].Pointer != "/multipart" {
		t.Errorf("got %v", problems)
	}
	if problems := check(map[string]any{"url": "https://a.example", "response": "file", "paginate": map[string]any{"style": "link", "items": "body"}}); len(problems) != 1 || problems[0].Pointer != "/response" {
		t.Errorf("got %v", problems)
	}
}
