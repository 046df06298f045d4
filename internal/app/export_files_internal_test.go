package app

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/test/postgres"
)

func exportAll(t *testing.T, data config.Data) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := ExportTo(t.Context(), data, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func importAll(t *testing.T, data config.Data, content []byte) {
	t.Helper()
	if _, err := ImportFrom(t.Context(), data, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// newSharedHome returns an empty shared database with the master key of a directory.
func newSharedHome(t *testing.T, was config.Data) config.Data {
	t.Helper()
	home := newHome(t, was)
	home.URL, home.Connections = postgres.Shared(t).NewDatabase(t), 20
	return home
}

// newBucket returns the settings for an empty bucket. It sets the credentials in the
// environment, so the test cannot be parallel.
func newBucket(t *testing.T, data config.Data) config.Data {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	memory := s3mem.New()
	server := httptest.NewServer(gofakes3.New(memory).Server())
	t.Cleanup(server.Close)
	if err := memory.CreateBucket("files"); err != nil {
		t.Fatal(err)
	}
	data.FilesURL = "s3://files/prefix?region=eu-central-1&endpoint=" + server.URL
	return data
}

// countBlobs returns the number of blobs in the place of the files.
func countBlobs(t *testing.T, data config.Data) int {
	t.Helper()
	place, err := openFilesPlace(t.Context(), data, func() (filesPlace, error) { return openDirectory(data.Dir) })
	if err != nil {
		t.Fatal(err)
	}
	page, err := place.blobs.List(t.Context(), paging.Request{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Items)
}

// Files move from a directory to PostgreSQL and back, without orphans.
func TestMoveFilesToPostgresAndBack(t *testing.T) {
	t.Parallel()
	d, had := newSealedData(t), someFiles()
	addFiles(t, d.Data, had)
	orphan := filepath.Join(d.Dir, filesFolder, "aa", "aaaaaaaaaaaaaaaaaaaaaaaaaa")
	if err := errors.Join(os.MkdirAll(filepath.Dir(orphan), 0o700), os.WriteFile(orphan, []byte("nobody knows me"), 0o600)); err != nil {
		t.Fatal(err)
	}
	shared, content := newSharedHome(t, d.Data), exportAll(t, d.Data)
	rejectDamaged(t, shared, content)
	importAll(t, shared, content)
	checkFiles(t, shared, had)
	home := newHome(t, d.Data)
	importAll(t, home, exportAll(t, shared))
	checkFiles(t, home, had)
	if got, want := countBlobs(t, home), len(had)+1; got != want { // and the mark
		t.Errorf("%d blobs, want %d", got, want)
	}
}

// Files move to a bucket and back, and into another database with the same bucket.
func TestMoveFilesToBucketAndBack(t *testing.T) { //nolint:paralleltest // it sets variables of the environment
	d, had := newSealedData(t), someFiles()
	addFiles(t, d.Data, had)
	bucket := newBucket(t, newHome(t, d.Data))
	importAll(t, bucket, exportAll(t, d.Data))
	checkFiles(t, bucket, had)
	content := exportAll(t, bucket)

	same := newHome(t, d.Data)
	same.FilesURL = bucket.FilesURL
	damaged := bytes.Clone(content)
	damaged[len(damaged)-9] ^= 1
	if _, err := ImportFrom(t.Context(), same, bytes.NewReader(damaged)); err == nil {
		t.Error("a damaged export was imported")
	}
	checkFiles(t, bucket, had) // the rollback has deleted none of them
	importAll(t, same, content)
	checkFiles(t, same, had)

	// Whoever forgets the setting is told so.
	without := bucket
	without.FilesURL = ""
	if _, err := ExportTo(t.Context(), without, &bytes.Buffer{}, io.Discard); err == nil || !strings.Contains(err.Error(), "correct --files-url") {
		t.Errorf("an export without the bucket: %v", err)
	}
	home := newHome(t, d.Data)
	importAll(t, home, content)
	checkFiles(t, home, had)
}

// A backup has the bytes that are in a bucket. They are restored into a bucket or a
// directory, and those of the previous data stay in the bucket.
func TestBackupOfBucket(t *testing.T) { //nolint:paralleltest // it sets variables of the environment
	d := newBucketData(t)
	then := someFiles()
	addFiles(t, d, then)
	target := backUp(t, d)
	home := newHome(t, d)
	if _, err := Restore(t.Context(), home, target); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, home, then)
	home.FilesURL = d.FilesURL
	if err := checkPlaceOf(t, home); err == nil {
		t.Error("the restored installation still names the bucket")
	}

	now := map[string][]byte{"later": randomBytes(1000)}
	addFiles(t, d, now)
	maps.Copy(now, then)
	previous, err := Restore(t.Context(), d, target)
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, d, then)
	deleteFiles(t, d)
	if _, err := Restore(t.Context(), d, previous); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, d, now)

	// Once the previous databases are gone, bytes are deleted.
	kept, err := filepath.Glob(filepath.Join(d.Dir, "*"+previousSuffix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	deleteFiles(t, d)
	if got := countBlobs(t, d); got != 1 {
		t.Errorf("%d blobs, want only the mark", got)
	}
}

// newBucketData returns an installation with files in a bucket.
func newBucketData(t *testing.T) config.Data {
	t.Helper()
	return newBucket(t, newSealedData(t).Data)
}

func checkPlaceOf(t *testing.T, data config.Data) error {
	t.Helper()
	c, release, err := openExclusive(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.openRecordedPlace(t.Context(), data)
	return errors.Join(err, release())
}

// rejectDamaged checks that parts of an export are not imported and leave no files.
func rejectDamaged(t *testing.T, home config.Data, content []byte) {
	t.Helper()
	for _, damaged := range [][]byte{content[:len(content)/2], content[:len(content)-100]} {
		if _, err := ImportFrom(t.Context(), home, bytes.NewReader(damaged)); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("a truncated export: %v", err)
		}
		if home.Shared() {
			continue
		}
		if got := countBlobs(t, home); got != 0 {
			t.Errorf("%d blobs are left", got)
		}
	}
}

// A stream that turns out to be damaged leaves nothing, and the import can be repeated.
func TestImportRollsBackFiles(t *testing.T) {
	t.Parallel()
	d, had := newSealedData(t), someFiles()
	addFiles(t, d.Data, had)
	content, home := exportAll(t, d.Data), newHome(t, d.Data)
	rejectDamaged(t, home, content)
	importAll(t, home, content)
	checkFiles(t, home, had)
}

// What an interrupted import has stored is used, unless it differs.
func TestImportUsesStoredFiles(t *testing.T) {
	t.Parallel()
	d, had := newSealedData(t), someFiles()
	addFiles(t, d.Data, had)
	content := exportAll(t, d.Data)
	paths, err := filepath.Glob(filepath.Join(d.Dir, filesFolder, "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func([]byte) []byte{nil, func(b []byte) []byte { return b[1:] }, func(b []byte) []byte { return append(b, 0) }, func(b []byte) []byte { b[50] ^= 1; return b }} {
		home := newHome(t, d.Data)
		for _, path := range paths[:2] {
			stored, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			isMark := strings.Contains(path, "marker")
			if change != nil && !isMark {
				stored = change(stored)
			}
			copied := strings.Replace(path, d.Dir, home.Dir, 1)
			if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o700), os.WriteFile(copied, stored, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := ImportFrom(t.Context(), home, bytes.NewReader(content))
		if change == nil {
			if err != nil {
				t.Fatal(err)
			}
			checkFiles(t, home, had)
		} else if err == nil || !strings.Contains(err.Error(), "other bytes") {
			t.Errorf("a place with other bytes: %v", err)
		}
	}
}

// The place of another installation is left alone.
func TestImportRejectsPlaceOfAnother(t *testing.T) {
	t.Parallel()
	d, other := newSealedData(t), newSealedData(t)
	addFiles(t, d.Data, someFiles())
	addFiles(t, other.Data, someFiles())
	home := newHome(t, d.Data)
	if err := os.Rename(filepath.Join(other.Dir, filesFolder), filepath.Join(home.Dir, filesFolder)); err != nil {
		t.Fatal(err)
	}
	before := countBlobs(t, home)
	if _, err := ImportFrom(t.Context(), home, bytes.NewReader(exportAll(t, d.Data))); err == nil || !strings.Contains(err.Error(), "another installation") {
		t.Errorf("an import into the place of another installation: %v", err)
	}
	if got := countBlobs(t, home); got != before {
		t.Errorf("%d blobs, want %d", got, before)
	}
}
