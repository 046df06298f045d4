package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// Backups are taken under load. Each one is complete: restored, it has everything that
// was acknowledged before it started, and its unfinished runs continue.
func TestBackupUnderLoad(t *testing.T) {
	harness.EmbeddedOnly(t, "backups of PostgreSQL are made with its own tools")
	t.Parallel()
	seed := harness.Seed(t)
	random := harness.Random(seed, clients)
	l := newLoad(t, seed)
	s := harness.Start(t, t.TempDir(), egress)
	l.prepare(s)
	first, wait := l.run(s)

	type backup struct {
		file string
		runs []*execution // acknowledged before it started
	}
	var taken []backup
	for i := range lane.Pick(2, 5) {
		l.awaitRandomMoment(t, first, random)
		b := backup{file: filepath.Join(t.TempDir(), fmt.Sprintf("backup-%d", i))}
		l.ledger.mu.Lock()
		b.runs = append(b.runs, l.ledger.runs...)
		l.ledger.mu.Unlock()
		if result := harness.Run(t, nil, "backup", b.file, "--data-dir", s.Dir); result.Code != 0 {
			t.Fatalf("backup: exit code %d: %s", result.Code, result.Stderr)
		}
		taken = append(taken, b)
	}
	l.awaitEnough(t, 20)
	s.Kill(t)
	wait()
	master, err := os.ReadFile(filepath.Join(s.Dir, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range taken {
		dir := filepath.Join(t.TempDir(), "restored")
		if result := harness.Run(t, nil, "restore", b.file, "--data-dir", dir); result.Code != 0 {
			t.Fatalf("restore: exit code %d: %s", result.Code, result.Stderr)
		}
		checkTables(t, openCopy(t, dir), "")
		if err := os.WriteFile(filepath.Join(dir, "master.key"), master, 0o600); err != nil {
			t.Fatal(err)
		}
		restored := harness.Start(t, dir, egress)
		restored.Key = s.Key
		for _, e := range b.runs {
			now := awaitEnd(t, restored.Client, e.id)
			for _, v := range e.chain().violations(now) {
				t.Error(v)
			}
		}
		restored.Stop(t)
	}
	t.Logf("the last backup started after %d acknowledged runs", len(taken[len(taken)-1].runs))

	s = restart(t, s, egress)
	l.settle(t, s)
	l.verifyAll(t, s)
	l.summarize(t)
}
