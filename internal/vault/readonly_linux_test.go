package vault_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/vault"
)

// A key that is mounted for reading alone has no draft beside it, and nobody
// fails to remove what is not there. Nothing can be removed from these places,
// and some of them say so before they look whether it is there.
func TestNoDraftOnAReadOnlyMount(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"/sys", "/proc/sys", "/proc"} {
		if err := vault.DropDraft(dir + "/master.key"); err != nil {
			t.Errorf("in %s: %v", dir, err)
		}
	}
}
