package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stepmill/stepmill/internal/blob"
)

// FilesVerification is the result of reading the bytes of all files.
type FilesVerification struct {
	// Blobs counts what was read. Files with equal bytes share a blob.
	Blobs   int           `json:"blobs"`
	Damaged []DamagedFile `json:"damaged"`
}

// DamagedFile is a file whose bytes cannot be read.
type DamagedFile struct {
	ID          string `json:"id"`
	WorkspaceID string `json:"workspace_id"`
	Name        string `json:"name"`
	Problem     string `json:"problem"` // missing or damaged
}

const verifyPage = 500

// VerifyFiles reads the bytes of all files and returns those whose bytes are missing or
// damaged.
func (a *Admin) VerifyFiles(ctx context.Context) (FilesVerification, error) {
	result := FilesVerification{Damaged: []DamagedFile{}}
	recorded, err := a.core.store.Files.RecordedFilesPlace(ctx)
	if err != nil {
		return result, err
	}
	place, err := a.openPlace()
	if err == nil {
		err = place.is(recorded)
	}
	if err != nil {
		return result, err
	}
	sealed := blob.NewSealedStore(place.blobs, a.core.vault)
	for after := blob.ID(""); ; {
		refs, err := a.core.store.Files.BlobsOfFiles(ctx, after, verifyPage)
		if err != nil || len(refs) == 0 {
			return result, err
		}
		for _, ref := range refs {
			problem, err := verifyBlob(ctx, sealed, ref)
			if err != nil {
				return result, fmt.Errorf("read the bytes of a file: %w", err)
			}
			result.Blobs++
			if problem != "" {
				if err := a.addDamaged(ctx, &result, ref, problem); err != nil {
					return result, err
				}
			}
			after = ref.ID
		}
	}
}

// verifyBlob reads a blob and returns what is wrong with it, or "".
func verifyBlob(ctx context.Context, sealed *blob.SealedStore, ref blob.Ref) (problem string, err error) {
	r, err := sealed.Open(ctx, ref, 0, ref.Size)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return "missing", nil
	case errors.Is(err, blob.ErrCorrupt):
		return "damaged", nil
	}
	return "", err
}

// addDamaged adds the files that need a blob. There are none if they were deleted since.
func (a *Admin) addDamaged(ctx context.Context, result *FilesVerification, ref blob.Ref, problem string) error {
	files, err := a.core.store.Files.FilesOfBlob(ctx, ref)
	for _, f := range files {
		result.Damaged = append(result.Damaged, DamagedFile{ID: f.ID, WorkspaceID: f.WorkspaceID, Name: f.Name, Problem: problem})
	}
	return err
}
