package upgrade_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

var update = flag.String("update", "", "write the fixtures of a release, such as 0.2.0")

// The files of a fixture in testdata.
const (
	directoryFile = "directory.tar.gz"
	dumpFile      = "postgres.sql.gz"
	keyFile       = "master.key"
)

// TestWriteFixtures writes the fixtures of a release.
func TestWriteFixtures(t *testing.T) {
	if *update == "" {
		t.SkipNow()
	}
	binary := build(t, *update)
	t.Run("directory", func(t *testing.T) {
		dir := t.TempDir()
		server := harness.StartWith(t, harness.Options{Dir: dir, Binary: binary})
		described := fill(t, server.Client)
		server.Kill(t) // with a write-ahead log
		write(t, directoryFile, pack(t, dir))
		describe(t, directoryFile, described)
	})
	t.Run("postgres", func(t *testing.T) {
		dir, url := t.TempDir(), postgres.Shared(t).NewDatabase(t)
		if err := harness.WriteMasterKey(filepath.Join(dir, keyFile)); err != nil {
			t.Fatal(err)
		}
		server := harness.StartWith(t, harness.Options{Dir: dir, Database: url, Binary: binary})
		server.Key = server.AwaitKey(t)
		described := fill(t, server.Client)
		server.Kill(t)
		dump, err := exec.CommandContext(t.Context(), "pg_dump", "--inserts", "--no-owner", url).Output()
		if err != nil {
			t.Fatal(err)
		}
		write(t, dumpFile, dump)
		describe(t, dumpFile, described)
		key, err := os.ReadFile(filepath.Join(dir, keyFile))
		if err == nil {
			err = os.WriteFile(filepath.Join("testdata", *update, keyFile), key, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// describe writes what a fixture contains.
func describe(t *testing.T, name string, f fixture) {
	t.Helper()
	text, err := json.MarshalIndent(f, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join("testdata", *update, name+".json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	dir := filepath.Join("testdata", *update)
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), packed.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pack returns the files of a data directory as a tar file, without those that only exist
// while a server runs and the one that takes up space.
func pack(t *testing.T, dir string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || entry.Name() == "lock" || entry.Name() == "reserve" || strings.HasSuffix(entry.Name(), "-shm") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: entry.Name(), Mode: 0o600, Size: int64(len(content))})
		}
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestDirectoryOfEarlierReleases checks that the server takes over data directories of
// killed servers of earlier releases, also after it is killed itself while it migrates.
func TestDirectoryOfEarlierReleases(t *testing.T) {
	harness.EmbeddedOnly(t, "it starts from data directories")
	t.Parallel()
	for _, release := range releases {
		t.Run(release.name, func(t *testing.T) {
			t.Parallel()
			dir, f := t.TempDir(), read(t, release.name, directoryFile)
			if err := unpack(bytes.NewReader(f.content), dir); err != nil {
				t.Fatal(err)
			}
			killed := harness.StartProcess(t, harness.Options{Dir: dir, Failpoint: "during_migration:kill"})
			killed.Wait(t)
			server := harness.StartWith(t, harness.Options{Dir: dir})
			server.Key = f.Key
			f.check(t, server.Client)
		})
	}
}

// TestDatabaseOfEarlierReleases is like TestDirectoryOfEarlierReleases for the databases of
// nodes.
func TestDatabaseOfEarlierReleases(t *testing.T) {
	t.Parallel()
	for _, release := range releases {
		t.Run(release.name, func(t *testing.T) {
			t.Parallel()
			dir, f := t.TempDir(), read(t, release.name, dumpFile)
			key, err := os.ReadFile(filepath.Join("testdata", release.name, keyFile))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, keyFile), key, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			url := postgres.Shared(t).NewDatabase(t)
			load(t, url, f.content)
			o := harness.Options{Dir: dir, Database: url, Args: []string{"--database-timeout", harness.Timeout.String()}}
			killing := o
			killing.Failpoint = "during_migration:kill"
			killed := harness.StartProcess(t, killing)
			killed.Wait(t)
			server := harness.StartWith(t, o)
			server.Key = f.Key
			f.check(t, server.Client)
		})
	}
}

// stored is a fixture with its content.
type stored struct {
	fixture
	content []byte
}

// read reads a fixture.
func read(t *testing.T, release, name string) (f stored) {
	t.Helper()
	dir := filepath.Join("testdata", release)
	packed, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		f.content, err = io.ReadAll(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err == nil {
		err = json.Unmarshal(text, &f.fixture)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// forPsql matches what only psql understands, and a setting that older servers do not have.
var forPsql = regexp.MustCompile(`(?m)^(\\.*|SET transaction_timeout .*)$`)

// load executes a dump.
func load(t *testing.T, url string, dump []byte) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), string(forPsql.ReplaceAll(dump, nil))); err != nil {
		t.Fatal(err)
	}
}
