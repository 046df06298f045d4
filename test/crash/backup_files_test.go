package crash_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// upload uploads a file and returns its id.
func upload(ctx context.Context, c *harness.Client, content []byte) (string, error) {
	response, err := c.Open(ctx, http.MethodPost, "/v1/files?name=a.bin", bytes.NewReader(content), "Content-Type", "application/x-test")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("upload: %d %s", response.StatusCode, body)
	}
	var made struct{ ID string }
	err = json.Unmarshal(body, &made)
	return made.ID, err
}

// randomContent returns up to n random bytes.
func randomContent(n int64) []byte {
	size, _ := rand.Int(rand.Reader, big.NewInt(n))
	content := make([]byte, size.Int64())
	_, _ = rand.Read(content)
	return content
}

// populateFiles uploads files.
func populateFiles(t *testing.T, c *harness.Client) {
	t.Helper()
	for _, content := range [][]byte{{}, []byte("small"), bytes.Repeat([]byte("0123456789"), 70_000)} {
		if _, err := upload(t.Context(), c, content); err != nil {
			t.Fatal(err)
		}
	}
}

// uploads are files that are being created and deleted.
type uploads struct {
	mu    sync.Mutex
	files map[string][]byte // that exist
	ended int               // the number of deleted files
}

// run creates and deletes files until the context ends.
func (u *uploads) run(ctx context.Context, c *harness.Client) error {
	var mine []string
	for ctx.Err() == nil {
		content := randomContent(300_000)
		id, err := upload(ctx, c, content)
		if err != nil {
			return err
		}
		u.mu.Lock()
		u.files[id] = content
		u.mu.Unlock()
		if mine = append(mine, id); len(mine) < 8 {
			continue
		}
		u.mu.Lock()
		delete(u.files, mine[0]) // before it is deleted, so that what remains does exist
		u.ended++
		u.mu.Unlock()
		if response, err := c.Do(ctx, http.MethodDelete, "/v1/files/"+mine[0], nil); err != nil || response.Status != http.StatusNoContent {
			return fmt.Errorf("delete: %w %s", err, response.Body)
		}
		mine = mine[1:]
	}
	return nil
}

// copyFiles returns the files that exist.
func (u *uploads) copyFiles() (files map[string][]byte, ended int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.files), u.ended
}

// Backups are taken while files are created and deleted. Restored elsewhere, each has all
// files that existed before it started and after it ended, and the bytes of all its files.
func TestBackupOfFilesUnderLoad(t *testing.T) {
	lane.LongOnly(t)
	harness.EmbeddedOnly(t, "backups of PostgreSQL are made with its own tools")
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	u := &uploads{files: map[string][]byte{}}
	for range 10 { // they stay
		content := randomContent(500_000)
		id, err := upload(t.Context(), s.Client, content)
		if err != nil {
			t.Fatal(err)
		}
		u.files[id] = content
	}
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for range 3 {
		busy.Go(func() {
			if err := u.run(ctx, s.Client); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	type taken struct {
		file          string
		before, after map[string][]byte
	}
	var backups []taken
	for i := range lane.Pick(2, 6) {
		harness.Eventually(t, "more files are deleted", func() bool { _, ended := u.copyFiles(); return ended > 10*(i+1) || t.Failed() })
		b := taken{file: filepath.Join(t.TempDir(), "backup.tar")}
		b.before, _ = u.copyFiles()
		if r := harness.Run(t, nil, "backup", b.file, "--data-dir", s.Dir); r.Code != 0 {
			t.Fatalf("backup: exit code %d: %s", r.Code, r.Stderr)
		}
		b.after, _ = u.copyFiles()
		backups = append(backups, b)
	}
	stop()
	busy.Wait()
	s.Stop(t)
	for _, b := range backups {
		home := newDirWithKey(t, s.Dir)
		if r := harness.Run(t, nil, "restore", b.file, "--data-dir", home); r.Code != 0 {
			t.Fatalf("restore: exit code %d: %s", r.Code, r.Stderr)
		}
		if r := harness.Run(t, nil, "files", "verify", "--data-dir", home); r.Code != 0 {
			t.Errorf("verify: exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
		restored := harness.Start(t, home)
		restored.Key = s.Key
		compared := 0
		for id, content := range b.before {
			if _, exists := b.after[id]; !exists {
				continue // it was deleted meanwhile
			}
			compared++
			if got := restored.Expect(t, 200, "GET", "/v1/files/"+id, nil).Body; !bytes.Equal(got, content) {
				t.Errorf("file %s has %d bytes, want %d", id, len(got), len(content))
			}
		}
		if compared == 0 {
			t.Error("no file existed throughout the backup")
		}
		restored.Stop(t)
	}
}

// A restore of a truncated backup, or onto a disk that is full,
// leaves the data as it was.
func TestFailedRestore(t *testing.T) {
	lane.LongOnly(t)
	harness.EmbeddedOnly(t, "backups of PostgreSQL are made with its own tools")
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	content := bytes.Repeat([]byte("0123456789"), 300_000)
	id, err := upload(t.Context(), s.Client, content)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup.tar")
	if r := harness.Run(t, nil, "backup", file, "--data-dir", s.Dir); r.Code != 0 {
		t.Fatalf("backup: exit code %d: %s", r.Code, r.Stderr)
	}
	s.Stop(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	truncated := filepath.Join(t.TempDir(), "truncated.tar")
	if err := os.WriteFile(truncated, whole[:len(whole)-10_000], 0o600); err != nil {
		t.Fatal(err)
	}
	if r := harness.Run(t, nil, "restore", truncated, "--data-dir", s.Dir); r.Code != 1 || !strings.Contains(r.Stderr, "damaged or incomplete") {
		t.Errorf("a truncated backup: exit code %d: %s", r.Code, r.Stderr)
	}
	if r := runWithFileLimit(t, 2000, "restore", file, "--data-dir", s.Dir); r.Code != 1 || !strings.Contains(r.Stderr, "nothing was changed") {
		t.Errorf("a full disk: exit code %d: %s", r.Code, r.Stderr)
	}
	for _, pattern := range []string{"*.partial", "*before-restore*"} {
		if left, err := filepath.Glob(filepath.Join(s.Dir, pattern)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	}
	again := harness.Start(t, s.Dir)
	again.Key = s.Key
	if got := again.Expect(t, 200, "GET", "/v1/files/"+id, nil).Body; !bytes.Equal(got, content) {
		t.Errorf("the file has %d bytes, want %d", len(got), len(content))
	}
}
