package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/backup"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// openTestFiles opens the files of an installation until close is called.
func openTestFiles(t *testing.T, data config.Data) (c *core, files *file.Service, workspaceID string, closeAll func()) {
	t.Helper()
	c, err := openCore(t.Context(), data, sqlite.Options{}, store.Notify{})
	if err != nil {
		t.Fatal(err)
	}
	closeAll = func() {
		t.Helper()
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
	place, err := openFilesPlace(t.Context(), data, c.db.openFiles)
	if err == nil {
		err = checkFilesPlace(t.Context(), c.store, place, false)
	}
	first, firstErr := c.store.Workspaces.FirstWorkspace(t.Context())
	if err := errors.Join(err, firstErr); err != nil {
		closeAll()
		t.Fatal(err)
	}
	files = file.NewService(file.Config{
		Store: c.store.Files, Blobs: place.blobs, Keys: c.vault, Capacity: dirCapacity, Exclusive: place.name == directoryPlace,
		KeepBytes: func() bool { return locate(data).keepsPrevious(place) }, Log: slog.New(slog.DiscardHandler),
	})
	if err := files.CheckInstallation(t.Context()); err != nil {
		closeAll()
		t.Fatal(err)
	}
	return c, files, first.ID, closeAll
}

// addFile stores a file that a holder refers to.
func addFile(ctx context.Context, c *core, files *file.Service, workspaceID, name string, content []byte) (file.File, error) {
	w, err := files.Create(ctx, file.Owner{WorkspaceID: workspaceID, Plan: auth.Pro}, name, "text/plain")
	if err != nil {
		return file.File{}, err
	}
	defer w.Abort()
	if _, err := w.Write(content); err != nil {
		return file.File{}, err
	}
	f, err := w.Finish()
	if err != nil {
		return file.File{}, err
	}
	recorded, err := c.store.Files.RecordFiles(ctx, []file.Recording{{File: f, Plan: auth.Pro}}, file.Holder(f.ID), nil)
	if err != nil {
		return file.File{}, err
	}
	return recorded[0], nil
}

// addFiles stores files with these contents under their names.
func addFiles(t *testing.T, data config.Data, contents map[string][]byte) {
	t.Helper()
	c, files, workspaceID, closeAll := openTestFiles(t, data)
	defer closeAll()
	for name, content := range contents {
		if _, err := addFile(t.Context(), c, files, workspaceID, name, content); err != nil {
			t.Fatal(err)
		}
	}
}

// checkFiles sweeps and checks that there are exactly the files with these contents, and
// no other blobs.
func checkFiles(t *testing.T, data config.Data, want map[string][]byte) {
	t.Helper()
	c, files, workspaceID, closeAll := openTestFiles(t, data)
	defer closeAll()
	if _, err := files.SweepExpired(t.Context()); err != nil {
		t.Error(err)
	}
	if data.FilesURL == "" { // the server of the tests cannot list uploads
		if err := files.SweepOrphans(t.Context()); err != nil {
			t.Error(err)
		}
	}
	found, err := c.store.Files.Files(t.Context(), workspaceID, clock.Now(), paging.Request{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != len(want) {
		t.Errorf("%d files, want %d", len(found.Items), len(want))
	}
	for _, f := range found.Items {
		r, err := files.OpenFile(t.Context(), f, 0, f.Size)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, want[f.Name]) {
			t.Errorf("%s has %d bytes, want %d: %v", f.Name, len(got), len(want[f.Name]), err)
		}
	}
}

// deleteFiles deletes all files.
func deleteFiles(t *testing.T, data config.Data) {
	t.Helper()
	c, files, workspaceID, closeAll := openTestFiles(t, data)
	defer closeAll()
	found, err := c.store.Files.Files(t.Context(), workspaceID, clock.Now(), paging.Request{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found.Items {
		if err := c.store.Files.DropHolder(t.Context(), file.Holder(f.ID), clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for more := true; more; {
		if more, err = files.SweepExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func randomBytes(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.Read(content)
	return content
}

func someFiles() map[string][]byte {
	return map[string][]byte{"empty": {}, "small": []byte("hello"), "large": randomBytes(300 << 10), "one segment": randomBytes(64 << 10)}
}

// backUp writes a backup to a new file.
func backUp(t *testing.T, data config.Data) string {
	t.Helper()
	target := filepath.Join(t.TempDir(), "backup.tar")
	if err := Backup(t.Context(), data, target, io.Discard); err != nil {
		t.Fatal(err)
	}
	return target
}

// newHome returns an empty data directory with the master key of another one.
func newHome(t *testing.T, was config.Data) config.Data {
	t.Helper()
	home := config.Data{Dir: t.TempDir()}
	key, err := os.ReadFile(was.KeyFile())
	if err == nil {
		err = os.WriteFile(home.KeyFile(), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// A backup has the bytes of all files. A restore keeps those that it replaces, whatever
// the restored installation deletes, and going back restores them.
func TestBackupWithFiles(t *testing.T) {
	t.Parallel()
	d, then := newSealedData(t), someFiles()
	addFiles(t, d.Data, then)
	target := backUp(t, d.Data)

	home := newHome(t, d.Data)
	if previous, err := Restore(t.Context(), home, target); err != nil || previous != "" {
		t.Fatalf("restore: %q, %v", previous, err)
	}
	checkFiles(t, home, then)

	now := map[string][]byte{"later": randomBytes(100_000)}
	maps.Copy(now, then)
	addFiles(t, d.Data, map[string][]byte{"later": now["later"]})
	previous, err := Restore(t.Context(), d.Data, target)
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, d.Data, then)
	deleteFiles(t, d.Data)
	if _, err := Restore(t.Context(), d.Data, previous); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, d.Data, now)
	deleteFiles(t, d.Data)
	if _, err := Restore(t.Context(), d.Data, previous); err != nil { // it is still complete
		t.Fatal(err)
	}
	checkFiles(t, d.Data, now)
}

// A database of an earlier version has no files; those of the current one move aside.
func TestRestoreDatabaseWithoutFiles(t *testing.T) {
	t.Parallel()
	d := newSealedData(t)
	plain := filepath.Join(t.TempDir(), "backup.db")
	if err := sqlite.Copy(filepath.Join(d.Dir, sqlite.FileName), plain); err != nil {
		t.Fatal(err)
	}
	had := someFiles()
	addFiles(t, d.Data, had)
	previous, err := Restore(t.Context(), d.Data, plain)
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, d.Data, nil)
	if _, err := Restore(t.Context(), d.Data, previous); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, d.Data, had)

	// A database with files is useless without them.
	alone := filepath.Join(t.TempDir(), "alone.db")
	if err := sqlite.Copy(filepath.Join(d.Dir, sqlite.FileName), alone); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), d.Data, alone); err == nil || !strings.Contains(err.Error(), "without its files") {
		t.Errorf("a database without its files: %v", err)
	}
	checkFiles(t, d.Data, had)
}

// listing returns the names of everything in a directory.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

// A backup that is truncated or damaged is rejected and changes nothing.
func TestRestoreRejectsDamagedBackups(t *testing.T) {
	t.Parallel()
	d, had := newSealedData(t), someFiles()
	addFiles(t, d.Data, had)
	whole, err := os.ReadFile(backUp(t, d.Data))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	before := listing(t, d.Dir)
	for name, content := range map[string][]byte{
		"half": whole[:len(whole)/2], "without its end": whole[:len(whole)-2560], "flipped": flipped, "only its first block": whole[:512],
		"with a byte more": append(bytes.Clone(whole[:len(whole)-1024]), randomBytes(1024)...),
	} {
		source := filepath.Join(t.TempDir(), "damaged.tar")
		if err := os.WriteFile(source, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), d.Data, source); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := listing(t, d.Dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	checkFiles(t, d.Data, had)
}

// A restore that is interrupted between any two of its steps can be repeated, or undone.
func TestInterruptedRestoreWithFiles(t *testing.T) {
	t.Parallel()
	const db, files, suffix = sqlite.FileName, filesFolder, ".before-restore-20260101-000000.000000"
	for name, interrupt := range map[string][]string{
		"after the database was moved":      {db, db + suffix},
		"after the files were moved":        {db, db + suffix, files, files + suffix},
		"after the new files were in place": {db, db + suffix, files, files + suffix, files + partialSuffix, files},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, then := newSealedData(t), someFiles()
			addFiles(t, d.Data, then)
			target := backUp(t, d.Data)
			now := map[string][]byte{"later": []byte("later")}
			maps.Copy(now, then)
			addFiles(t, d.Data, map[string][]byte{"later": now["later"]})
			if err := newRestore(d.Data).prepare(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			rename(t, d.Data, interrupt...)
			if err := (directory{d.Data}).checkExists(); err == nil || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("a start: %v", err)
			}
			previous := filepath.Join(d.Dir, db+suffix)
			if got, err := Restore(t.Context(), d.Data, target); err != nil || got != previous {
				t.Fatalf("the repetition: %q, %v", got, err)
			}
			checkFiles(t, d.Data, then)
			if _, err := Restore(t.Context(), d.Data, previous); err != nil {
				t.Fatal(err)
			}
			checkFiles(t, d.Data, now)
		})
	}
}

// A backup is complete or fails: it does not leave out a file.
func TestBackupFailsWithoutBytes(t *testing.T) {
	t.Parallel()
	d := newSealedData(t)
	addFiles(t, d.Data, map[string][]byte{"a": randomBytes(1000)})
	blobs, err := filepath.Glob(filepath.Join(d.Dir, filesFolder, "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	checkVerification(t, d.Data, "")
	for _, path := range blobs {
		if strings.Contains(path, "marker") {
			continue
		}
		for _, test := range []struct {
			damage  func() error
			problem string
		}{
			{func() error { return os.Truncate(path, 10) }, "damaged"},
			{func() error { return os.Truncate(path, 5000) }, "damaged"},
			{func() error { return os.Remove(path) }, "missing"},
		} {
			if err := test.damage(); err != nil {
				t.Fatal(err)
			}
			checkVerification(t, d.Data, test.problem)
			target := filepath.Join(t.TempDir(), "backup.tar")
			if err := Backup(t.Context(), d.Data, target, io.Discard); err == nil || !strings.Contains(err.Error(), "stepmill files verify") {
				t.Errorf("a backup without bytes: %v", err)
			}
			if left, err := filepath.Glob(target + "*"); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		}
	}
}

// checkVerification checks what the verification finds about the only file.
func checkVerification(t *testing.T, data config.Data, problem string) {
	t.Helper()
	err := WithAdmin(t.Context(), data, nil, io.Discard, io.Discard, func(admin *Admin) error {
		result, err := admin.VerifyFiles(t.Context())
		if result.Blobs != 1 || problem == "" && len(result.Damaged) > 0 ||
			problem != "" && (len(result.Damaged) != 1 || result.Damaged[0].Problem != problem || result.Damaged[0].Name != "a") {
			t.Errorf("got %+v, want %q", result, problem)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// startWithBackups starts a server that runs the backup command.
func startWithBackups(t *testing.T, data config.Data) *testServer {
	t.Helper()
	return startServer(t, data, WithCommands(func(ctx context.Context, admin *Admin, _ []string, stdout, stderr io.Writer) int {
		if err := admin.WriteBackup(ctx, stdout, stderr); err != nil {
			_, _ = io.WriteString(stderr, err.Error())
			return 1
		}
		return 0
	}))
}

// Backups are taken while files are created, deleted and swept. Each of them has the
// bytes of all its files.
func TestBackupWhileFilesChange(t *testing.T) {
	t.Parallel()
	d := newSealedData(t)
	s := startWithBackups(t, d.Data)
	files, c := s.running.files, s.running.data.core
	first, err := c.store.Workspaces.FirstWorkspace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for range 2 {
		busy.Go(func() {
			var mine []file.File
			for ctx.Err() == nil {
				content := randomBytes(mathrand.IntN(200_000))
				f, err := addFile(ctx, c, files, first.ID, "name", content)
				if err == nil {
					mine = append(mine, f)
				}
				if err == nil && len(mine) > 5 {
					err = c.store.Files.DropHolder(ctx, file.Holder(mine[0].ID), clock.Now())
					mine = mine[1:]
				}
				if err == nil {
					_, err = files.SweepExpired(ctx)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var taken []string
	for range 5 {
		eventually(t, "more files are deleted", func() bool { return files.Stats().BlobsDeleted > int64(len(taken)+1)*5 })
		taken = append(taken, backUp(t, d.Data))
	}
	stop()
	busy.Wait()
	s.close()
	for _, target := range taken {
		home := newHome(t, d.Data)
		if _, err := Restore(t.Context(), home, target); err != nil {
			t.Fatal(err)
		}
		checkIntact(t, home)
	}
}

// checkIntact checks that the bytes of every file can be read.
func checkIntact(t *testing.T, data config.Data) {
	t.Helper()
	c, files, workspaceID, closeAll := openTestFiles(t, data)
	defer closeAll()
	found, err := c.store.Files.Files(t.Context(), workspaceID, clock.Now(), paging.Request{Limit: 1000})
	if err != nil || len(found.Items) == 0 {
		t.Fatalf("%d files, %v", len(found.Items), err)
	}
	for _, f := range found.Items {
		r, err := files.OpenFile(t.Context(), f, 0, f.Size)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			err = errors.Join(err, r.Close())
		}
		if err != nil {
			t.Errorf("file %s: %v", f.ID, err)
		}
	}
}

// A backup whose reader does not read keeps bytes only until it is cancelled.
func TestStalledBackupReleasesBytes(t *testing.T) {
	t.Parallel()
	d := newSealedData(t)
	s := startWithBackups(t, d.Data)
	admin, err := newAdmin(t.Context(), s.running.data.core, d.Dir)
	if err != nil {
		t.Fatal(err)
	}
	admin.files, admin.openPlace = s.running.files, func() (filesPlace, error) { return s.running.filesPlace, nil }
	f, err := addFile(t.Context(), admin.core, admin.files, admin.first.ID, "name", randomBytes(100_000))
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- admin.WriteBackup(ctx, writer, io.Discard) }()
	if _, err := io.ReadFull(reader, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	stored := func() int {
		page, err := s.running.filesPlace.blobs.List(t.Context(), paging.Request{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Items)
	}
	before := stored()
	if err := admin.core.store.Files.DropHolder(t.Context(), file.Holder(f.ID), clock.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the row is deleted", func() bool {
		_, err := admin.files.SweepExpired(t.Context())
		found, getErr := admin.core.store.Files.File(t.Context(), f.WorkspaceID, f.ID, f.CreatedAt)
		return errors.Join(err, getErr) == nil && found == nil
	})
	if got := stored(); got != before {
		t.Errorf("%d blobs, want %d", got, before)
	}
	cancel() // while the backup still waits for its reader
	eventually(t, "the bytes are deleted", func() bool {
		_, err := admin.files.SweepExpired(t.Context())
		return err == nil && stored() == before-1
	})
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	if err := <-ended; err == nil {
		t.Error("the backup succeeded")
	}
	_ = writer.Close()
}

// Deleting a workflow deletes the files that only it refers to, with their bytes.
func TestDeletedWorkflowLeavesNoBytes(t *testing.T) {
	t.Parallel()
	s := startWithBackups(t, config.Data{Dir: t.TempDir()})
	c := s.running.data.core
	first, err := c.store.Workspaces.FirstWorkspace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	workflow := s.create("/v1/workflows", `{"name": "Holder"}`)
	f, err := addFile(t.Context(), c, s.running.files, first.ID, "name", randomBytes(1000))
	if err == nil {
		err = c.store.Files.HoldFiles(t.Context(), first.ID, file.HeldByVersion(workflow, 1), []string{f.ID}, clock.Now())
	}
	if err == nil {
		err = c.store.Files.DropHolder(t.Context(), file.Holder(f.ID), clock.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	stored := func() bool {
		r, err := s.running.filesPlace.blobs.Open(t.Context(), f.Blob, 0, 1)
		if err != nil {
			return false
		}
		return r.Close() == nil
	}
	if !stored() {
		t.Fatal("the bytes are missing")
	}
	if status, text := s.call("DELETE", "/v1/workflows/"+workflow, ""); status != 204 {
		t.Fatal(status, text)
	}
	eventually(t, "the bytes are deleted", func() bool { return !stored() })
}
