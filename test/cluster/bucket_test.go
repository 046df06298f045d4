package cluster_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/installation"
	"github.com/stepmill/stepmill/test/lane"
)

// bucketServer is an S3-compatible server with the bucket "files". While it is broken, it
// responds with an error or not at all.
type bucketServer struct {
	*httptest.Server
	broken atomic.Bool
	slow   atomic.Bool // each request takes a while
}

func newBucketServer(t *testing.T) *bucketServer {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("files"); err != nil {
		t.Fatal(err)
	}
	next, b := gofakes3.New(backend).Server(), &bucketServer{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.slow.Load() {
			time.Sleep(50 * time.Millisecond)
		}
		if b.broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *bucketServer) url(prefix string) string {
	return "--files-url=s3://files/" + prefix + "?endpoint=" + b.URL
}

// credentials are accepted by every bucketServer.
var credentials = []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test"}

// Nodes share files in a bucket. While the bucket is unavailable, uploads, downloads and
// steps fail with a clear error, nothing is recorded, and afterwards everything works again.
func TestFilesInABucket(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	b, made := newBucketServer(t), installation.New(t)
	start := func(name string) *harness.Client {
		s := harness.StartWith(t, harness.Options{
			Dir: made.Dir, Database: made.URL, Args: append(nodeArgs(name, longLease, harness.Timeout), b.url("stepmill")), Env: credentials,
		})
		s.Key = made.AdminKey
		return s.Client
	}
	first, second := start("a"), start("b")
	content := make([]byte, 12<<20) // in several parts
	_, _ = rand.Read(content)

	id := uploadTo(t, first, content, http.StatusCreated)
	if got := download(t, second, id); !bytes.Equal(got, content) {
		t.Errorf("the other node returns %d bytes, which differ", len(got))
	}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(content)
		} else if n, err := io.Copy(io.Discard, r.Body); err == nil && n != int64(len(content)) {
			t.Errorf("INVARIANT: %d bytes of the file arrived as all of it", n)
		}
	}))
	t.Cleanup(source.Close)
	step := flow.Step("get", "http.request", fmt.Sprintf(`{"url": %q, "response": "file"}`, source.URL))
	step["retry"] = map[string]any{"max_attempts": 1}
	workflow := flow.Define(t, first, step)
	send := flow.Step("send", "http.request", fmt.Sprintf(`{"url": %q, "method": "PUT", "body": {"$file": %q}}`, source.URL, id))
	send["retry"] = map[string]any{"max_attempts": 1}
	sending := flow.Define(t, first, send)
	want := fileCount(t, first)

	b.broken.Store(true)
	if code := uploadTo(t, second, content, http.StatusServiceUnavailable); code != "unavailable" {
		t.Errorf("an upload while the bucket is unavailable: %s", code)
	}
	if code := runOf(t, second, workflow, "failed"); code != "unavailable" {
		t.Errorf("a step while the bucket is unavailable: %s", code)
	}
	if code := runOf(t, second, sending, "failed"); code != "unavailable" {
		t.Errorf("a step that reads a file while the bucket is unavailable: %s", code)
	}
	for _, asked := range []string{"bytes=0-", "bytes=5000000-5000009"} {
		response, err := second.Do(t.Context(), http.MethodGet, "/v1/files/"+id, nil, "Range", asked)
		if err != nil || response.Status != http.StatusServiceUnavailable || flow.ErrorCode(response) != "unavailable" {
			t.Errorf("a download of %s while the bucket is unavailable: %d %.300s, %v", asked, response.Status, response.Body, err)
		}
	}
	if n := fileCount(t, first); n != want {
		t.Errorf("%d files are recorded, want %d", n, want)
	}

	b.slow.Store(true)
	b.broken.Store(false)
	runOf(t, second, workflow, "succeeded")
	runOf(t, second, sending, "succeeded")
	uploadTo(t, first, content[1:], http.StatusCreated)
	if n := fileCount(t, second); n != want+2 {
		t.Errorf("%d files are recorded afterwards, want %d", n, want+2)
	}
}

// A node that would store files in another place than the others does not start.
func TestNodesAgreeWhereFilesAre(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	b, made := newBucketServer(t), installation.New(t)
	options := func(name, place string) harness.Options {
		return harness.Options{Dir: made.Dir, Database: made.URL, Args: append(nodeArgs(name, longLease, harness.Timeout), place), Env: credentials}
	}
	harness.StartWith(t, options("a", b.url("one")))
	other := harness.StartProcess(t, options("b", b.url("two")))
	if exit := other.Wait(t); exit.Code == 0 || !strings.Contains(other.Log(), "correct --files-url") {
		t.Errorf("a node with another prefix exits with %d:\n%s", exit.Code, other.Excerpt())
	}
	b.broken.Store(true)
	unreachable := harness.StartProcess(t, options("c", b.url("one")))
	if exit := unreachable.Wait(t); exit.Code == 0 || !strings.Contains(unreachable.Log(), "cannot use the bucket files") {
		t.Errorf("a node without its bucket exits with %d:\n%s", exit.Code, unreachable.Excerpt())
	}
}

// uploadTo uploads a file and returns its id, or the code of the error.
func uploadTo(t *testing.T, c *harness.Client, content []byte, status int) string {
	t.Helper()
	response, err := c.Open(t.Context(), http.MethodPost, "/v1/files?name=a.bin", bytes.NewReader(content), "Content-Type", "application/x-test")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct {
		ID    string
		Error struct{ Code string }
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || response.StatusCode != status {
		t.Fatalf("upload: status %d, want %d: %+v, %v", response.StatusCode, status, body, err)
	}
	return body.ID + body.Error.Code
}

func download(t *testing.T, c *harness.Client, id string) []byte {
	t.Helper()
	response, err := c.Open(t.Context(), http.MethodGet, "/v1/files/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("download: status %d, %v", response.StatusCode, err)
	}
	return content
}

func fileCount(t *testing.T, c *harness.Client) int {
	t.Helper()
	var page struct{ Data []json.RawMessage }
	c.Expect(t, http.StatusOK, http.MethodGet, "/v1/files?limit=100", nil).Decode(t, &page)
	return len(page.Data)
}

// runOf runs a workflow, expects a status and returns the code of its error.
func runOf(t *testing.T, c *harness.Client, workflow, status string) string {
	t.Helper()
	var started, ended struct {
		ID, Status string
		Error      struct{ Code string }
	}
	c.Expect(t, http.StatusCreated, http.MethodPost, "/v1/workflows/"+workflow+"/runs", map[string]any{}).Decode(t, &started)
	harness.Eventually(t, "the run ends", func() bool {
		c.Expect(t, http.StatusOK, http.MethodGet, "/v1/runs/"+started.ID, nil).Decode(t, &ended)
		return ended.Status != "running"
	})
	if ended.Status != status {
		t.Errorf("the run is %s, want %s: %s", ended.Status, status, ended.Error.Code)
	}
	return ended.Error.Code
}
