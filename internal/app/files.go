package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/dir"
	blobpostgres "github.com/stepmill/stepmill/internal/blob/postgres"
	"github.com/stepmill/stepmill/internal/blob/s3"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/store"
)

// filesFolder is the folder for the bytes of files in the data directory.
const filesFolder = "files"

// The names of the places that belong to the databases: this folder, and rows.
const (
	directoryPlace = "directory"
	sharedPlace    = "postgres"
)

type filesPlace struct {
	// name identifies the place, so that all nodes use the same. It does not contain
	// what may differ between them.
	name     string
	blobs    blob.Store
	capacity file.Capacity
}

// The capacities follow from what a file that is being written needs, beside 64 KiB:
// nothing in a directory, half a MiB for PostgreSQL, 5 MiB for a bucket. In PostgreSQL,
// files must leave connections for requests and runs. A bucket holds larger files than
// any plan allows.
var (
	dirCapacity      = file.Capacity{Writers: 256, Readers: 256, IO: 16}
	postgresCapacity = file.Capacity{Writers: 128, Readers: 256, IO: 4, FileBytes: blobpostgres.MaxPlainSize}
	bucketCapacity   = file.Capacity{Writers: 64, Readers: 256, IO: 32}
)

// openFilesPlace opens the place that the settings name, or else the one that belongs to
// the database.
func openFilesPlace(ctx context.Context, data config.Data, own func() (filesPlace, error)) (filesPlace, error) {
	if data.FilesURL == "" {
		return own()
	}
	settings, err := s3.ParseURL(data.FilesURL, os.Getenv)
	if err != nil {
		return filesPlace{}, fmt.Errorf("--files-url: %w", err)
	}
	bucket := s3.New(settings, s3.Timings{})
	if _, err := bucket.List(ctx, paging.Request{Limit: 1}); err != nil {
		return filesPlace{}, fmt.Errorf("--files-url: cannot use the bucket %s: %w", settings.Bucket, err)
	}
	return filesPlace{"s3://" + settings.Bucket + "/" + settings.Prefix, bucket, bucketCapacity}, nil
}

func openDirectory(dataDir string) (filesPlace, error) {
	blobs, err := dir.Open(filepath.Join(dataDir, filesFolder))
	return filesPlace{directoryPlace, blobs, dirCapacity}, err
}

// is compares the place with the one that an installation has recorded, if it has.
func (p filesPlace) is(recorded string) error {
	if recorded != "" && recorded != p.name {
		return fmt.Errorf("the files of this installation are in %s, not in %s: correct --files-url", describePlace(recorded), describePlace(p.name))
	}
	return nil
}

// describePlace names a place for people.
func describePlace(name string) string {
	switch name {
	case directoryPlace:
		return "the data directory (no --files-url)"
	case sharedPlace:
		return "the shared database (no --files-url)"
	}
	return name
}

// newFiles opens the files. It refuses a place other than the one that the installation
// or other nodes use.
func (s *Server) newFiles(ctx context.Context, data config.Data) (*file.Service, error) {
	place, err := openFilesPlace(ctx, data, s.data.db.openFiles)
	if err != nil {
		return nil, err
	}
	if err := s.data.db.checkFiles(ctx, s.data.store, place); err != nil {
		return nil, err
	}
	admit := s.disk.admitFile
	if place.name != directoryPlace {
		admit = nil // another disk, or none
	}
	files := file.NewService(file.Config{
		Store: s.data.store.Files, Blobs: place.blobs, Keys: s.data.vault, Capacity: place.capacity, Exclusive: place.name == directoryPlace, Log: s.log, Admit: admit,
		KeepBytes: func() bool { return locate(data).keepsPrevious(place) },
	})
	s.filesPlace = place
	err = files.CheckInstallation(ctx)
	if fault.Is(err, fault.StorageFull) { // the sweep marks it later
		err = nil
	}
	return files, err
}

// checkFilesPlace compares a place with the recorded one.
func checkFilesPlace(ctx context.Context, st *store.DB, place filesPlace, mayMove bool) error {
	recorded, err := st.Files.FilesPlace(ctx, place.name, mayMove)
	if err != nil {
		return fmt.Errorf("record where files are stored: %w", err)
	}
	return place.is(recorded)
}
