package harness

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/postgres"
)

const (
	// databaseVariable says where the servers under test keep their data: in the
	// data directory, or with "postgres" in a database of its own for each.
	databaseVariable = "STEPMILL_TEST_DATABASE"
	// urlFile says, in a data directory, which database belongs to it.
	urlFile = "database-url"
	// lease is how long the runs of a killed node stay its own: tests do not
	// wait as long as people do.
	lease = "2s"
)

// OnPostgres tells that the servers under test are nodes on PostgreSQL.
func OnPostgres() bool { return os.Getenv(databaseVariable) == "postgres" }

// embeddedOnly has the tests that were left to the embedded database, and why.
var embeddedOnly struct {
	sync.Mutex
	tests []string
}

// EmbeddedOnly is the first word of a test about something that only the
// embedded database has. On PostgreSQL it ends the test; which ones it ended is
// listed when all have run.
func EmbeddedOnly(t testing.TB, because string) {
	t.Helper()
	if because == "" {
		t.Fatal("say why this test is about the embedded database")
	}
	if !OnPostgres() {
		return
	}
	embeddedOnly.Lock()
	embeddedOnly.tests = append(embeddedOnly.tests, t.Name()+": "+because)
	embeddedOnly.Unlock()
	t.Skip("about the embedded database: " + because)
}

// report lists what was not tested on PostgreSQL.
func report() {
	embeddedOnly.Lock()
	defer embeddedOnly.Unlock()
	if len(embeddedOnly.tests) == 0 {
		return
	}
	slices.Sort(embeddedOnly.tests)
	fmt.Printf("%d tests are about the embedded database only:\n\t%s\n", len(embeddedOnly.tests), strings.Join(embeddedOnly.tests, "\n\t"))
}

// DatabaseURL is the database that belongs to a data directory.
func DatabaseURL(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, urlFile))
	return string(text), err
}

// isNew tells whether nobody has kept data for this directory so far.
func isNew(dir string) bool {
	name := "stepmill.db"
	if OnPostgres() {
		name = urlFile
	}
	_, err := os.Stat(filepath.Join(dir, name))
	return os.IsNotExist(err)
}

// Where are the arguments with which a command finds the data of a directory,
// of which a server may or may not have been started.
func Where(t testing.TB, dir string) []string {
	t.Helper()
	if !OnPostgres() {
		return []string{"--data-dir", dir}
	}
	where, err := provide(dir)
	if err != nil {
		t.Fatal(err)
	}
	return append(where, "--data-dir", dir)
}

// provide gives a data directory a database and a master key, if it has none,
// and answers with what a node needs to be told.
func provide(dir string) ([]string, error) {
	url, err := DatabaseURL(dir)
	if os.IsNotExist(err) {
		url, err = newDatabase(dir)
	}
	return []string{"--database-url", url}, err
}

func newDatabase(dir string) (string, error) {
	server, err := postgres.Durable()
	if err != nil {
		return "", err
	}
	name, err := server.MakeDatabase(context.Background(), "template0")
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

// WriteMasterKey makes a master key for nodes to share.
func WriteMasterKey(path string) error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return os.WriteFile(path, []byte(hex.EncodeToString(key)+"\n"), 0o600)
}

// dropDatabase removes the database of a data directory.
func dropDatabase(t testing.TB, dir string) {
	url, err := DatabaseURL(dir)
	if err != nil {
		return // it never had one
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
