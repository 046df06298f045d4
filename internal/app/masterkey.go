package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/vault"
)

// RotateMasterKey seals the data keys of all workspaces with another master key
// and puts it in force, while no server runs. A new key is made unless a file
// with one is named. It can be cut short at any moment: the data is sealed with
// one key or the other, and the next start finds the one that fits.
//
// It returns where the key before is kept, empty when it was not in a file.
func RotateMasterKey(ctx context.Context, data config.Data, newFile string) (kept string, err error) {
	if data.MasterKey != "" && newFile == "" {
		return "", errors.New("the master key comes from the environment: name a file with the new one, and set the variable to it afterwards")
	}
	c, release, err := openAlone(ctx, data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	// The draft of a rotation before may be the only copy of the key that fits.
	if err := c.settleMasterKey(data); err != nil {
		return "", err
	}
	next, err := nextMasterKey(data, newFile)
	if err != nil {
		return "", err
	}
	to, err := vault.New(next, c.store)
	if err != nil {
		return "", err
	}
	failpoint.Hit(failpoint.BeforeRewrap, "")
	err = c.store.RewrapDataKeys(ctx, to.Check(), func(workspaceID string, wrapped []byte) ([]byte, error) {
		return c.vault.Rewrap(workspaceID, wrapped, to)
	})
	if err != nil {
		return "", fmt.Errorf("seal the data keys anew: %w", err)
	}
	failpoint.Hit(failpoint.AfterRewrap, "")
	if data.MasterKey != "" {
		return "", nil
	}
	return vault.Promote(data.KeyFile(), clock.Now())
}

// nextMasterKey is the key to change to: one that is given, or a new one.
func nextMasterKey(data config.Data, newFile string) ([]byte, error) {
	if newFile == "" {
		return vault.DraftMasterKey(data.KeyFile())
	}
	key, err := vault.ReadMasterKey(newFile)
	if err != nil || data.MasterKey != "" {
		return key, err
	}
	return key, vault.Draft(data.KeyFile(), key)
}

// settleMasterKey brings a rotation that was cut short to its end: the key that
// was to follow is put in force when the data is sealed with it, and forgotten
// when it is not. Only one who has the data alone may do so.
func (c *core) settleMasterKey(data config.Data) error {
	if data.MasterKey != "" {
		return nil
	}
	if !c.rotated {
		return vault.DropDraft(data.KeyFile())
	}
	c.rotated = false
	if _, err := os.Stat(data.KeyFile()); err != nil {
		return fmt.Errorf("settle the master key: %w", err)
	}
	_, err := vault.Promote(data.KeyFile(), clock.Now())
	return err
}

// CreateMasterKey makes a master key in a new file.
func CreateMasterKey(path string) error {
	_, err := vault.CreateMasterKey(path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already", path)
	}
	return err
}
