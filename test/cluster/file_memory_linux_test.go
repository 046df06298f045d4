package cluster_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/installation"
	"github.com/stepmill/stepmill/test/lane"
)

const (
	// maxFileMemory is the resident memory that a server may have while a file of any size
	// passes through it.
	maxFileMemory = 100_000_000
	// fileTimeout only keeps a broken server from hanging the test.
	fileTimeout = 30 * time.Minute
)

// A file that is larger than the memory of a server passes from an HTTP server through two
// steps to another one, wherever its bytes are stored in between.
func TestMemoryOfALargeFile(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	binary, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []struct {
		name string
		size int64
		open func(t *testing.T) (o harness.Options, adminKey string)
	}{
		{"directory", 1 << 30, func(t *testing.T) (harness.Options, string) {
			return harness.Options{Dir: t.TempDir(), Args: []string{"--egress-allow=127.0.0.0/8"}}, ""
		}},
		{"database", 1 << 30, func(t *testing.T) (harness.Options, string) {
			made := installation.New(t)
			return harness.Options{Dir: made.Dir, Database: made.URL, Args: nodeArgs("a", longLease, harness.Timeout)}, made.AdminKey
		}},
		// The bucket is in the memory of the test, several times.
		{"bucket", 256 << 20, func(t *testing.T) (harness.Options, string) {
			made, b := installation.New(t), newBucketServer(t)
			args := append(nodeArgs("a", longLease, harness.Timeout), b.url("stepmill"))
			return harness.Options{Dir: made.Dir, Database: made.URL, Args: args, Env: credentials}, made.AdminKey
		}},
	} {
		t.Run(place.name, func(t *testing.T) {
			options, key := place.open(t)
			options.Binary = binary
			s := harness.StartWith(t, options)
			if key != "" {
				s.Key = key
			}
			idle := s.PeakMemory(t)
			passFile(t, s, place.size)
			peak := s.PeakMemory(t)
			t.Logf("%d MiB: at most %.1f MB of resident memory, %.1f MB before", place.size>>20, float64(peak)/1e6, float64(idle)/1e6)
			if peak >= maxFileMemory {
				t.Errorf("the server had %d bytes in memory, more than %d", peak, maxFileMemory)
			}
		})
	}
}

// passFile runs a workflow that fetches a file and sends it on, and checks what arrives.
func passFile(t *testing.T, s *harness.Server, size int64) {
	t.Helper()
	type arrival struct{ sum, err string }
	received := make(chan arrival, 10)
	depot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
			_ = writeBlocks(w, size)
			return
		}
		hash := sha256.New()
		_, err := io.Copy(hash, r.Body)
		received <- arrival{hex.EncodeToString(hash.Sum(nil)), fmt.Sprint(err)}
	}))
	t.Cleanup(depot.Close)
	client := flow.NewWorkspace(t, s.Client, "enterprise")
	get := flow.Step("get", "http.request", fmt.Sprintf(`{"url": "%s/a.bin", "response": "file"}`, depot.URL))
	put := flow.Step("put", "http.request", fmt.Sprintf(`{"url": %q, "method": "PUT", "body": "${{ steps.get.output.body }}"}`, depot.URL))
	get["timeout"], put["timeout"] = "15m", "15m"
	id := flow.Define(t, client, get, put)
	client.Expect(t, http.StatusCreated, http.MethodPost, "/v1/workflows/"+id+"/runs", map[string]any{})
	hash := sha256.New()
	if err := writeBlocks(hash, size); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-received:
		if want := (arrival{hex.EncodeToString(hash.Sum(nil)), "<nil>"}); got != want {
			t.Errorf("INVARIANT: the file arrived as %+v, want %+v", got, want)
		}
	case <-time.After(fileTimeout):
		t.Fatalf("the file did not arrive within %v", fileTimeout)
	}
}

// writeBlocks writes a file in which no two blocks are equal.
func writeBlocks(w io.Writer, size int64) error {
	block := make([]byte, 64<<10)
	for n := range size / int64(len(block)) {
		binary.BigEndian.PutUint64(block, uint64(n))
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}
