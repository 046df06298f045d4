package harness

import (
	"math"
	"testing"
	"time"
)

// Eventually waits until a condition holds, and fails the test if it does not hold
// within Timeout. It stops at once if the test has already failed, because then
// the condition may never hold.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Timeout); !holds(); time.Sleep(5 * time.Millisecond) {
		if t.Failed() {
			t.FailNow()
		}
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %v waiting until %s", Timeout, what)
		}
	}
}

// AwaitZero waits until left returns 0 and returns what is left. That is more than 0 only
// if the number did not fall for Timeout: a busy machine takes as long as it needs.
func AwaitZero(left func() int) int {
	least, deadline := math.MaxInt, time.Now().Add(Timeout)
	for {
		n := left()
		switch {
		case n <= 0:
			return 0
		case n < least:
			least, deadline = n, time.Now().Add(Timeout)
		case time.Now().After(deadline):
			return n
		}
		time.Sleep(50 * time.Millisecond)
	}
}
