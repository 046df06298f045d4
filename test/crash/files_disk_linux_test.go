package crash_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// A file fills the disk while it is written, in a step and in an upload. Both fail with a
// clear error, nothing of the file stays, and smaller files are stored afterwards.
func TestFileLargerThanTheDisk(t *testing.T) {
	harness.EmbeddedOnly(t, "the disk of the data directory")
	t.Parallel()
	if !asRoot(t) {
		return
	}
	disk := mountDisk(t, "64m")
	d := newDepot(t, 80<<20)
	s := harness.Start(t, disk.dir+"/data", egress, "--disk-reserve=0")
	client := flow.NewWorkspace(t, s.Client, "enterprise")
	get := flow.Step("get", "http.request", fmt.Sprintf(`{"url": "%s/a.zip", "response": "file"}`, d.URL))
	get["retry"] = map[string]any{"max_attempts": 1}
	id := flow.Define(t, client, get)
	const want = "the server's disk is full; the file was not stored"

	end := awaitEnd(t, client, startRun(t, client, id, 0).ID)
	if end.Status != failed || end.Error.Code != "storage_full" || !strings.Contains(end.Error.Message, want) {
		t.Errorf("the run is %s: %+v", end.Status, end.Error)
	}
	upload := func(size int64) (status int, body string) {
		var response *http.Response
		// The server closes the connection after an error. On a busy machine, the client may
		// notice that first.
		harness.Eventually(t, "the response arrives", func() (arrived bool) {
			var err error
			response, err = client.Open(t.Context(), http.MethodPost, "/v1/files?name=a.zip", io.LimitReader(zeros{}, size), "Content-Type", "application/zip")
			return err == nil
		})
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	if status, body := upload(80 << 20); status != http.StatusInsufficientStorage || !strings.Contains(body, want) {
		t.Errorf("the upload: %d %s", status, body)
	}
	var usage struct {
		Current struct {
			Files           int
			StoredFileBytes int64 `json:"stored_file_bytes"`
		}
	}
	client.Expect(t, http.StatusOK, http.MethodGet, "/v1/usage", nil).Decode(t, &usage)
	if n := countBlobs(t, s.Dir); n != 0 || usage.Current.Files != 0 || usage.Current.StoredFileBytes != 0 {
		t.Errorf("INVARIANT: %d blobs remain, and %+v is recorded", n, usage.Current)
	}

	status, body := upload(1 << 20)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusCreated {
		t.Fatalf("a smaller file: %d %s, %v", status, body, err)
	}
	if got := client.Expect(t, http.StatusOK, http.MethodGet, "/v1/files/"+made.ID, nil); len(got.Body) != 1<<20 {
		t.Errorf("the smaller file has %d bytes", len(got.Body))
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// zeros is an endless file.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
