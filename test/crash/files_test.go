package crash_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// depot serves a large file and receives it again.
type depot struct {
	*httptest.Server
	content []byte
	sum     string
	moved   atomic.Int64 // bytes that were sent or received

	mu       sync.Mutex
	received []string // the hashes of bodies that arrived completely
}

func newDepot(t *testing.T, size int) *depot {
	d := &depot{content: make([]byte, size)}
	random := harness.Random(harness.Seed(t), 0)
	for i := range d.content {
		d.content[i] = byte(random.Uint32())
	}
	sum := sha256.Sum256(d.content)
	d.sum = hex.EncodeToString(sum[:])
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

func (d *depot) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Length", strconv.Itoa(len(d.content)))
		_, _ = io.Copy(d.count(w), struct{ io.Reader }{bytes.NewReader(d.content)}) // in blocks
		return
	}
	hash := sha256.New()
	if _, err := io.Copy(d.count(hash), r.Body); err != nil {
		return // the sender died
	}
	d.mu.Lock()
	d.received = append(d.received, hex.EncodeToString(hash.Sum(nil)))
	d.mu.Unlock()
}

// count returns a writer that counts the bytes written to another one.
func (d *depot) count(to io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		n, err := to.Write(p)
		d.moved.Add(int64(n))
		return n, err
	})
}

type writerFunc func(p []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// check reports whether what arrived is what was sent.
func (d *depot) check(t *testing.T, deaths int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.received); n == 0 || n > 1+deaths {
		t.Errorf("INVARIANT: the file arrived %d times after %d deaths", n, deaths)
	}
	for _, sum := range d.received {
		if sum != d.sum {
			t.Errorf("INVARIANT: a file arrived with the hash %s, want %s", sum, d.sum)
		}
	}
	d.received = nil
}

var fileRounds = flag.Int("file-rounds", 0, "how often TestFilesAfterKills sends a file; the lane decides if it is 0")

// A large file passes from one server through two steps to another one while its server
// is killed at random moments, between the first byte of the download and the last one of
// the upload. It arrives byte by byte, it is stored once, and what the deaths left behind
// is removed.
func TestFilesAfterKills(t *testing.T) {
	t.Parallel()
	rounds, size := lane.Pick(3, 50), lane.Pick(16, 64)<<20
	if *fileRounds > 0 {
		rounds = *fileRounds
	}
	d := newDepot(t, size)
	random := harness.Random(harness.Seed(t), 1)
	s := harness.Start(t, t.TempDir(), egress)
	client := flow.NewWorkspace(t, s.Client, "enterprise")
	id := flow.Define(t, client,
		flow.Step("get", "http.request", fmt.Sprintf(`{"url": "%s/a.zip", "response": "file"}`, d.URL)),
		flow.Step("set", "data.set", `{"values": {"file": "${{ steps.get.output.body }}"}}`),
		flow.Step("put", "http.request", fmt.Sprintf(`{"url": %q, "method": "PUT", "body": "${{ steps.set.output.file }}"}`, d.URL)))
	for round := range rounds {
		started := startRun(t, client, id, int64(round))
		for range 1 + random.IntN(2) {
			at := d.moved.Load() + random.Int64N(2*int64(size)+1)
			harness.Eventually(t, "the file has moved on, or has arrived", func() bool {
				return d.moved.Load() >= at || getRun(t, client, started.ID).Status != running
			})
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // also hits the commit of a step
			s.Kill(t)
			s = restart(t, s, egress)
			client = harness.NewClient(s.URL, client.Key)
		}
		if end := awaitEnd(t, client, started.ID); end.Status != succeeded {
			t.Fatalf("round %d: the run is %s: %+v", round, end.Status, end.Error)
		}
		d.check(t, 3) // one may belong to the round before
		if t.Failed() {
			t.Fatalf("round %d failed", round)
		}
	}
	s.Kill(t)
	count := func() int { return countBlobs(t, s.Dir) }
	if harness.OnPostgres() {
		shared := openShared(t, s.Dir)
		ageBlobs(t, shared)
		count = func() int {
			return tables.Number(t, shared, `SELECT count(*) FROM blobs WHERE id NOT LIKE 'stepmill%'`)
		}
	}
	s = restart(t, s, egress)
	harness.Eventually(t, "what nothing refers to is removed", func() bool { return count() == 1 })
	s.Stop(t)
	db := openCopy(t, s.Dir)
	checkTables(t, db, "")
	for what, want := range map[string]int{
		"SELECT count(*) FROM files":                                rounds,
		"SELECT count(*) FROM file_refs":                            rounds,
		"SELECT count(*) FROM file_blobs":                           1, // the bytes of all files are equal
		"SELECT files FROM file_blobs":                              rounds,
		"SELECT count(*) FROM files WHERE expires_at IS NOT NULL":   0,
		"SELECT count(*) FROM steps WHERE output_files IS NOT NULL": 2 * rounds,
	} {
		if got := tables.Number(t, db, what); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
}

// ageBlobs makes all blobs and unfinished uploads in PostgreSQL two days old. There,
// another process could still be writing those that are younger than a day.
func ageBlobs(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), `UPDATE blobs SET created_at = created_at - $1`, (48 * time.Hour).Microseconds()); err != nil {
		t.Fatal(err)
	}
}

// countBlobs returns how many blobs there are in a data directory.
func countBlobs(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(dir, "files"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasPrefix(entry.Name(), "stepmill") && !strings.HasPrefix(entry.Name(), ".") {
			n++
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return n
}
