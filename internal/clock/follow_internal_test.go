package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// followAfterDelay follows a clock that is ahead of this one. Reading it takes
// before until the other clock is read, and after until its time arrives.
func followAfterDelay(ahead, before, after time.Duration) {
	asked := Monotonic()
	time.Sleep(before)
	now := time.Now().Add(ahead)
	time.Sleep(after)
	Follow(now, asked)
}

func TestFollow(t *testing.T) {
	const ahead = time.Hour
	for name, test := range map[string]struct {
		ahead, before, after time.Duration // of the second observation
		moves                bool
	}{
		"fast response":                     {ahead, 0, 0, false},
		"slow request":                      {ahead, 400 * time.Millisecond, 0, false},
		"slow response":                     {ahead, 0, 400 * time.Millisecond, false},
		"the other clock was set forward":   {ahead + time.Minute, 0, 0, true},
		"set back, with a slow response":    {ahead - time.Minute, 200 * time.Millisecond, 200 * time.Millisecond, true},
		"a difference within the tolerance": {ahead + 30*time.Millisecond, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer followed.Store(nil)
				followAfterDelay(ahead, 0, 0)
				time.Sleep(time.Second)
				followAfterDelay(test.ahead, test.before, test.after)
				want := ahead
				if test.moves {
					want = test.ahead
				}
				if got := time.Until(current()); got != want {
					t.Errorf("the clock is %v ahead, want %v", got, want)
				}
			})
		})
	}
}
