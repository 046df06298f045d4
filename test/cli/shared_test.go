package cli_test

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

// Commands name the shared database they use, without its password.
func TestSharedDatabaseIsNamedWithoutPassword(t *testing.T) {
	harness.EmbeddedOnly(t, "it starts with a data directory")
	t.Parallel()
	dir := t.TempDir()
	harness.Start(t, dir).Stop(t)
	shared, err := url.Parse(postgres.Shared(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	const password = "c4n4ry"
	shared.User = url.UserPassword(shared.User.Username(), password) // the server does not check it
	key := filepath.Join(dir, "master.key")
	run := func(code int, args ...string) string {
		t.Helper()
		r := harness.Run(t, []string{"STEPMILL_DATABASE_URL=" + shared.String(), "STEPMILL_MASTER_KEY_FILE=" + key}, args...)
		if r.Code != code || strings.Contains(r.Stdout+r.Stderr, password) || strings.Contains(r.Stdout+r.Stderr, "stepmill-data") {
			t.Errorf("stepmill %s: exit code %d, output\n%s%s", args[0], r.Code, r.Stdout, r.Stderr)
		}
		return r.Stdout + r.Stderr
	}
	place := "database " + strings.TrimPrefix(shared.Path, "/") + " on " + shared.Host

	run(0, "migrate")
	if got := run(1, "keys", "list"); !strings.Contains(got, "there is no Stepmill data in "+place+":") {
		t.Errorf("keys list without an installation: %s", got)
	}
	file := filepath.Join(t.TempDir(), "all.gz")
	if r := harness.Run(t, nil, "export", file, "--data-dir", dir); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	if got := run(0, "import", file); !regexp.MustCompile(`^imported \d+ rows into ` + regexp.QuoteMeta(place) + "\n").MatchString(got) {
		t.Errorf("import: %s", got)
	}
	back := file + ".back"
	if got := run(0, "export", back); !strings.HasPrefix(got, "wrote "+back+" with ") || !strings.Contains(got, "It is in "+key+":") {
		t.Errorf("export: %s", got)
	}
}
