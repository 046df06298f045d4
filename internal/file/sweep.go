package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

const (
	// sweepBatch is how many files one transaction removes, and deleteBatch how many
	// blobs are deleted before that is noted.
	sweepBatch, deleteBatch = 100, 20
	// orphanAge is the age at which a blob that nothing refers to is an orphan: far
	// longer than between the end of an upload and the commit that records it.
	orphanAge = 24 * time.Hour
	// orphansEvery is the interval for looking at all stored blobs.
	orphansEvery = 6 * time.Hour
)

// SweepExpired removes some expired files and uploads, and the bytes that nothing needs
// any more. It returns true if there may be more. The bytes are deleted after the commit
// that removed their rows, unless they are kept (see KeepBytes).
func (s *Service) SweepExpired(ctx context.Context) (more bool, err error) {
	now := clock.Now()
	removed, err := s.store.SweepFiles(ctx, now, sweepBatch)
	if err != nil {
		return false, err
	}
	s.stats.removed.Add(int64(removed))
	upload, err := s.store.SweepUploads(ctx, now)
	if err != nil {
		return false, err
	}
	deleted, err := s.deleteAbandoned(ctx)
	return removed > 0 || upload || deleted == deleteBatch, err
}

// deleteAbandoned deletes the bytes of blobs that no row refers to, and returns how many.
func (s *Service) deleteAbandoned(ctx context.Context) (int, error) {
	if !s.kept.beginDeletion() {
		return 0, nil
	}
	defer s.kept.endDeletion()
	ids, err := s.store.AbandonedBlobs(ctx, deleteBatch)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	var errs []error
	deleted := slices.DeleteFunc(ids, func(id blob.ID) bool {
		err := s.blobs.Delete(ctx, id)
		errs = append(errs, err)
		return err != nil
	})
	s.stats.blobsDeleted.Add(int64(len(deleted)))
	if len(deleted) > 0 {
		errs = append(errs, s.store.ForgetBlobs(ctx, deleted))
	}
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("delete the bytes of files: %w", err)
	}
	return len(deleted), nil
}

// SweepOrphans removes blobs that a crash has left behind, a few times a day. Once bytes
// are kept (see KeepBytes), it leaves the remaining ones to the next sweep.
func (s *Service) SweepOrphans(ctx context.Context) error {
	now := clock.Now()
	if now.Sub(s.orphansFound) < orphansEvery {
		return nil
	}
	s.orphansFound = now
	before, started := now.Add(-orphanAge), s.started
	s.started = time.Time{}
	if _, err := s.blobs.Sweep(ctx, before); err != nil {
		return fmt.Errorf("remove unfinished uploads: %w", err)
	}
	if started.After(before) {
		before = started
	}
	if err := s.CheckInstallation(ctx); err != nil {
		return err
	}
	page := paging.Request{Limit: blob.MaxPage}
	for {
		found, err := s.blobs.List(ctx, page)
		if err != nil {
			return fmt.Errorf("list the stored blobs: %w", err)
		}
		if done, err := s.deleteOrphans(ctx, found.Items, before); err != nil || !done || found.Next == "" {
			return err
		}
		page.After = found.Next
	}
}

// deleteOrphans deletes those blobs of a page that are old and that nothing refers to. It
// returns false if bytes are kept.
func (s *Service) deleteOrphans(ctx context.Context, stored []blob.Info, before time.Time) (done bool, err error) {
	old := slices.DeleteFunc(stored, func(i blob.Info) bool { return !i.Created.Before(before) })
	if len(old) == 0 {
		return true, nil
	}
	if !s.kept.beginDeletion() {
		return false, nil
	}
	defer s.kept.endDeletion()
	known, err := s.store.KnownBlobs(ctx, old[0].ID, old[len(old)-1].ID)
	if err != nil {
		return false, err
	}
	needed := make(map[blob.ID]bool, len(known))
	for _, id := range known {
		needed[id] = true
	}
	for _, info := range old {
		if needed[info.ID] || info.ID == installationMark {
			continue
		}
		if err := s.blobs.Delete(ctx, info.ID); err != nil {
			return false, fmt.Errorf("delete an orphaned blob: %w", err)
		}
		s.stats.orphans.Add(1)
		s.log.Info("deleted an orphaned blob", "blob", info.ID, "size", info.Size, "created", info.Created)
	}
	return true, nil
}
