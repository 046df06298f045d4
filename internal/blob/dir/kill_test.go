package dir_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/internal/blob/dir"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/test/lane"
)

func farFuture() time.Time { return clock.Now().Add(24 * time.Hour) }

// childVariable makes the test binary the child that TestKilledWriter kills. Its
// value is the directory that the child writes to.
const childVariable = "STEPMILL_TEST_BLOB_DIR"

func TestMain(m *testing.M) {
	if root := os.Getenv(childVariable); root != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(root))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeUntilKilled stores one blob after another and prints the id of each when it
// is committed.
func writeUntilKilled(root string) error {
	s, err := dir.Open(root)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		id := blob.NewID()
		if err := blobtest.Put(context.Background(), s, id, contentOf(id), 4096); err != nil {
			return err
		}
		fmt.Println(id)
	}
}

// contentOf returns the bytes of a blob, up to 256 KiB, which follow from its id.
func contentOf(id blob.ID) []byte {
	sum := sha256.Sum256([]byte(id))
	size := binary.BigEndian.Uint32(sum[:]) % (256 << 10)
	return bytes.Repeat(sum[:], int(size)/len(sum)+1)[:size]
}

// A process that is killed while it writes leaves whole blobs and temporary files,
// and every blob that it committed.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "files")
	var committed []blob.ID
	leftovers := 0
	for range lane.Pick(10, 30) {
		committed = append(committed, killWriter(t, root)...)
		entries, err := os.ReadDir(filepath.Join(root, "uploads"))
		if err != nil {
			t.Fatal(err)
		}
		leftovers += len(entries)
		checkWhole(t, open(t, root), committed)
	}
	t.Logf("%d blobs were committed, %d uploads were cut off", len(committed), leftovers)
}

// killWriter starts a child, kills it after it has committed some blobs, and
// returns those that it reported.
func killWriter(t *testing.T, root string) (committed []blob.ID) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+root)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	child.Stderr = &stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		_ = child.Process.Kill()
		_ = child.Wait()
		t.Fatalf("the child printed %q, %s", lines.Text(), stderr.String())
	}
	for range rand.IntN(8) {
		if lines.Scan() {
			committed = append(committed, blob.ID(lines.Text()))
		}
	}
	// Anywhere in the next uploads.
	time.Sleep(rand.N(3 * time.Millisecond))
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		if id := blob.ID(lines.Text()); id.Check() == nil { // the last line may be cut off
			committed = append(committed, id)
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := child.Wait(); err == nil || stderr.Len() > 0 {
		t.Fatalf("the child ended before it was killed: %v, %s", err, stderr.String())
	}
	return committed
}

// checkWhole checks that every stored blob is whole, and that the given ones are
// stored.
func checkWhole(t *testing.T, s *dir.Store, committed []blob.ID) {
	t.Helper()
	stored := map[blob.ID]bool{}
	for after := ""; ; {
		page, err := s.List(t.Context(), paging.Request{Limit: 100, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page.Items {
			stored[info.ID] = true
			got, err := blobtest.Get(t.Context(), s, info.ID, 0, math.MaxInt64)
			if err != nil || !bytes.Equal(got, contentOf(info.ID)) {
				t.Fatalf("%s has %d bytes that differ, or %v", info.ID, len(got), err)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for _, id := range committed {
		if !stored[id] {
			t.Errorf("the committed blob %s is not stored", id)
		}
	}
	if n, err := s.Sweep(t.Context(), farFuture()); n != 0 || err != nil {
		t.Errorf("opening the directory left %d uploads, %v", n, err)
	}
}
