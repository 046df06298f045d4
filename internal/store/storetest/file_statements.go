package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/store"
)

// RunFileStatements runs every statement about files and resumable uploads at least
// once, for tests of query plans.
func RunFileStatements(ctx context.Context, s *store.DB) error {
	now := clock.Now()
	later := now.Add(48 * time.Hour)
	kept, swept := newFile("ws_1", "kept"), newFile("ws_1", "swept")
	var errs []error
	for _, r := range []file.Recording{kept, swept, newFile("ws_1", "kept")} {
		r.RunID = "run_1"
		_, err := recordOne(ctx, s, r, "")
		errs = append(errs, err)
	}
	errs = append(errs, s.Files.HoldFiles(ctx, "ws_1", "run_1", []string{kept.File.ID}, now), s.Files.ReplaceFiles(ctx, "ws_1", "run_1", nil, now))
	for _, size := range []int64{1, 2} {
		u := newUpload("ws_1", size)
		_, partErr := s.Files.AddPart(ctx, "ws_1", u.ID, file.Part{Size: 1, Blob: blob.NewID()}, now)
		errs = append(errs, s.Files.InsertUpload(ctx, u, anyUpload), partErr)
	}
	_, uploadErr := s.Files.Upload(ctx, "ws_1", "file_1", now)
	_, fileErr := s.Files.File(ctx, "ws_1", "file_1", now)
	_, listErr := s.Files.Files(ctx, "ws_1", now, fullPage)
	_, deleteErr := s.Files.DeleteFile(ctx, "ws_1", kept.File.ID, now, newEntry("ws_1", "file.deleted", kept.File.ID))
	_, sweepErr := s.Files.SweepFiles(ctx, later, 10)
	_, uploadsErr := s.Files.SweepUploads(ctx, later)
	_, remainsErr := s.Files.AbandonedBlobs(ctx, 10)
	_, knownErr := s.Files.KnownBlobs(ctx, blob.NewID(), blob.NewID())
	_, usageErr := s.Files.FileUsage(ctx, "ws_1")
	return errors.Join(append(errs, uploadErr, fileErr, listErr, deleteErr, sweepErr, uploadsErr, remainsErr, knownErr, usageErr)...)
}
