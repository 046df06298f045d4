package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/uid"
)

func testFiles(t *testing.T, w *harness) {
	t.Run("record, read and delete", func(t *testing.T) { testRecordFile(t, w) })
	t.Run("equal bytes", func(t *testing.T) { testEqualBytes(t, w) })
	t.Run("references", func(t *testing.T) { testFileRefs(t, w) })
	t.Run("limits", func(t *testing.T) { testFileLimits(t, w) })
	t.Run("tenants", func(t *testing.T) { testFileTenants(t, w) })
	t.Run("purge of holders", func(t *testing.T) { testPurgeHolders(t, w) })
	t.Run("races", func(t *testing.T) { testFileRaces(t, w) })
	t.Run("place", func(t *testing.T) { testFilesPlace(t, w) }) // last, because it deletes rows
}

// newFile returns a file with the given content, whose bytes are in a new blob.
func newFile(workspaceID, content string) file.Recording {
	sum := sha256.Sum256([]byte(content))
	now := clock.Now()
	return file.Recording{Plan: auth.Free, File: file.File{
		ID: uid.At(uid.File, now), WorkspaceID: workspaceID, Name: "a.txt", Type: "text/plain", Size: int64(len(content)),
		SHA256: hex.EncodeToString(sum[:]), Blob: blob.NewID(), CreatedAt: now,
	}}
}

// recordOne records one file.
func recordOne(ctx context.Context, s *store.DB, r file.Recording, holder file.Holder, entries ...audit.Entry) (file.File, error) {
	recorded, err := s.Files.RecordFiles(ctx, []file.Recording{r}, holder, entries)
	if err != nil {
		return file.File{}, err
	}
	return recorded[0], nil
}

// recordFile records a file with the given content.
func (w *harness) recordFile(t *testing.T, workspaceID, content string, holder file.Holder) file.File {
	t.Helper()
	return must(recordOne(t.Context(), w.DB, newFile(workspaceID, content), holder))(t)
}

// checkFiles compares the counters of a workspace with its rows.
func (w *harness) checkFiles(t *testing.T, workspaceID string) {
	t.Helper()
	have := must(w.Files.FileUsage(t.Context(), workspaceID))(t)
	equal(t, "counters", have, file.Usage{
		Files:     int64(w.count(t, `SELECT count(*) FROM files WHERE workspace_id = $1`, workspaceID)),
		Bytes:     int64(w.count(t, `SELECT coalesce(sum(size), 0) FROM file_blobs WHERE workspace_id = $1`, workspaceID)),
		Uploading: int64(w.count(t, `SELECT coalesce(sum(size), 0) FROM uploads WHERE workspace_id = $1`, workspaceID)),
	})
	for what, query := range map[string]string{
		"files with the wrong number of holders": `SELECT count(*) FROM files f WHERE workspace_id = $1 AND (holders <> (SELECT count(*) FROM file_refs r WHERE r.file_id = f.id) OR (holders = 0) <> (expires_at IS NOT NULL))`,
		"blobs with the wrong number of files":   `SELECT count(*) FROM file_blobs b WHERE workspace_id = $1 AND (files <> (SELECT count(*) FROM files f WHERE f.blob_id = b.id) OR files = 0)`,
		"references to files that do not exist":  `SELECT count(*) FROM file_refs WHERE workspace_id = $1 AND file_id NOT IN (SELECT id FROM files)`,
		"files without bytes":                    `SELECT count(*) FROM files WHERE workspace_id = $1 AND blob_id NOT IN (SELECT id FROM file_blobs)`,
		"blobs in use whose bytes are deleted":   `SELECT count(*) FROM file_blobs WHERE workspace_id = $1 AND id IN (SELECT id FROM purged_blobs)`,
	} {
		equal(t, what, w.count(t, query, workspaceID), 0)
	}
}

// abandoned reports whether the bytes of a blob are to be deleted.
func (w *harness) abandoned(t *testing.T, id blob.ID) bool {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM purged_blobs WHERE id = $1`, string(id)) == 1
}

func (w *harness) sweepFiles(t *testing.T, now time.Time) (removed int) {
	t.Helper()
	for n := -1; n != 0; removed += n {
		n = must(w.Files.SweepFiles(t.Context(), now, 2))(t)
	}
	return removed
}

func testRecordFile(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	r := newFile(ws, "hello")
	r.File.List = &expr.FileList{Count: 3, First: []any{map[string]any{"n": 9007199254740993}, "x"}}
	want := r.File
	expires := r.File.CreatedAt.Add(file.UnreferencedFor)
	want.ExpiresAt = &expires
	entry := newEntry(ws, "file.uploaded", r.File.ID)
	equal(t, "recorded", must(recordOne(ctx, w.DB, r, "", entry))(t), want)
	equal(t, "read", found(w.Files.File(ctx, ws, want.ID, expires.Add(-1)))(t), want)
	missing(w.Files.File(ctx, ws, want.ID, expires))(t, "an expired file")
	equal(t, "listed", must(w.Files.Files(ctx, ws, clock.Now(), fullPage))(t).Items, []file.File{want})
	empty(w.Files.Files(ctx, ws, expires, fullPage))(t, "expired files")
	w.checkFiles(t, ws)
	deleted := newEntry(ws, "file.deleted", want.ID)
	returns(w.Files.DeleteFile(ctx, ws, uid.New(uid.File), clock.Now(), deleted))(t, "delete another file", file.NotThere)
	returns(w.Files.DeleteFile(ctx, ws, want.ID, clock.Now(), deleted))(t, "delete", file.Deleted)
	returns(w.Files.DeleteFile(ctx, ws, want.ID, clock.Now(), deleted))(t, "delete it again", file.NotThere)
	missing(w.Files.File(ctx, ws, want.ID, clock.Now()))(t, "a deleted file")
	equal(t, "its bytes are to be deleted", w.abandoned(t, want.Blob), true)
	w.checkFiles(t, ws)
	if err := w.Files.ForgetBlobs(ctx, []blob.ID{want.Blob}); err != nil {
		t.Fatal(err)
	}
	equal(t, "its bytes are deleted", w.abandoned(t, want.Blob), false)
	equal(t, "in the audit log", w.count(t, `SELECT count(*) FROM audit WHERE workspace_id = $1 AND action LIKE 'file.%'`, ws), 2)
}

func testEqualBytes(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	first, second := newFile(ws, "same"), newFile(ws, "same")
	must(recordOne(ctx, w.DB, first, ""))(t)
	shared := must(recordOne(ctx, w.DB, second, ""))(t)
	equal(t, "the blob of the second", shared.Blob, first.File.Blob)
	equal(t, "the new bytes are to be deleted", w.abandoned(t, second.File.Blob), true)
	equal(t, "those of another workspace", w.recordFile(t, stranger, "same", "").Blob == first.File.Blob, false)
	w.checkFiles(t, ws)
	equal(t, "bytes", must(w.Files.FileUsage(ctx, ws))(t), file.Usage{Files: 2, Bytes: 4})
	returns(w.Files.DeleteFile(ctx, ws, first.File.ID, clock.Now(), newEntry(ws, "file.deleted", first.File.ID)))(t, "delete the first", file.Deleted)
	equal(t, "the bytes of the second remain", w.abandoned(t, shared.Blob), false)
	w.checkFiles(t, ws)
	returns(w.Files.DeleteFile(ctx, ws, shared.ID, clock.Now(), newEntry(ws, "file.deleted", shared.ID)))(t, "delete the second", file.Deleted)
	equal(t, "the bytes are to be deleted", w.abandoned(t, shared.Blob), true)
	third := w.recordFile(t, ws, "same", "")
	equal(t, "the same bytes again are new ones", third.Blob == shared.Blob, false)
	w.checkFiles(t, ws)
	equal(t, "known blobs", must(w.Files.KnownBlobs(ctx, third.Blob, third.Blob))(t), []blob.ID{third.Blob})
	equal(t, "unknown blobs", must(w.Files.KnownBlobs(ctx, shared.Blob, shared.Blob))(t), nil)
}

func testFileRefs(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	a, b := w.recordFile(t, ws, "a", ""), w.recordFile(t, ws, "b", "run_1")
	equal(t, "the expiry of a file that is held", b.ExpiresAt, (*time.Time)(nil))
	now := a.CreatedAt.Add(time.Hour)
	hold := func(holder file.Holder, ids ...string) error { return w.Files.HoldFiles(ctx, ws, holder, ids, now) }
	for _, holder := range []file.Holder{"run_2", "run_2", "wf_1/3"} {
		if err := hold(holder, b.ID, a.ID, a.ID); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "held", found(w.Files.File(ctx, ws, a.ID, a.CreatedAt.Add(48*time.Hour)))(t).ExpiresAt, nil)
	returns(w.Files.DeleteFile(ctx, ws, a.ID, now, audit.Entry{}))(t, "delete what is in use", file.InUse)
	failsWith(0, hold("run_3", a.ID, uid.New(uid.File)))(t, "hold a file that does not exist", fault.FileNotFound)
	equal(t, "what the failed call has added", w.count(t, `SELECT count(*) FROM file_refs WHERE holder = 'run_3'`), 0)
	w.checkFiles(t, ws)

	drop := func(holder file.Holder) {
		t.Helper()
		if err := w.Files.DropHolder(ctx, holder, now); err != nil {
			t.Fatal(err)
		}
	}
	drop("run_2")
	equal(t, "still held", found(w.Files.File(ctx, ws, a.ID, now))(t).ExpiresAt, nil)
	if err := w.Files.ReplaceFiles(ctx, ws, "wf_1/3", []string{b.ID}, now); err != nil {
		t.Fatal(err)
	}
	missing(w.Files.File(ctx, ws, a.ID, now))(t, "a file without references")
	failsWith(0, hold("run_3", a.ID))(t, "hold a file that has expired", fault.FileNotFound)
	w.checkFiles(t, ws)
	equal(t, "swept", w.sweepFiles(t, now), 1)
	equal(t, "its bytes are to be deleted", w.abandoned(t, a.Blob), true)
	drop("run_1")
	drop("wf_1/3")
	drop("wf_1/3")
	equal(t, "swept with the last reference", w.sweepFiles(t, now), 1)
	equal(t, "rows left", must(w.Files.FileUsage(ctx, ws))(t), file.Usage{})
	w.checkFiles(t, ws)
}

func testFileLimits(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	limits := auth.Free.Limits()
	first := newFile(ws, "1")
	first.File.Size = limits.StoredFileBytes - 10
	must(recordOne(ctx, w.DB, first, ""))(t)
	over := newFile(ws, "2")
	over.File.Size = 11
	failsWith(recordOne(ctx, w.DB, over, ""))(t, "one byte too many", fault.FileStorageExceeded)
	over.File.SHA256 = first.File.SHA256
	over.File.Size = first.File.Size
	must(recordOne(ctx, w.DB, over, ""))(t) // equal bytes count once
	w.checkFiles(t, ws)

	other := w.workspace(t).ID
	r := newFile(other, "3")
	r.RunID, r.File.Size = "run_limits", limits.RunFileBytes-1
	must(recordOne(ctx, w.DB, r, "run_limits"))(t)
	next := newFile(other, "4")
	next.RunID, next.File.Size = "run_limits", 2
	failsWith(recordOne(ctx, w.DB, next, "run_limits"))(t, "too many bytes of a run", fault.RunFilesTooLarge)
	next.File.Size = 1
	must(recordOne(ctx, w.DB, next, "run_limits"))(t)
	equal(t, "the run", must(w.Files.FileUsage(ctx, "run_limits"))(t), file.Usage{Files: 2, Bytes: limits.RunFileBytes})
	w.checkFiles(t, other)
}

func testFileTenants(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	f, now := w.recordFile(t, ws, "mine", ""), clock.Now()
	missing(w.Files.File(ctx, stranger, f.ID, now))(t, "the file of another workspace")
	empty(w.Files.Files(ctx, stranger, now, fullPage))(t, "the files of another workspace")
	returns(w.Files.DeleteFile(ctx, stranger, f.ID, now, audit.Entry{}))(t, "delete the file of another workspace", file.NotThere)
	failsWith(0, w.Files.HoldFiles(ctx, stranger, "run_1", []string{f.ID}, now))(t, "hold the file of another workspace", fault.FileNotFound)
	found(w.Files.File(ctx, ws, f.ID, now))(t)
}

func testPurgeHolders(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r, now := w.start(t, wf, "node_1"), clock.Now()
	for i := range 5 {
		w.recordFile(t, ws.ID, fmt.Sprint("of the run ", i), file.HeldByRun(r.ID))
	}
	for i, holder := range []file.Holder{file.HeldByVersion(wf.ID, 1), file.HeldByPins(wf.ID), file.HeldByRequest(wf.ID, "hook", "req_1")} {
		w.recordFile(t, ws.ID, fmt.Sprint("of the workflow ", i), holder)
	}
	kept := w.recordFile(t, ws.ID, "of another workflow", file.HeldByVersion(wf.ID+"x", 1))
	w.finish(t, r, run.Succeeded)
	returns(w.Workflows.DeleteWorkflow(ctx, wf, now, newEntry(ws.ID, "workflow.deleted", wf.ID)))(t, "delete the workflow", true)
	for range 100 {
		deleted := must(w.Workflows.PurgeDeleted(ctx, 2))(t)
		if remains := must(w.Runs.PurgeRemains(ctx, 2))(t); !deleted && !remains {
			break
		}
	}
	equal(t, "swept", w.sweepFiles(t, clock.Now()), 8)
	found(w.Files.File(ctx, ws.ID, kept.ID, clock.Now()))(t)
	w.checkFiles(t, ws.ID)

	created := w.table(t, ws.ID, "held").ID
	w.recordFile(t, ws.ID, "of a row", file.HeldByRow(created, "row_1"))
	returns(w.Tables.DeleteTable(ctx, ws.ID, created, newEntry(ws.ID, "table.deleted", created)))(t, "delete the table", true)
	w.purgeTables(t)
	scope := keyScope(ws.ID, "")
	must(w.State.SetKey(ctx, scope, setOp("k", `1`)))(t)
	w.exec(t, `UPDATE state_keys SET files = '[""]' WHERE workspace_id = $1`, ws.ID)
	w.recordFile(t, ws.ID, "of a key", file.HeldByKey(ws.ID, "", "k"))
	returns(w.State.DeleteKey(ctx, scope, "k"))(t, "delete the key", true)
	equal(t, "swept after the table and the key", w.sweepFiles(t, clock.Now()), 2)
	w.checkFiles(t, ws.ID)
}

// testFileRaces lets references, deletions and recordings meet. Whoever wins, nothing
// refers to a file that does not exist.
func testFileRaces(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	for i := range 30 {
		f := w.recordFile(t, ws, fmt.Sprint("round ", i), "run_old")
		now := clock.Now()
		concurrently(t, 5, func(n int) (bool, error) {
			var err error
			switch n {
			case 0:
				err = w.Files.HoldFiles(ctx, ws, "run_new", []string{f.ID}, now)
			case 1:
				err = w.Files.DropHolder(ctx, "run_old", now)
			case 2:
				_, err = w.Files.SweepFiles(ctx, now, 10)
			case 3:
				_, err = recordOne(ctx, w.DB, newFile(ws, fmt.Sprint("round ", i)), "run_equal")
			case 4:
				_, err = w.Files.DeleteFile(ctx, ws, f.ID, now, newEntry(ws, "file.deleted", f.ID))
			}
			if fault.Is(err, fault.FileNotFound) {
				err = nil
			}
			return true, err
		})
		w.checkFiles(t, ws)
	}
	// The last two references go at the same time.
	for i := range 20 {
		f := w.recordFile(t, ws, fmt.Sprint("last ", i), "a")
		now := clock.Now()
		if err := w.Files.HoldFiles(ctx, ws, "b", []string{f.ID}, now); err != nil {
			t.Fatal(err)
		}
		concurrently(t, 2, func(n int) (bool, error) {
			return true, w.Files.DropHolder(ctx, []file.Holder{"a", "b"}[n], now)
		})
		missing(w.Files.File(ctx, ws, f.ID, now))(t, "a file without references")
	}
	w.checkFiles(t, ws)
}

func testFilesPlace(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	for must(w.Files.SweepFiles(ctx, clock.Now().Add(48*time.Hour), 100))(t) > 0 {
	}
	w.exec(t, `DELETE FROM file_blobs`) // those of files that are held
	returns(w.Files.FilesPlace(ctx, "here", false))(t, "the first", "here")
	returns(w.Files.FilesPlace(ctx, "there", false))(t, "another one", "here")
	returns(w.Files.FilesPlace(ctx, "there", true))(t, "a move without files", "there")
	w.recordFile(t, ws, "a file", "")
	returns(w.Files.FilesPlace(ctx, "here", true))(t, "a move with files", "there")
}
