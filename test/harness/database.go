package harness

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/postgres"
)

const (
	// databaseVariable selects where the servers under test store their data: in the
	// data directory, or for "postgres" in a PostgreSQL database for each directory.
	databaseVariable = "STEPMILL_TEST_DATABASE"
	// urlFile is the file in a data directory with the URL of its database.
	urlFile = "database-url"
	// lease is shorter than the default, so that tests wait less for killed nodes.
	lease = "3s"
)

// OnPostgres reports whether the servers under test use PostgreSQL.
func OnPostgres() bool { return os.Getenv(databaseVariable) == "postgres" }

// embeddedOnly has the tests that were skipped on PostgreSQL, with reasons.
var embeddedOnly struct {
	sync.Mutex
	tests []string
}

// EmbeddedOnly skips the test on PostgreSQL. Tests of features that only the embedded
// database has call it first. The skipped tests are listed at the end.
func EmbeddedOnly(t testing.TB, reason string) {
	t.Helper()
	if reason == "" {
		t.Fatal("EmbeddedOnly needs a reason")
	}
	if !OnPostgres() {
		return
	}
	embeddedOnly.Lock()
	embeddedOnly.tests = append(embeddedOnly.tests, t.Name()+": "+reason)
	embeddedOnly.Unlock()
	t.Skip("embedded database only: " + reason)
}

// printSkipped lists the tests that were skipped on PostgreSQL.
func printSkipped() {
	embeddedOnly.Lock()
	defer embeddedOnly.Unlock()
	if len(embeddedOnly.tests) == 0 {
		return
	}
	slices.Sort(embeddedOnly.tests)
	fmt.Printf("%d tests are for the embedded database only:\n\t%s\n", len(embeddedOnly.tests), strings.Join(embeddedOnly.tests, "\n\t"))
}

// DatabaseURL returns the URL of the database that belongs to a data directory.
func DatabaseURL(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, urlFile))
	return string(text), err
}

// isNew reports whether a data directory has no data yet.
func isNew(dir string) bool {
	name := "stepmill.db"
	if OnPostgres() {
		name = urlFile
	}
	_, err := os.Stat(filepath.Join(dir, name))
	return os.IsNotExist(err)
}

// DataArgs returns the arguments with which a command finds the data of a directory,
// even if no server was started on it yet.
func DataArgs(t testing.TB, dir string) []string {
	t.Helper()
	if !OnPostgres() {
		return []string{"--data-dir", dir}
	}
	where, err := ensureDatabase(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return append(where, "--data-dir", dir)
}

// ensureDatabase gives a data directory a database and a master key unless it has them,
// and returns the arguments for a node. An empty database has no tables.
func ensureDatabase(dir string, empty bool) ([]string, error) {
	url, err := DatabaseURL(dir)
	if os.IsNotExist(err) {
		url, err = newDatabase(dir, empty)
	}
	return []string{"--database-url", url}, err
}

// migrated makes a database with empty tables. Copying it is faster than migrating a
// database for every server.
var migrated = sync.OnceValues(func() (string, error) {
	server, err := postgres.Durable()
	if err != nil {
		return "", err
	}
	name, err := server.CreateDatabase(context.Background(), "template0")
	if err != nil {
		return "", err
	}
	path, err := Binary()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, "migrate", "--database-url", server.URL(name))
	cmd.Env = Environ("STEPMILL_DATABASE_TIMEOUT=" + Timeout.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("stepmill migrate: %w\n%s", err, out)
	}
	return name, nil
})

func newDatabase(dir string, empty bool) (string, error) {
	server, err := postgres.Durable()
	if err != nil {
		return "", err
	}
	template := "template0"
	if !empty {
		if template, err = migrated(); err != nil {
			return "", err
		}
	}
	name, err := server.CreateDatabase(context.Background(), template)
	if err != nil {
		return "", err
	}
	url := server.URL(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := WriteMasterKey(filepath.Join(dir, "master.key")); err != nil {
		return "", err
	}
	return url, os.WriteFile(filepath.Join(dir, urlFile), []byte(url), 0o600)
}

// WriteMasterKey writes a new master key to a file.
func WriteMasterKey(path string) error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return os.WriteFile(path, []byte(hex.EncodeToString(key)+"\n"), 0o600)
}

// dropDatabase removes the database of a data directory.
func dropDatabase(t testing.TB, dir string) {
	url, err := DatabaseURL(dir)
	if err != nil {
		return // it has none
	}
	server, err := postgres.Durable()
	if err == nil {
		_, name, _ := strings.Cut(strings.TrimPrefix(url, "postgres://"), "/")
		name, _, _ = strings.Cut(name, "?")
		err = server.DropDatabase(name)
	}
	if err != nil {
		t.Error(err)
	}
}
