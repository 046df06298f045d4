package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

const backups = 5

// Backups are taken under load. Each is whole, and restored it has everything
// that was acknowledged before it began; runs that were under way go on.
func TestBackupUnderLoad(t *testing.T) {
	harness.EmbeddedOnly(t, "backups of PostgreSQL are made with its own tools")
	seed := harness.Seed(t)
	t.Logf("%d backups", backups)
	random := harness.Random(seed, clients)
	l := newLoad(t, seed)
	s := harness.Start(t, t.TempDir(), egress)
	l.prepare(s)
	first, wait := l.run(s)
	awaitFirst(t, first)

	type backup struct {
		file string
		runs []*execution // acknowledged before it began
	}
	var taken []backup
	for i := range backups {
		time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
		b := backup{file: filepath.Join(t.TempDir(), fmt.Sprintf("backup-%d", i))}
		l.ledger.mu.Lock()
		b.runs = append(b.runs, l.ledger.runs...)
		l.ledger.mu.Unlock()
		if result := harness.Run(t, nil, "backup", b.file, "--data-dir", s.Dir); result.Code != 0 {
			t.Fatalf("backup: exit code %d: %s", result.Code, result.Stderr)
		}
		taken = append(taken, b)
	}
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
		checkTables(t, checkFile(t, dir), "")
		if err := os.WriteFile(filepath.Join(dir, "master.key"), master, 0o600); err != nil {
			t.Fatal(err)
		}
		restored := harness.Start(t, dir, egress)
		restored.Key = s.Key
		for _, e := range b.runs {
			now := awaitEnd(t, restored.Client, e.id, 20*time.Second)
			for _, v := range e.chain().violations(now) {
				t.Error(v)
			}
		}
		restored.Stop(t)
	}
	t.Logf("the last backup began after %d acknowledged runs", len(taken[len(taken)-1].runs))

	s = restart(t, s, egress)
	l.settle(t, s)
	l.verifyAll(t, s)
	l.summarize(t, 20)
}
