package vault_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/vault"
)

// A key that is mounted for reading alone has no draft beside it, and nobody
// fails to remove what is not there.
func TestNoDraftOnAReadOnlyMount(t *testing.T) {
	t.Parallel()
	path := filepath.Join(readOnly(t), "master.key")
	if err := vault.DropDraft(path); err != nil {
		t.Error(err)
	}
}

// readOnly is a folder of this machine on a mount that only lets read.
func readOnly(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(mounts)) {
		const place, options = 4, 5
		fields := strings.Fields(line)
		if len(fields) <= options || !slices.Contains(strings.Split(fields[options], ","), "ro") {
			continue
		}
		if info, err := os.Stat(fields[place]); err == nil && info.IsDir() {
			return fields[place]
		}
	}
	t.Skip("this machine has no read-only mount")
	return ""
}
