package crash_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// A server is killed while it receives a part of a resumable upload. The client asks the
// next one where to continue, and what it downloads afterwards is what it uploaded.
func TestUploadResumesAfterKill(t *testing.T) {
	t.Parallel()
	content := make([]byte, 20<<20+7)
	random := harness.Random(harness.Seed(t), 0)
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	s := harness.Start(t, t.TempDir())
	client := flow.NewWorkspace(t, s.Client, "enterprise")
	tus := []string{"Tus-Resumable", "1.0.0", "Content-Type", "application/offset+octet-stream"}
	with := func(headers ...string) []string { return append(headers, tus...) }
	at := client.Expect(t, http.StatusCreated, http.MethodPost, "/v1/files/uploads", nil, with("Upload-Length", strconv.Itoa(len(content)))...).Header.Get("Location")
	offset := func() int {
		n, err := strconv.Atoi(client.Expect(t, http.StatusOK, http.MethodHead, at, nil, tus...).Header.Get("Upload-Offset"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	body, feed := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		response, err := client.Open(t.Context(), http.MethodPatch, at, body, with("Upload-Offset", "0")...)
		if err == nil {
			_ = response.Body.Close()
		}
		_ = body.CloseWithError(io.ErrClosedPipe)
		ended <- err
	}()
	// The request stays open after these bytes, so the server dies in the middle of it.
	if _, err := feed.Write(content[:12<<20]); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "a part is stored", func() bool { return offset() > 0 })
	s.Kill(t)
	_ = feed.CloseWithError(io.ErrUnexpectedEOF) // the client would wait for more to send
	if err := <-ended; err == nil {
		t.Error("the request has ended without an error")
	}

	s = restart(t, s)
	client = harness.NewClient(s.URL, client.Key)
	from := offset()
	if from == 0 || from > 12<<20 {
		t.Fatalf("the upload continues at %d", from)
	}
	response, err := client.Open(t.Context(), http.MethodPatch, at, bytes.NewReader(content[from:]), with("Upload-Offset", strconv.Itoa(from))...)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		t.Fatalf("the rest: status %d", response.StatusCode)
	}
	if got := client.Expect(t, http.StatusOK, http.MethodGet, strings.Replace(at, "/uploads", "", 1), nil); !bytes.Equal(got.Body, content) {
		t.Errorf("the download of %d bytes differs from the upload of %d", len(got.Body), len(content))
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}
