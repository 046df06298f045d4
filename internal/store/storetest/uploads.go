package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/uid"
)

func newUpload(workspaceID string, size int64) file.Upload {
	now := clock.Now()
	return file.Upload{
		ID: uid.At(uid.File, now), WorkspaceID: workspaceID, Name: "a", Type: "text/plain", Metadata: "filename YQ==", Size: size,
		CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
}

func anyUpload(file.Usage, int) error { return nil }

func testUploads(t *testing.T, w *harness) {
	t.Run("parts and completion", func(t *testing.T) { testUploadParts(t, w) })
	t.Run("termination and expiry", func(t *testing.T) { testUploadEnds(t, w) })
	t.Run("races", func(t *testing.T) { testUploadRaces(t, w) })
}

func (w *harness) insertUpload(t *testing.T, u file.Upload) file.Upload {
	t.Helper()
	if err := w.Files.InsertUpload(t.Context(), u, anyUpload); err != nil {
		t.Fatal(err)
	}
	return u
}

func testUploadParts(t *testing.T, w *harness) {
	ctx, ws, stranger, now := t.Context(), w.workspace(t).ID, w.workspace(t).ID, clock.Now()
	refused := errors.New("refused")
	if err := w.Files.InsertUpload(ctx, newUpload(ws, 5), func(file.Usage, int) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	u := w.insertUpload(t, newUpload(ws, 5))
	err := w.Files.InsertUpload(ctx, newUpload(ws, 1), func(have file.Usage, uploads int) error {
		equal(t, "what the check gets", []any{have, uploads}, []any{file.Usage{Uploading: 5}, 1})
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("the second: %v", err)
	}
	w.checkFiles(t, ws)
	equal(t, "read", found(w.Files.Upload(ctx, ws, u.ID, now))(t), u)
	missing(w.Files.Upload(ctx, stranger, u.ID, now))(t, "the upload of another workspace")
	missing(w.Files.Upload(ctx, ws, u.ID, u.ExpiresAt))(t, "an expired upload")
	first, second := file.Part{Start: 0, Size: 3, Blob: blob.NewID()}, file.Part{Start: 3, Size: 2, Blob: blob.NewID()}
	returns(w.Files.AddPart(ctx, ws, u.ID, first, now))(t, "the first part", true)
	for what, p := range map[string]file.Part{
		"the first part again": {Start: 0, Size: 3, Blob: blob.NewID()}, "a gap": {Start: 4, Size: 1, Blob: blob.NewID()}, "too many bytes": {Start: 3, Size: 3, Blob: blob.NewID()},
	} {
		returns(w.Files.AddPart(ctx, ws, u.ID, p, now))(t, what, false)
		equal(t, "the bytes of "+what+" are to be deleted", w.abandoned(t, p.Blob), true)
	}
	returns(w.Files.AddPart(ctx, stranger, u.ID, file.Part{Start: 3, Size: 1, Blob: blob.NewID()}, now))(t, "a part from another workspace", false)
	returns(w.Files.AddPart(ctx, ws, u.ID, second, now))(t, "the second part", true)
	equal(t, "parts", must(w.Files.Parts(ctx, u.ID))(t), []file.Part{first, second})
	equal(t, "received", found(w.Files.Upload(ctx, ws, u.ID, now))(t).Received, 5)
	equal(t, "known blobs", must(w.Files.KnownBlobs(ctx, first.Blob, first.Blob))(t), []blob.ID{first.Blob})
	r := newFile(ws, "12345")
	r.File.ID = u.ID
	f := found(w.Files.CompleteUpload(ctx, r, newEntry(ws, "file.uploaded", u.ID)))(t)
	equal(t, "the file", found(w.Files.File(ctx, ws, u.ID, now))(t), f)
	missing(w.Files.Upload(ctx, ws, u.ID, now))(t, "a complete upload")
	missing(w.Files.CompleteUpload(ctx, r, newEntry(ws, "file.uploaded", u.ID)))(t, "complete it again")
	equal(t, "the parts are to be deleted", []bool{w.abandoned(t, first.Blob), w.abandoned(t, second.Blob)}, []bool{true, true})
	w.checkFiles(t, ws)
}

func testUploadEnds(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t).ID, clock.Now()
	ended, expired := w.insertUpload(t, newUpload(ws, 5)), w.insertUpload(t, newUpload(ws, 7))
	part := file.Part{Size: 3, Blob: blob.NewID()}
	returns(w.Files.AddPart(ctx, ws, expired.ID, part, now))(t, "a part", true)
	returns(w.Files.AddPart(ctx, ws, expired.ID, file.Part{Start: 3, Size: 1, Blob: blob.NewID()}, expired.ExpiresAt))(t, "a part of an expired upload", false)
	returns(w.Files.DeleteUpload(ctx, w.workspace(t).ID, ended.ID))(t, "delete the upload of another workspace", false)
	returns(w.Files.DeleteUpload(ctx, ws, ended.ID))(t, "delete", true)
	returns(w.Files.DeleteUpload(ctx, ws, ended.ID))(t, "delete it again", false)
	w.checkFiles(t, ws)
	returns(w.Files.SweepUploads(ctx, now))(t, "nothing has expired", false)
	returns(w.Files.SweepUploads(ctx, expired.ExpiresAt))(t, "expired", true)
	returns(w.Files.SweepUploads(ctx, expired.ExpiresAt))(t, "no more", false)
	equal(t, "its bytes are to be deleted", w.abandoned(t, part.Blob), true)
	equal(t, "reserved bytes", must(w.Files.FileUsage(ctx, ws))(t).Uploading, 0)
	w.checkFiles(t, ws)
}

func testUploadRaces(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	for range 20 {
		u, now := w.insertUpload(t, newUpload(ws, 10)), clock.Now()
		equal(t, "winners at one offset", concurrently(t, 4, func(int) (bool, error) {
			return w.Files.AddPart(ctx, ws, u.ID, file.Part{Size: 10, Blob: blob.NewID()}, now)
		}), 1)
		equal(t, "completions and deletions", concurrently(t, 4, func(n int) (bool, error) {
			if n == 0 {
				return w.Files.DeleteUpload(ctx, ws, u.ID)
			}
			r := newFile(ws, u.ID)
			r.File.ID = u.ID
			f, err := w.Files.CompleteUpload(ctx, r, newEntry(ws, "file.uploaded", u.ID))
			return f != nil, err
		}), 1)
		w.checkFiles(t, ws)
	}
	failsWith(0, w.Files.HoldFiles(ctx, ws, "run_1", []string{newUpload(ws, 1).ID}, clock.Now()))(t, "hold an upload", fault.FileNotFound)
}
