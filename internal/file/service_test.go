package file_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/uid"
)

// world is a service with its store and its blobs.
type world struct {
	*file.Service
	in    *sqlitetest.Installation
	blobs *blobtest.Faulty
	actor auth.Actor
}

func newWorld(t *testing.T, capacity file.Capacity) *world {
	t.Helper()
	in, blobs := sqlitetest.New(t, store.Notify{}), blobtest.NewFaulty(blobtest.NewMemory())
	return &world{
		Service: file.NewService(file.Config{
			Store: in.DB.Files, Blobs: blobs, Keys: in.Vault, Capacity: capacity, Exclusive: true, Log: slog.New(slog.DiscardHandler),
		}),
		in: in, blobs: blobs, actor: in.Workspace(t, auth.Free),
	}
}

var ample = file.Capacity{Writers: 64, Readers: 16, IO: 4}

func (w *world) owner() file.Owner {
	return file.Owner{WorkspaceID: w.actor.Workspace.ID, Plan: w.actor.Workspace.Plan}
}

func (w *world) create(t *testing.T, o file.Owner) *file.Writer {
	t.Helper()
	writer, err := w.Create(t.Context(), o, "a.txt", "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(writer.Abort)
	return writer
}

// upload writes and records a file.
func (w *world) upload(t *testing.T, content []byte) file.File {
	t.Helper()
	writer := w.create(t, w.owner())
	if err := blobtest.WriteIn(writer, content, 10_000); err != nil {
		t.Fatal(err)
	}
	f, err := writer.Finish()
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := w.Record(t.Context(), w.actor, f)
	if err != nil {
		t.Fatal(err)
	}
	return recorded[0]
}

// stored returns the number of stored blobs.
func (w *world) stored(t *testing.T) int {
	t.Helper()
	page, err := w.blobs.List(t.Context(), paging.Request{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(page.Items, func(i blob.Info) bool { return i.ID == "stepmillinstallationmarker" }))
}

func (w *world) sweep(t *testing.T) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = w.SweepExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUploadAndRead(t *testing.T) {
	t.Parallel()
	w, content := newWorld(t, ample), bytes.Repeat([]byte("0123456789"), 20_000)
	f := w.upload(t, content)
	if f.Size != 200_000 || f.Name != "a.txt" || f.Type != "text/plain" || len(f.SHA256) != 64 || f.ExpiresAt == nil || !f.ExpiresAt.Equal(f.CreatedAt.Add(file.UnreferencedFor)) {
		t.Errorf("got %+v", f)
	}
	got, err := w.Get(t.Context(), w.actor.Workspace.ID, f.ID)
	if diff := cmp.Diff(f, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	r, err := w.Open(t.Context(), w.actor.Workspace.ID, f.ID, 100_005, 10)
	if err != nil {
		t.Fatal(err)
	}
	part, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || string(part) != "5678901234" {
		t.Errorf("got %q, %v", part, err)
	}
	if _, err := w.Open(t.Context(), w.in.Workspace(t, auth.Free).Workspace.ID, f.ID, 0, 1); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("from another workspace: %v", err)
	}
	if diff := cmp.Diff([]string{"file.uploaded"}, w.in.Actions(t, w.actor.Workspace.ID, f.ID)); diff != "" {
		t.Error(diff)
	}
	if err := w.Delete(t.Context(), w.actor, f.ID); err != nil {
		t.Fatal(err)
	}
	w.sweep(t)
	if n := w.stored(t); n != 0 {
		t.Errorf("%d blobs remain", n)
	}
}

func TestEqualFilesAreStoredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	first, second := w.upload(t, []byte("same")), w.upload(t, []byte("same"))
	w.sweep(t)
	if first.Blob != second.Blob || w.stored(t) != 1 {
		t.Errorf("%d blobs, of %s and %s", w.stored(t), first.Blob, second.Blob)
	}
	if err := w.Delete(t.Context(), w.actor, first.ID); err != nil {
		t.Fatal(err)
	}
	w.sweep(t)
	r, err := w.Open(t.Context(), w.actor.Workspace.ID, second.ID, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(r); err != nil || string(content) != "same" {
		t.Errorf("got %q, %v", content, err)
	}
}

func TestLimitsWhileWriting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	limits, mib := auth.Free.Limits(), make([]byte, 1<<20)
	fill := func(writer *file.Writer, bytes int64) (err error) {
		for n := int64(0); n < bytes && err == nil; n += int64(len(mib)) {
			_, err = writer.Write(mib)
		}
		return err
	}
	t.Run("one file", func(t *testing.T) {
		writer := w.create(t, w.owner())
		if err := fill(writer, limits.FileBytes); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte{1}); !fault.Is(err, fault.FileTooLarge) {
			t.Errorf("got %v", err)
		}
		if _, err := writer.Finish(); !fault.Is(err, fault.FileTooLarge) {
			t.Errorf("finish: %v", err)
		}
	})
	t.Run("the files of a run", func(t *testing.T) {
		o := w.owner()
		o.RunID = "run_1"
		// Four files that are being written reach the limit together.
		for range limits.RunFileBytes / limits.FileBytes {
			if err := fill(w.create(t, o), limits.FileBytes); err != nil {
				t.Fatal(err)
			}
		}
		if err := fill(w.create(t, o), 1); !fault.Is(err, fault.RunFilesTooLarge) {
			t.Errorf("got %v", err)
		}
		o.RunID = "run_2"
		if err := fill(w.create(t, o), 1); err != nil {
			t.Errorf("another run: %v", err)
		}
	})
	if n := w.stored(t); n != 0 {
		t.Errorf("%d blobs remain", n)
	}
}

// The limit of the storage applies if that of the plan is larger.
func TestMaximumOfTheStorage(t *testing.T) {
	t.Parallel()
	small := ample
	small.FileBytes = 10
	w := newWorld(t, small)
	plan := w.actor.Workspace.Plan
	if got := w.MaxBytes(plan); got != 10 {
		t.Errorf("a file may have %d bytes", got)
	}
	if err := w.CheckSize(plan, 10); err != nil {
		t.Error(err)
	}
	const message = "the file storage of this installation allows 10 bytes"
	writer := w.create(t, w.owner())
	_, written := writer.Write(make([]byte, 11))
	_, created := w.CreateUpload(t.Context(), w.actor, "a.bin", "", "", 11)
	for _, err := range []error{w.CheckSize(plan, 11), written, created} {
		if !fault.Is(err, fault.FileTooLarge) || !strings.Contains(err.Error(), message) {
			t.Errorf("got %v", err)
		}
	}
	large := newWorld(t, file.Capacity{Writers: 1, Readers: 1, IO: 1, FileBytes: plan.Limits().FileBytes + 1})
	if got := large.MaxBytes(plan); got != plan.Limits().FileBytes {
		t.Errorf("in a larger storage, a file may have %d bytes", got)
	}
}

func TestStorageOfAWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	limit := auth.Free.Limits().StoredFileBytes
	first := w.upload(t, []byte("x"))
	// As if it were that large.
	r := file.Recording{File: first, Plan: auth.Free}
	r.File.ID, r.File.Blob, r.File.SHA256, r.File.Size = uid.New(uid.File), blob.NewID(), "other", limit-11
	if _, err := w.in.DB.Files.RecordFiles(t.Context(), []file.Recording{r}, "", nil); err != nil {
		t.Fatal(err)
	}
	a, b := w.create(t, w.owner()), w.create(t, w.owner())
	if _, err := a.Write(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(make([]byte, 5)); !fault.Is(err, fault.FileStorageExceeded) {
		t.Errorf("two files at the same time: %v", err)
	}
	b.Abort()
	// What is not counted in memory is found when the second one is recorded.
	finished, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	c := w.create(t, w.owner())
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	other, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Record(t.Context(), w.actor, finished); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Record(t.Context(), w.actor, other); !fault.Is(err, fault.FileStorageExceeded) {
		t.Errorf("record: %v", err)
	}
	if n := w.stored(t); n != 2 {
		t.Errorf("%d blobs are stored", n)
	}
}

func TestFaultsOfTheStorage(t *testing.T) {
	t.Parallel()
	full := fault.New(fault.StorageFull, "the server's disk is full; the file was not stored")
	down := fault.New(fault.Unavailable, "the file storage does not respond")
	for _, test := range []struct {
		name string
		op   blobtest.Operation
		err  error
		want fault.Code
	}{
		{"disk full", blobtest.Write, full, fault.StorageFull},
		{"disk full at the end", blobtest.Commit, full, fault.StorageFull},
		{"bucket unavailable", blobtest.Begin, down, fault.Unavailable},
		{"bucket unavailable later", blobtest.Commit, down, fault.Unavailable},
		{"access denied", blobtest.Commit, blob.ErrDenied, fault.Unavailable},
		{"too large for the storage", blobtest.Write, blob.ErrTooLarge, fault.FileTooLarge},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ample)
			w.blobs.Fail(test.op, test.err)
			writer, err := w.Create(t.Context(), w.owner(), "a", "")
			if err == nil {
				_, err = writer.Write(make([]byte, 200_000))
				if err == nil {
					_, err = writer.Finish()
				}
				writer.Abort()
			}
			if !fault.Is(err, test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			w.blobs.Fail(test.op, nil)
			if files, err := w.List(t.Context(), w.actor.Workspace.ID, paging.Request{Limit: 10}); err != nil || len(files.Items) != 0 || w.stored(t) != 0 {
				t.Errorf("%d files, %d blobs, %v", len(files.Items), w.stored(t), err)
			}
		})
	}
}

func TestDeletionIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	f := w.upload(t, []byte("x"))
	if err := w.Delete(t.Context(), w.actor, f.ID); err != nil {
		t.Fatal(err)
	}
	w.blobs.Fail(blobtest.Delete, errors.New("down"))
	if _, err := w.SweepExpired(t.Context()); err == nil || w.stored(t) != 1 {
		t.Errorf("%d blobs, %v", w.stored(t), err)
	}
	w.blobs.Fail(blobtest.Delete, nil)
	w.sweep(t)
	if n := w.stored(t); n != 0 {
		t.Errorf("%d blobs remain", n)
	}
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	kept := w.upload(t, []byte("kept"))
	orphan := w.create(t, w.owner())
	if _, err := orphan.Finish(); err != nil { // and never recorded
		t.Fatal(err)
	}
	restart := func(exclusive bool) *file.Service {
		return file.NewService(file.Config{Store: w.in.DB.Files, Blobs: w.blobs, Keys: w.in.Vault, Capacity: ample, Exclusive: exclusive, Log: slog.New(slog.DiscardHandler)})
	}
	for _, test := range []struct {
		name    string
		service *file.Service
		want    int
	}{{"this process", w.Service, 2}, {"a shared place", restart(false), 2}, {"the next process", restart(true), 1}} {
		if err := test.service.SweepOrphans(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.stored(t); n != test.want {
			t.Errorf("%s: %d blobs, want %d", test.name, n, test.want)
		}
	}
	if _, err := w.Open(t.Context(), w.actor.Workspace.ID, kept.ID, 0, 4); err != nil {
		t.Error(err)
	}
	other := sqlitetest.New(t, store.Notify{})
	stranger := file.NewService(file.Config{Store: other.Files, Blobs: w.blobs, Keys: other.Vault, Capacity: ample, Exclusive: true, Log: slog.New(slog.DiscardHandler)})
	if err := stranger.SweepOrphans(t.Context()); err == nil || w.stored(t) != 1 {
		t.Errorf("another installation in the same place: %v, %d blobs", err, w.stored(t))
	}
}

// A workspace that writes many files at once leaves room for others.
func TestWorkspacesShareTheStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, file.Capacity{Writers: 4, Readers: 4, IO: 2})
	w.create(t, w.owner())
	waiting, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	for range 5 {
		ended.Go(func() {
			if writer, err := w.Create(waiting, w.owner(), "a", ""); err == nil {
				writer.Abort()
			}
		})
	}
	other := w.in.Workspace(t, auth.Free)
	for range 3 { // the rest of the slots, one after the other
		writer := w.create(t, file.Owner{WorkspaceID: other.Workspace.ID, Plan: auth.Free})
		if _, err := writer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		writer.Abort()
	}
	stop()
	ended.Wait()
	if stats := w.Stats(); stats.Writing != 1 || stats.WaitingToWrite != 0 {
		t.Errorf("got %+v", stats)
	}
}

// A workspace with many downloads leaves room for those of others.
func TestWorkspacesShareDownloads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, file.Capacity{Writers: 4, Readers: 4, IO: 2})
		own, other := w.actor.Workspace.ID, w.in.Workspace(t, auth.Free).Workspace.ID
		begin := func(workspaceID string) (begun chan func()) {
			begun = make(chan func(), 1)
			go func() {
				release, err := w.AcquireDownload(t.Context(), workspaceID)
				if err != nil {
					t.Error(err)
				}
				begun <- release
			}()
			synctest.Wait()
			return begun
		}
		first, second, theirs := begin(own), begin(own), begin(other)
		if len(first) != 1 || len(second) != 0 || len(theirs) != 1 {
			t.Fatalf("of the downloads, %d, %d and %d have begun", len(first), len(second), len(theirs))
		}
		(<-first)()
		(<-second)()
		(<-theirs)()
		if n := w.Stats().Downloads; n != 0 {
			t.Errorf("%d downloads", n)
		}
	})
}

// cutReader ends with an error, like a connection that breaks.
type cutReader struct{ io.Reader }

var errCut = errors.New("the connection was cut")

// Read implements io.Reader.
func (r cutReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	return n, err
}

func TestUploadResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	content := bytes.Repeat([]byte("0123456789"), 2<<20) // 20 MiB
	u, err := w.CreateUpload(t.Context(), w.actor, "a.bin", "", "", int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	// What arrived before the connection broke is kept, but not what has a checksum.
	u, err = w.Append(t.Context(), w.actor, u.ID, 0, cutReader{bytes.NewReader(content[:9<<20])}, nil)
	if !errors.Is(err, errCut) || u.Received != 9<<20 {
		t.Fatalf("received %d, %v", u.Received, err)
	}
	check := &file.Checksum{Hash: sha256.New()}
	if _, err = w.Append(t.Context(), w.actor, u.ID, 9<<20, cutReader{bytes.NewReader(content[9<<20 : 10<<20])}, check); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	// A full disk leaves the upload where it was.
	w.blobs.Fail(blobtest.Write, fault.New(fault.StorageFull, "full"))
	if _, err = w.Append(t.Context(), w.actor, u.ID, 9<<20, bytes.NewReader(content[9<<20:]), nil); !fault.Is(err, fault.StorageFull) {
		t.Fatal(err)
	}
	w.blobs.Fail(blobtest.Write, nil)
	if u, err = w.Upload(t.Context(), w.actor, u.ID); err != nil || u.Received != 9<<20 {
		t.Fatalf("received %d, %v", u.Received, err)
	}
	// The parts cannot be joined, so the file does not exist, until they can.
	w.blobs.Fail(blobtest.Open, fault.New(fault.Unavailable, "down"))
	if _, err = w.Append(t.Context(), w.actor, u.ID, 9<<20, bytes.NewReader(content[9<<20:]), nil); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if _, err := w.Get(t.Context(), w.actor.Workspace.ID, u.ID); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("before it is complete: %v", err)
	}
	w.blobs.Fail(blobtest.Open, nil)
	if u, err = w.Upload(t.Context(), w.actor, u.ID); err != nil || u.Received != u.Size {
		t.Fatalf("received %d, %v", u.Received, err)
	}
	r, err := w.Open(t.Context(), w.actor.Workspace.ID, u.ID, 0, u.Size)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	w.sweep(t)
	if n := w.stored(t); n != 1 {
		t.Errorf("%d blobs are stored", n)
	}
}

// An upload that does not fit any more, because the plan has changed, leaves no bytes
// behind when it is completed, however often that is tried.
func TestUploadExceedsTheStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	before := w.actor
	before.Workspace.Plan = auth.Enterprise
	if _, err := w.CreateUpload(t.Context(), before, "big", "", "", 2<<30); err != nil {
		t.Fatal(err)
	}
	u, err := w.CreateUpload(t.Context(), before, "small", "", "", 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), w.actor, u.ID, 0, bytes.NewReader([]byte("hello")), nil); !fault.Is(err, fault.FileStorageExceeded) {
		t.Errorf("the last part: %v", err)
	}
	if _, err := w.Upload(t.Context(), w.actor, u.ID); !fault.Is(err, fault.FileStorageExceeded) {
		t.Errorf("another attempt: %v", err)
	}
	if n := w.stored(t); n != 1 {
		t.Errorf("%d blobs, want only the part of the upload", n)
	}
}

// A storage that does not respond does not hold up a request whose client has gone.
func TestSlowStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	w.blobs.Stall(blobtest.Write, make(chan struct{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error)
	go func() {
		_, err := w.Create(ctx, w.owner(), "a", "")
		cancelled <- err
	}()
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if stats := w.Stats(); stats.Writing != 0 {
		t.Errorf("got %+v", stats)
	}
}

// While a request works on an upload, others are told to wait.
func TestUploadIsLocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	u, err := w.CreateUpload(t.Context(), w.actor, "a.txt", "", "", 5)
	if err != nil {
		t.Fatal(err)
	}
	resume := make(chan struct{})
	w.blobs.Stall(blobtest.Open, resume) // joining the parts waits
	appended, id := make(chan error), u.ID
	go func() {
		_, err := w.Append(t.Context(), w.actor, id, 0, bytes.NewReader([]byte("hello")), nil)
		appended <- err
	}()
	for u.Received < u.Size {
		u, err = w.Upload(t.Context(), w.actor, id)
	}
	if !fault.Is(err, fault.UploadLocked) {
		t.Errorf("retrieve: %v", err)
	}
	if _, err := w.Append(t.Context(), w.actor, u.ID, 5, bytes.NewReader(nil), nil); !fault.Is(err, fault.UploadLocked) {
		t.Errorf("append: %v", err)
	}
	close(resume)
	if err := <-appended; err != nil {
		t.Error(err)
	}
	if u, err = w.Upload(t.Context(), w.actor, u.ID); err != nil || !u.Complete {
		t.Errorf("complete %v, %v", u.Complete, err)
	}
}
