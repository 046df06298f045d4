package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/stepmill/stepmill/internal/blob"
)

// installationMark is a blob that names the installation whose files are stored in a
// place. To another installation they would be orphans, so it must not use the place.
const installationMark blob.ID = "stepmillinstallationmarker"

// CheckInstallation marks the place of the files as that of this installation. It
// returns an error if it is the place of another one, or cannot be used.
func (s *Service) CheckInstallation(ctx context.Context) error {
	id, err := s.store.InstallationID(ctx)
	if err != nil {
		return err
	}
	return MarkInstallation(ctx, s.blobs, id)
}

// MarkInstallation marks a place as that of an installation; an empty id is that of one
// that is not set up yet. It returns an error if it is the place of another one, or
// cannot be used.
func MarkInstallation(ctx context.Context, blobs blob.Store, id string) error {
	marked, err := CheckPlace(ctx, blobs, id)
	if err != nil || marked || id == "" {
		return err
	}
	if err := writeMark(ctx, blobs, id); err != nil && !errors.Is(err, blob.ErrExists) {
		return fmt.Errorf("write to the file storage: %w", err)
	}
	return nil
}

// CheckPlace returns an error if a place is that of another installation than the given
// one, and reports whether it is marked.
func CheckPlace(ctx context.Context, blobs blob.Store, id string) (marked bool, err error) {
	mark, err := readMark(ctx, blobs)
	switch {
	case err != nil:
		return false, fmt.Errorf("read the file storage: %w", err)
	case mark != "" && mark != id:
		return true, errors.New("the file storage has files of another installation: name another place with --files-url")
	}
	return mark != "", nil
}

// readMark returns the installation that a place is marked with; empty: none.
func readMark(ctx context.Context, blobs blob.Store) (string, error) {
	r, err := blobs.Open(ctx, installationMark, 0, 1<<10)
	if errors.Is(err, blob.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), errors.Join(err, r.Close())
}

func writeMark(ctx context.Context, blobs blob.Store, id string) error {
	u, err := blobs.Begin(ctx, installationMark)
	if err != nil {
		return err
	}
	if _, err = io.Copy(u, strings.NewReader(id)); err == nil {
		err = u.Commit()
	}
	return errors.Join(err, u.Abort())
}
