package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/vault"
)

// sealedData is an installation that contains an encrypted value.
type sealedData struct {
	config.Data
	ref    vault.Ref
	sealed []byte
}

func newSealedData(t *testing.T) *sealedData {
	t.Helper()
	d := &sealedData{Data: config.Data{Dir: t.TempDir()}}
	d.with(t, sqlite.Options{Migrate: true}, func(ctx context.Context, c *core) error {
		if _, err := c.auth.Bootstrap(ctx); err != nil {
			return err
		}
		first, err := c.store.Workspaces.FirstWorkspace(ctx)
		if err != nil {
			return err
		}
		d.ref = vault.Ref{Workspace: first.ID, Table: "t", ID: "1"}
		d.sealed, err = c.vault.Seal(ctx, d.ref, []byte("plaintext"))
		return err
	})
	return d
}

func (d *sealedData) with(t *testing.T, opts sqlite.Options, do func(context.Context, *core) error) {
	t.Helper()
	c, err := openCore(t.Context(), d.Data, opts, store.Notify{})
	if err != nil {
		t.Fatal(err)
	}
	if err := do(t.Context(), c); err != nil {
		t.Error(err)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

// opens fails the test unless the current key decrypts the value.
func (d *sealedData) opens(t *testing.T) {
	t.Helper()
	d.with(t, sqlite.Options{}, func(ctx context.Context, c *core) error {
		plain, err := c.vault.Open(ctx, d.ref, d.sealed)
		if string(plain) != "plaintext" {
			t.Errorf("opened %q", plain)
		}
		return err
	})
}

func (d *sealedData) key(t *testing.T) []byte {
	t.Helper()
	key, err := vault.ReadMasterKey(d.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestRotateMasterKey(t *testing.T) {
	t.Parallel()
	d := newSealedData(t)
	before := d.key(t)
	kept, err := RotateMasterKey(t.Context(), d.Data, "")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before, d.key(t)) {
		t.Error("the key is the same")
	}
	if old, err := vault.ReadMasterKey(kept); err != nil || !bytes.Equal(old, before) {
		t.Errorf("the old key was not saved: %v", err)
	}
	d.opens(t)

	// The old key no longer works.
	stale := d.Data
	stale.MasterKeyFile = kept
	if c, err := openCore(t.Context(), stale, sqlite.Options{}, store.Notify{}); err == nil {
		_ = c.close()
		t.Error("the data opened with the old key")
	} else if !strings.Contains(err.Error(), "master key does not match") {
		t.Error(err)
	}
}

func TestRotateToGivenMasterKey(t *testing.T) {
	t.Parallel()
	d := newSealedData(t)
	file := filepath.Join(t.TempDir(), "new.key")
	given, err := vault.CreateMasterKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := RotateMasterKey(t.Context(), d.Data, file); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(given, d.key(t)) {
		t.Error("another key is in use")
	}
	d.opens(t)
}

func TestRotateMasterKeyFromEnvironmentNeedsANewKey(t *testing.T) {
	t.Parallel()
	d := newSealedData(t)
	d.MasterKey = strings.Repeat("ab", 32)
	if _, err := RotateMasterKey(t.Context(), d.Data, ""); err == nil || !strings.Contains(err.Error(), "environment") {
		t.Error(err)
	}
}

// An interrupted rotation leaves data that opens both before and after the next
// server finishes it.
func TestInterruptedRotation(t *testing.T) {
	t.Parallel()
	for name, rewrapped := range map[string]bool{"before the data keys are rewrapped": false, "after the data keys are rewrapped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newSealedData(t)
			before := d.key(t)
			next, err := vault.StageMasterKey(d.KeyFile())
			if err != nil {
				t.Fatal(err)
			}
			if rewrapped {
				d.with(t, sqlite.Options{}, func(ctx context.Context, c *core) error {
					to, err := vault.New(next, c.store.Workspaces)
					if err != nil {
						return err
					}
					return c.store.Installation.RewrapDataKeys(ctx, to.Check(), func(id string, wrapped []byte) ([]byte, error) { return c.vault.Rewrap(id, wrapped, to) })
				})
			}
			d.opens(t)
			d.with(t, sqlite.Options{}, func(_ context.Context, c *core) error { return c.finishRotation(d.Data) })
			d.opens(t)
			want := before
			if rewrapped {
				want = next
			}
			if !bytes.Equal(want, d.key(t)) {
				t.Error("the wrong key is in use")
			}
			if _, err := os.Stat(d.KeyFile() + ".next"); err == nil {
				t.Error("the draft is still there")
			}
		})
	}
}

func TestExposedMasterKeyIsReported(t *testing.T) {
	t.Parallel()
	for mode, exposed := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o644: true} {
		d := newSealedData(t)
		if err := os.Chmod(d.KeyFile(), mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s := newServer(node.RoleServe, config.Serve{}, slog.New(slog.NewTextHandler(&log, nil)))
		if err := errors.Join(s.data.open(t.Context(), d.Data, s.config, s.notify(), s.log), s.close()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "chmod 600 "+d.KeyFile()); got != exposed {
			t.Errorf("mode %04o: the warning is logged: %t, want %t: %s", mode, got, exposed, log.String())
		}
	}
}
