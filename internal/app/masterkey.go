package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/vault"
)

// RotateMasterKey encrypts the data keys of all workspaces with a new master key,
// while no server runs. It generates the key unless newFile names one. It can be
// interrupted at any time: the data keys are encrypted with one key or the other,
// and the next start uses the one that matches.
//
// It returns the path of the old key, or "" if that was not in a file.
func RotateMasterKey(ctx context.Context, data config.Data, newFile string) (previous string, err error) {
	if data.MasterKey != "" && newFile == "" {
		return "", errors.New("the master key comes from the environment: name a file that has the new key with --to, then set the variable to the new key")
	}
	c, release, err := openExclusive(ctx, data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	// The draft of an interrupted rotation may be the only copy of the right key.
	if err := c.finishRotation(data); err != nil {
		return "", err
	}
	next, err := newMasterKey(data, newFile)
	if err != nil {
		return "", err
	}
	to, err := vault.New(next, c.store.Workspaces)
	if err != nil {
		return "", err
	}
	failpoint.Hit(failpoint.BeforeRewrap, "")
	err = c.store.Installation.RewrapDataKeys(ctx, to.Check(), func(workspaceID string, wrapped []byte) ([]byte, error) {
		return c.vault.Rewrap(workspaceID, wrapped, to)
	})
	if err != nil {
		return "", fmt.Errorf("encrypt the data keys with the new master key: %w", err)
	}
	failpoint.Hit(failpoint.AfterRewrap, "")
	if data.MasterKey != "" {
		return "", nil
	}
	return vault.Promote(data.KeyFile(), clock.Now())
}

// newMasterKey returns the key in newFile, or a generated one.
func newMasterKey(data config.Data, newFile string) ([]byte, error) {
	if newFile == "" {
		return vault.StageMasterKey(data.KeyFile())
	}
	key, err := vault.ReadMasterKey(newFile)
	if err != nil || data.MasterKey != "" {
		return key, err
	}
	return key, vault.WriteStaged(data.KeyFile(), key)
}

// finishRotation completes or undoes an interrupted rotation: it promotes the
// draft key if the data is encrypted with it, and deletes the draft otherwise. The
// caller must have exclusive access to the data.
func (c *core) finishRotation(data config.Data) error {
	if data.MasterKey != "" {
		return nil
	}
	if !c.rotated {
		return vault.DiscardStaged(data.KeyFile())
	}
	c.rotated = false
	if _, err := os.Stat(data.KeyFile()); err != nil {
		return fmt.Errorf("finish the rotation of the master key: %w", err)
	}
	_, err := vault.Promote(data.KeyFile(), clock.Now())
	return err
}

// warnIfKeyIsExposed logs a warning if other users of the machine can access the
// file with the master key.
func warnIfKeyIsExposed(data config.Data, log *slog.Logger) {
	if data.MasterKey != "" {
		return
	}
	path := data.KeyFile()
	if mode, open := openToOthers(path, 0o077); open {
		log.Warn("other users of this machine can access the master key", "file", path, "mode", mode, "fix", "chmod 600 "+path)
	}
}

// CreateMasterKey writes a new master key to a new file.
func CreateMasterKey(path string) error {
	_, err := vault.CreateMasterKey(path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists", path)
	}
	return err
}
