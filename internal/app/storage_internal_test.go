package app

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
)

func TestWarnIfDirIsWritable(t *testing.T) {
	t.Parallel()
	for mode, warned := range map[os.FileMode]bool{0o700: false, 0o755: false, 0o775: true, 0o777: true, 0o702: true} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		warnIfDirIsWritable(dir, slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Contains(log.String(), "other users of this machine can write"); got != warned {
			t.Errorf("mode %o: %s", mode, &log)
		}
	}
}
