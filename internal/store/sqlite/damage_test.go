package sqlite_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	raw "zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/test/lane"
)

// inFile is the number of rows in the file of a crashed process.
const inFile = 800

// crashedFiles are the files of a process that ended without closing them: the
// first rows are in the file, the last ones only in the log.
type crashedFiles struct {
	file, log []byte
	rows      []string
}

func newCrashedFiles(t *testing.T) (c crashedFiles) {
	t.Helper()
	dir := newDir(t)
	db := open(t, dir)
	c.rows = numbered("row with a text of some length ", 1200)
	for at := 0; at < len(c.rows); at += 100 { // one commit per hundred rows
		if at == inFile {
			db.Checkpoint()
		}
		err := db.Write(t.Context(), func(conn database.Conn) error {
			for _, key := range c.rows[at : at+100] {
				if err := putKey(key)(conn); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, sqlite.FileName)
	var err error
	if c.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if c.log, err = os.ReadFile(path + "-wal"); err != nil || len(c.log) == 0 {
		t.Fatal(len(c.log), err)
	}
	return c
}

// reopen opens the files and returns the rows, or an error if they are rejected.
func (c crashedFiles) reopen(t *testing.T) ([]string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	for name, content := range map[string][]byte{path: c.file, path + "-wal": c.log} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sqlite.Open(t.Context(), filepath.Dir(path), sqlite.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	got := keys(t, db)
	stop()
	return got, <-ended
}

func TestOpenAfterCrash(t *testing.T) {
	t.Parallel()
	whole := newCrashedFiles(t)

	t.Run("nothing is lost", func(t *testing.T) {
		if got, err := whole.reopen(t); err != nil || !slices.Equal(got, whole.rows) {
			t.Errorf("%d rows of %d, %v", len(got), len(whole.rows), err)
		}
	})

	// Only page structures are damaged: SQLite has no checksums of the contents.
	t.Run("a damaged file is rejected", func(t *testing.T) {
		seed := lane.Seed()
		t.Logf("seed %d", seed)
		random, rejected := rand.New(rand.NewPCG(seed, 0)), 0
		pageSize := int(binary.BigEndian.Uint16(whole.file[16:]))
		for range 20 {
			page, offset := random.IntN(len(whole.file)/pageSize), random.IntN(8)
			damaged := whole
			damaged.file = slices.Clone(whole.file)
			damaged.file[page*pageSize+offset] ^= byte(1 + random.IntN(255))
			got, err := damaged.reopen(t)
			if err != nil {
				rejected++
				if !strings.Contains(err.Error(), "`stepmill restore FILE`") {
					t.Errorf("page %d, byte %d: the message does not say what to do: %v", page+1, offset, err)
				}
			} else if !slices.Equal(got, whole.rows) {
				t.Errorf("page %d, byte %d: served %d rows of %d", page+1, offset, len(got), len(whole.rows))
			}
		}
		if rejected == 0 {
			t.Error("nothing was rejected")
		}
	})

	// The table of versions then has no rows, or not the last one: page 3 is its first.
	t.Run("a damaged table of versions is rejected", func(t *testing.T) {
		pageSize := int(binary.BigEndian.Uint16(whole.file[16:]))
		for _, damage := range []struct {
			offset int
			flip   byte
		}{{0, 1}, {3, 5}, {4, 1}} {
			damaged := whole
			damaged.file = slices.Clone(whole.file)
			damaged.file[2*pageSize+damage.offset] ^= damage.flip
			if _, err := damaged.reopen(t); err == nil || !strings.Contains(err.Error(), "`stepmill restore FILE`") {
				t.Errorf("byte %d: %v", damage.offset, err)
			}
		}
	})

	// The log has checksums and ends at the first wrong one.
	t.Run("a damaged log ends at the damage", func(t *testing.T) {
		for _, at := range []int{0, 40, len(whole.log) / 2, len(whole.log) - 100} {
			damaged := whole
			damaged.log = slices.Clone(whole.log)
			damaged.log[at] ^= 0x55
			got, err := damaged.reopen(t)
			if err == nil && (len(got) < inFile || len(got)%100 != 0 || !slices.Equal(got, whole.rows[:len(got)])) {
				t.Errorf("damage at %d: %d rows", at, len(got))
			}
		}
	})

	t.Run("a torn log ends with its last complete commit", func(t *testing.T) {
		for cut := range 8 {
			torn := whole
			torn.log = whole.log[:len(whole.log)*cut/8+cut]
			got, err := torn.reopen(t)
			if err != nil || len(got) < inFile || len(got)%100 != 0 || !slices.Equal(got, whole.rows[:len(got)]) {
				t.Errorf("cut at %d: %d rows, %v", len(torn.log), len(got), err)
			}
		}
	})
}

func TestOpenRejectsGarbage(t *testing.T) {
	t.Parallel()
	dir, content := t.TempDir(), strings.Repeat("This is no database. ", 1000)
	if err := os.WriteFile(filepath.Join(dir, sqlite.FileName), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, migrate := range []bool{true, false} {
		if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{Migrate: migrate}); err == nil || !strings.Contains(err.Error(), "`stepmill restore FILE`") {
			t.Errorf("migrate %t: got %v", migrate, err)
		}
	}
	if left, err := os.ReadFile(filepath.Join(dir, sqlite.FileName)); err != nil || string(left) != content {
		t.Errorf("the file was changed to %d bytes, %v", len(left), err)
	}
}

// Damage that is found while reading or writing is reported with what to do.
func TestDamageWhileRunning(t *testing.T) {
	t.Parallel()
	for _, code := range []raw.ResultCode{raw.ResultCorrupt, raw.ResultNotADB} {
		if err := sqlite.Explain(code.ToError()); !strings.Contains(err.Error(), "`stepmill restore FILE`") || !errors.Is(err, code.ToError()) {
			t.Errorf("got %v", err)
		}
	}
}

// TestRunStopsOnDamage checks a file that is too large to be checked before
// serving.
func TestRunStopsOnDamage(t *testing.T) {
	t.Parallel()
	whole := newBackup(t, filepath.Join(t.TempDir(), "whole"))
	for name, tc := range map[string]struct {
		content []byte
		stopped bool
		fails   bool
	}{
		"a damaged file":                     {content: corruptPages(whole, len(whole)-4096), fails: true},
		"a whole file":                       {content: whole},
		"a check that the end has overtaken": {content: corruptPages(whole, len(whole)-4096), stopped: true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, sqlite.FileName), tc.content, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := sqlite.Open(t.Context(), dir, sqlite.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		db.CheckLater()
		ctx, stop := context.WithCancel(context.Background())
		if tc.stopped {
			stop()
		}
		ended := make(chan error, 1)
		go func() { ended <- db.Run(ctx) }()
		if !tc.fails && !tc.stopped {
			if err := db.Write(t.Context(), putKey("served meanwhile")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			stop()
		}
		err = <-ended
		stop()
		if (err != nil) != tc.fails || tc.fails && !strings.Contains(err.Error(), "stepmill restore") {
			t.Errorf("%s: got %v", name, err)
		}
		isFault(t, name+": a write afterwards", db.Write(t.Context(), putKey("x")), fault.Unavailable)
	}
}
