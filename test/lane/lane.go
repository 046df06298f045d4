// Package lane selects how thorough tests are. There are three lanes: `make check` runs
// tests with -short, `make test` runs them without it, and `make test-long` sets
// STEPMILL_TEST_LONG. A test of a longer lane is skipped in the shorter ones; nothing
// else decides what runs.
package lane

import (
	"os"
	"testing"
)

const variable = "STEPMILL_TEST_LONG"

// Long reports whether this is the long lane.
func Long() bool { return os.Getenv(variable) != "" }

// LongOnly skips the test outside the long lane.
func LongOnly(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("runs in make test-long")
	}
}

// NotShort skips the test in the shortest lane.
func NotShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs in make test")
	}
}

// Pick returns long in the long lane and bounded in the others. Tests use it for the
// number of rounds or runs.
func Pick[T any](bounded, long T) T {
	if Long() {
		return long
	}
	return bounded
}
