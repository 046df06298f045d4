package file_test

import (
	"log/slog"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
)

// While the disk is almost full, uploads are refused, also those in progress. Runs in
// flight still store their files.
func TestLittleSpace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	full := false
	w.Service = file.NewService(file.Config{
		Store: w.in.Files, Blobs: w.blobs, Keys: w.in.Vault, Capacity: ample, Log: slog.New(slog.DiscardHandler),
		Admit: func(inRun bool) error {
			if full && !inRun {
				return fault.New(fault.StorageFull, "almost full")
			}
			return nil
		},
	})
	writer, err := w.Create(t.Context(), w.owner(), "a", "")
	if err == nil {
		_, err = writer.Write([]byte("some bytes"))
	}
	if err != nil {
		t.Fatal(err)
	}
	full = true
	if _, err := writer.Write([]byte("more bytes")); !fault.Is(err, fault.StorageFull) {
		t.Errorf("an upload in progress: %v", err)
	}
	writer.Abort()
	if _, err := w.Create(t.Context(), w.owner(), "b", ""); !fault.Is(err, fault.StorageFull) {
		t.Errorf("a new upload: %v", err)
	}
	ofRun := w.owner()
	ofRun.RunID = "run_1"
	writer, err = w.Create(t.Context(), ofRun, "c", "")
	if err == nil {
		_, err = writer.Write([]byte("bytes of a step"))
	}
	if err == nil {
		_, err = writer.Finish()
	}
	if err != nil {
		t.Errorf("the file of a run: %v", err)
	}
	if n := w.stored(t); n != 1 {
		t.Errorf("%d blobs are stored", n)
	}
}
