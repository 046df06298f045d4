// Package lane selects how thorough tests are. There are three lanes: `make check` runs
// tests with -short, `make test` runs them without it, and `make test-long` sets
// STEPMILL_TEST_LONG. A test of a longer lane is skipped in the shorter ones; nothing
// else decides what runs.
package lane

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
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

// fixedSeed is the seed outside the long lane.
const fixedSeed = 1

// Seed returns the seed of random choices: a new one in the long lane, and otherwise
// always the same. With new seeds, a failure of `make test` would blame a change that did
// not cause it.
func Seed() uint64 {
	if Long() {
		return rand.Uint64()
	}
	return fixedSeed
}

// fixRapidSeed sets the seed of rapid, unless its flag or its variable does.
var fixRapidSeed = sync.OnceValue(func() error {
	if seed := flag.Lookup("rapid.seed"); !Long() && seed.Value.String() == "0" {
		return seed.Value.Set(strconv.Itoa(fixedSeed))
	}
	return nil
})

// Check checks a property with rapid, with the same cases in every run outside the long
// lane.
func Check(t rapid.TB, property func(*rapid.T)) {
	t.Helper()
	if err := fixRapidSeed(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, property)
}
