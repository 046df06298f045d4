package crash_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// Imports are killed at several points. Until an import has completed, no server starts
// on its data; the next import replaces it.
func TestInterruptedImport(t *testing.T) {
	lane.LongOnly(t)
	harness.EmbeddedOnly(t, "the code is the same for both databases, and the tests of the store cover it")
	t.Parallel()
	dir, file, key := newLargeInstallation(t)
	home := newDirWithKey(t, dir)
	for _, moment := range []string{"mid_import:kill:#1", "mid_import@run_queue:kill:#2", "mid_import@events:kill", "before_import_end:kill"} {
		if r := harness.RunWithFailpoint(t, moment, "import", file, "--data-dir", home); r.Code == 0 {
			t.Fatalf("%s: the import succeeded, want death at the failpoint", moment)
		}
		checkIncomplete(t, home)
	}
	importInto(t, file, home)
	again := newDirWithKey(t, dir)
	importInto(t, file, again)
	was, is := openCopy(t, again), openCopy(t, home)
	for _, table := range tables.Texts(t, was, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`) {
		if table == "goose_db_version" { // has the times of the migrations
			continue
		}
		if diff := cmp.Diff(tableRows(t, was, table), tableRows(t, is, table)); diff != "" {
			t.Errorf("table %s (-imported once +imported after interruptions):\n%s", table, diff)
		}
	}
	checkTables(t, is, "")
	s := startReadOnly(t, home, key)
	if got := len(list(t, s.Client, "/v1/runs").Data); got != largeRuns {
		t.Errorf("%d runs, want %d", got, largeRuns)
	}
}

// tableRows returns the rows of a table, each as one line.
func tableRows(t *testing.T, db *sql.DB, table string) (lines []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		var line strings.Builder
		for i, value := range values {
			fmt.Fprintf(&line, "%s=%v ", columns[i], *value.(*any))
		}
		lines = append(lines, line.String())
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// largeRuns is more than an import writes at once.
const largeRuns = 600

// newLargeInstallation makes an installation with many runs and stops its server. It
// returns the directory, an export and the admin key.
func newLargeInstallation(t *testing.T) (dir, file, key string) {
	t.Helper()
	s := harness.Start(t, t.TempDir())
	id := createWorkflow(t, s.Client, "many", chain{{"add", 1}, {"wait", 3_600_000}})
	var group sync.WaitGroup
	for range starters {
		group.Go(func() {
			for n := range int64(largeRuns / starters) {
				if response, err := s.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+id+"/runs", payload(n)); err != nil || response.Status != 201 {
					t.Errorf("start a run: %v %s", err, response.Body)
				}
			}
		})
	}
	group.Wait()
	s.Stop(t)
	return s.Dir, export(t, s.Dir), s.Key
}

// checkIncomplete checks that neither servers nor commands use an incomplete import.
func checkIncomplete(t *testing.T, dir string) {
	t.Helper()
	expectStartFailure(t, dir, nil, "import", "interrupted", "stepmill import FILE")
	for _, args := range [][]string{{"keys", "list"}, {"export", filepath.Join(t.TempDir(), "file")}, {"master-key", "rotate"}} {
		if r := harness.Run(t, nil, append(args, "--data-dir", dir)...); r.Code == 0 || !strings.Contains(r.Stderr, "interrupted") {
			t.Errorf("stepmill %s: exit code %d: %s", args[0], r.Code, r.Stderr)
		}
	}
}

// An import that can neither write nor roll back leaves no data that a server starts on.
func TestImportDiskFailure(t *testing.T) {
	lane.LongOnly(t)
	harness.EmbeddedOnly(t, "it limits the size of files in the data directory")
	t.Parallel()
	dir, file, key := newLargeInstallation(t)
	home := newDirWithKey(t, dir)
	r := runWithFileLimit(t, 1000, "import", file, "--data-dir", home)
	if r.Code != 1 || !strings.Contains(r.Stderr, "import") {
		t.Errorf("exit code %d: %s", r.Code, r.Stderr)
	}
	checkIncomplete(t, home)
	importInto(t, file, home)
	s := harness.Start(t, home)
	s.Key = key
	if got := len(list(t, s.Client, "/v1/runs").Data); got != largeRuns {
		t.Errorf("%d runs, want %d", got, largeRuns)
	}
	s.Stop(t)

	// An export that fails leaves no file.
	target := filepath.Join(t.TempDir(), "export.gz")
	if r := runWithFileLimit(t, 10, "export", target, "--data-dir", home); r.Code != 1 {
		t.Errorf("exit code %d: %s", r.Code, r.Stderr)
	}
	for _, name := range []string{target, target + ".partial"} {
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// runWithFileLimit runs a command with a limit on the size of the files it writes.
func runWithFileLimit(t *testing.T, kib int, args ...string) harness.Result {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", fmt.Sprintf(`ulimit -f %d && exec "$0" "$@"`, kib), binary}, args...)...)
	cmd.Env, cmd.Stderr = harness.Environ(), &stderr
	_ = cmd.Run() // the exit code is in the process state
	return harness.Result{Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}
