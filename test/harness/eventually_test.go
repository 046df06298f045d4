package harness_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

func TestAwaitZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		slow := func() int { return 3 - int(time.Since(began)/(harness.Timeout-time.Second)) }
		if left := harness.AwaitZero(slow); left != 0 || time.Since(began) < 2*harness.Timeout {
			t.Errorf("%d are left of a slow count after %v, want 0", left, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		began, n := time.Now(), 0
		stuck := func() int { n++; return 2 + n%2 } // it rises and falls
		if left := harness.AwaitZero(stuck); left == 0 || time.Since(began) > harness.Timeout+time.Second {
			t.Errorf("%d are left of a stuck count after %v", left, time.Since(began))
		}
	})
}
