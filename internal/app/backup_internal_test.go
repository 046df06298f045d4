package app

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// killedServer returns the data of a server that was killed: the key named "last"
// is only in the write-ahead log. The backup is from before it was created.
func killedServer(t *testing.T) (data config.Data, backup string) {
	t.Helper()
	d := newSealedData(t)
	backup = filepath.Join(t.TempDir(), "backup.db")
	if err := Backup(t.Context(), d.Data, backup, io.Discard); err != nil {
		t.Fatal(err)
	}
	admin, err := openAdmin(t.Context(), d.Data)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := admin.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := admin.CreateKey(t.Context(), "", "last", []string{"read"}, "", func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	data = config.Data{Dir: t.TempDir()}
	for _, name := range []string{sqlite.FileName, sqlite.FileName + "-wal", "master.key"} {
		content, err := os.ReadFile(filepath.Join(d.Dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(data.Dir, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return data, backup
}

// keyNames returns the names of the API keys in the data, newest first.
func keyNames(t *testing.T, data config.Data) []string {
	t.Helper()
	admin, err := openAdmin(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := admin.Keys(t.Context(), "")
	if err := errors.Join(err, admin.Close()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, key := range keys {
		names = append(names, key.Name)
	}
	return names
}

// rename renames files of the data directory, given as pairs of names.
func rename(t *testing.T, data config.Data, names ...string) {
	t.Helper()
	for i := 0; i < len(names); i += 2 {
		if err := os.Rename(filepath.Join(data.Dir, names[i]), filepath.Join(data.Dir, names[i+1])); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	const db, previous = sqlite.FileName, sqlite.FileName + ".before-restore-20260101-000000.000000"
	for name, interrupt := range map[string]func(*testing.T, config.Data){
		"after the previous data was moved": func(t *testing.T, data config.Data) { rename(t, data, db, previous, db+"-wal", previous+"-wal") },
		"before its log was moved":          func(t *testing.T, data config.Data) { rename(t, data, db, previous) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, backup := killedServer(t)
			interrupt(t, data)
			kept := filepath.Join(data.Dir, previous)

			// It is not mistaken for a new installation, and the message says how to go on.
			for _, migrate := range []bool{true, false} {
				c, err := openCore(t.Context(), data, sqlite.Options{Migrate: migrate}, store.Notify{})
				if err == nil {
					_ = c.close()
					t.Fatal("an empty installation was created")
				}
				for _, want := range []string{"stepmill restore FILE --data-dir " + data.Dir, "stepmill restore " + kept + " --data-dir " + data.Dir} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the message does not contain %q: %v", want, err)
					}
				}
			}
			if _, err := os.Stat(filepath.Join(data.Dir, db)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a database was created: %v", err)
			}

			// Finishing the restore results in the backup, undoing it in everything
			// that was acknowledged.
			for _, tc := range []struct {
				file string
				want []string
			}{{backup, []string{"First admin key"}}, {kept, []string{"last", "First admin key"}}} {
				if _, err := Restore(t.Context(), data, tc.file); err != nil {
					t.Fatal(err)
				}
				if got := keyNames(t, data); !slices.Equal(got, tc.want) {
					t.Errorf("after restoring %s the keys are %q, want %q", tc.file, got, tc.want)
				}
			}
		})
	}
}

func TestRestoreInterruptedWhileCopying(t *testing.T) {
	t.Parallel()
	data, backup := killedServer(t)
	rename(t, data, sqlite.FileName, sqlite.FileName+".partial")
	if c, err := openCore(t.Context(), data, sqlite.Options{Migrate: true}, store.Notify{}); err == nil {
		_ = c.close()
		t.Fatal("an empty installation was created")
	} else if want := "stepmill restore FILE --data-dir " + data.Dir; !strings.Contains(err.Error(), want) {
		t.Errorf("the message does not contain %q: %v", want, err)
	}
	if _, err := Restore(t.Context(), data, backup); err != nil {
		t.Fatal(err)
	}
	if got := keyNames(t, data); !slices.Equal(got, []string{"First admin key"}) {
		t.Errorf("the keys are %q", got)
	}
}

// A backup replaces no file, leaves no other behind, and is private.
func TestBackupDoesNotOverwrite(t *testing.T) {
	t.Parallel()
	d := newSealedData(t)
	target := filepath.Join(t.TempDir(), "backup.db")
	for path, content := range map[string]string{target: "precious", target + partialSuffix: "left by a crash"} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Backup(t.Context(), d.Data, target, io.Discard); err == nil {
		t.Error("a file was overwritten")
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "precious" {
		t.Errorf("it holds %q, %v", got, err)
	}
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), d.Data, target, io.Discard); err != nil {
		t.Errorf("a leftover of an earlier backup is in the way: %v", err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", info, err)
	}
	if err := Backup(t.Context(), config.Data{Dir: t.TempDir()}, target+"2", io.Discard); !errors.Is(err, sqlite.ErrMissing) {
		t.Errorf("a backup of missing data: %v", err)
	}
	if err := Backup(t.Context(), d.Data, filepath.Join(t.TempDir(), "missing", "backup.db"), io.Discard); err == nil {
		t.Error("a backup was written to a missing directory")
	}
	left, err := filepath.Glob(target + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("files: %q, %v", left, err)
	}
}
