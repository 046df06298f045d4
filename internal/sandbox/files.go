package sandbox

import (
	"context"
	"io"
)

// Limits of files. How large a file that a script reads or creates can be depends on
// its memory: see [Serve].
const (
	// MaxReads bounds how often a script reads a file, MaxReadBytes the total size.
	MaxReads     = 1000
	MaxReadBytes = 256 << 20
	// MaxCreated bounds the files that a script creates and returns, MaxFileName the
	// bytes of their names and types.
	MaxCreated  = 100
	MaxFileName = 1 << 10
)

// Files are the files of a script. The script gets their bytes when it asks for them.
// It cannot name any other file: it refers to them by their index.
type Files struct {
	// Marker is a text that nobody can guess. In the input and the output, a string
	// of the marker and an index stands for a file. The script never sees it. If it is
	// empty, the script cannot return files.
	Marker string
	// Given are the files that the script can read.
	Given []File
	// Storage has the bytes of the given files, and stores the files that the script
	// creates and returns. Their indexes follow those of the given files, in the order
	// in which they are created.
	Storage Storage
}

// File describes a file that a script is given.
type File struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Storage reads and creates files for one script. Its errors end the script and are
// returned by [Pool.Run].
type Storage interface {
	// Open reads the given file with an index.
	Open(ctx context.Context, index int) (io.ReadCloser, error)
	Create(ctx context.Context, name, mediaType string) (FileWriter, error)
}

// FileWriter writes a file.
type FileWriter interface {
	io.Writer
	Finish() error
	// Abort discards the file. After Finish it does nothing.
	Abort()
}
