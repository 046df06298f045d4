// Package installation makes PostgreSQL databases for tests in which Stepmill is
// already installed, with tables and the first workspace. The first call in a process
// runs the migrations; later calls copy the result.
package installation

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

// Installation is an installed database.
type Installation struct {
	// URL is the URL of the database, which exists until the end of the test.
	URL string
	// Dir is a data directory for nodes. It holds their master key.
	Dir string
	// AdminKey is an API key of the first workspace.
	AdminKey string
}

var template struct {
	once               sync.Once
	database, adminKey string
	masterKey          []byte
	err                error
}

// New copies the installation into a new database on the server that postgres.Durable
// returns.
func New(t testing.TB) Installation {
	t.Helper()
	server, err := postgres.Durable()
	if err != nil {
		t.Fatal(err)
	}
	template.once.Do(func() {
		template.err = errors.New("the first installation failed") // for later calls if install ends this test
		template.err = install(t, server)
	})
	if template.err != nil {
		t.Fatal(template.err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "master.key"), template.masterKey, 0o600); err != nil {
		t.Fatal(err)
	}
	return Installation{URL: server.CopyDatabase(t, template.database), Dir: dir, AdminKey: template.adminKey}
}

// install starts a node on an empty database and stops it once it has made the tables
// and the first workspace.
func install(t testing.TB, server *postgres.Server) error {
	ctx := context.Background() // the template outlives this test
	dir := t.TempDir()
	key := filepath.Join(dir, "master.key")
	err := harness.WriteMasterKey(key)
	if err != nil {
		return err
	}
	if template.masterKey, err = os.ReadFile(key); err != nil {
		return err
	}
	if template.database, err = server.CreateDatabase(ctx, "template0"); err != nil {
		return err
	}
	node, err := harness.Launch(ctx, harness.Options{
		Dir: dir, Database: server.URL(template.database), Args: []string{"--database-timeout", harness.Timeout.String()},
	})
	if err != nil {
		return err
	}
	template.adminKey = node.AwaitKey(t)
	node.Stop(t)
	node.Close(t)
	return nil
}
