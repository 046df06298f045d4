package vault_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/vault"
)

// A key on a read-only mount has no staged key beside it, and discarding it must
// not fail. Nothing can be removed from these directories, and some of them
// report that before they check whether the file exists.
func TestDiscardStagedOnAReadOnlyMount(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"/sys", "/proc/sys", "/proc"} {
		if err := vault.DiscardStaged(dir + "/master.key"); err != nil {
			t.Errorf("in %s: %v", dir, err)
		}
	}
}
