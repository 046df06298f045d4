// Package upgrade_test checks that this release takes over from earlier ones: from data
// that they wrote, which is kept in testdata, and from their nodes while they run.
package upgrade_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// releases are the releases whose data is kept, with the commit of each, the oldest first.
// schema-14 is no release, but the last commit before tables and columns were renamed.
var releases = []struct{ name, commit string }{
	{"0.2.0", "e1e901ca4244203e9632d8a151e9faa6f704a74e"},
	{"schema-14", "8a48dc2e31181be2f586d9fb156444c5adb3b759"},
}

// build builds a release from the history of this repository and returns the binary.
func build(t *testing.T, name string) string {
	t.Helper()
	commit := ""
	for _, release := range releases {
		if release.name == name {
			commit = release.commit
		}
	}
	archive, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "archive", commit).Output()
	if err != nil {
		t.Fatalf("read the source of %s from the history: %v (a shallow clone has none: run `git fetch --unshallow`)", name, err)
	}
	dir := t.TempDir()
	if err := unpack(bytes.NewReader(archive), dir); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "stepmill")
	compile := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-X github.com/stepmill/stepmill/internal/config.Version="+name, "-o", binary, "./cmd/stepmill")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return binary
}

// unpack unpacks a tar file into a directory.
func unpack(from io.Reader, dir string) error {
	files := tar.NewReader(from)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = writeFile(path, header.FileInfo().Mode(), files)
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(path string, mode os.FileMode, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
