package harness

import (
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
