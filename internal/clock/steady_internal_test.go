package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs a test with simulated time and a steady time of its own.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer followed.Store(nil)
		defer steady.Store(nil)
		test(t)
	})
}

// database is a clock that is ahead of this one, and the correction of the steady time.
type database struct{ ahead, correction time.Duration }

func (d database) follow() {
	asked := Monotonic()
	FollowSteady(time.Now().Add(d.ahead), asked, d.correction)
}

func TestSteadyTimeGoesOnAfterAJump(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": time.Hour, "back": -25 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				database{}.follow()
				began, end := Steady(), Steady().Add(time.Minute)
				time.Sleep(time.Second)
				database{ahead: jump, correction: -jump}.follow()
				if passed := Steady().Sub(began); passed != time.Second {
					t.Errorf("the steady time has advanced by %s, want 1s", passed)
				}
				if now := time.Until(Now()); now != jump {
					t.Errorf("the wall clock is %s ahead, want %s", now, jump)
				}
				if shown := Wall(end).Sub(Now()); shown != 59*time.Second {
					t.Errorf("the end is shown %s from now, want 59s", shown)
				}
				if at := AtWall(Now().Add(time.Minute)).Sub(Steady()); at != time.Minute {
					t.Errorf("a minute later on the wall clock is %s later", at)
				}
			})
		})
	}
}

// A slow response does not move the steady time more than necessary.
func TestFollowSteadyKeepsWhatIsPossible(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		database{}.follow()
		began := Steady()
		asked, now := Monotonic(), time.Now()
		time.Sleep(800 * time.Millisecond)
		FollowSteady(now, asked, 0)
		if passed := Steady().Sub(began); passed != 800*time.Millisecond {
			t.Errorf("after a slow response the steady time has advanced by %s, want 800ms", passed)
		}
	})
}

func TestResume(t *testing.T) {
	boot, running := boot()
	for name, test := range map[string]struct {
		record Record
		want   func(now time.Time) time.Time
	}{
		"no record":              {Record{}, func(now time.Time) time.Time { return now }},
		"a correction":           {Record{Correction: time.Hour}, func(now time.Time) time.Time { return now.Add(time.Hour) }},
		"never back":             {Record{Seen: time.Now().Add(100 * time.Hour)}, func(time.Time) time.Time { return time.Now().Add(100 * time.Hour) }},
		"on another machine":     {Record{Boot: "another", BootedAt: time.Now().Add(50 * time.Hour)}, func(now time.Time) time.Time { return now }},
		"in the same boot":       {Record{Boot: boot, BootedAt: time.Now().Add(50*time.Hour - running)}, func(now time.Time) time.Time { return now.Add(50 * time.Hour) }},
		"correction, same boot":  {Record{Correction: 9 * time.Hour, Boot: boot, BootedAt: time.Now().Add(-running)}, func(now time.Time) time.Time { return now }},
		"same boot, before seen": {Record{Seen: time.Now().Add(time.Hour), Boot: boot, BootedAt: time.Now().Add(-running)}, func(now time.Time) time.Time { return now }},
	} {
		t.Run(name, func(t *testing.T) {
			if boot == "" && test.record.Boot == "" && test.record.BootedAt != (time.Time{}) {
				t.Skip("the system does not identify its boot")
			}
			defer steady.Store(nil)
			Resume(test.record)
			if off := Steady().Sub(test.want(Now())).Abs(); off > 10*time.Minute { // far less than the differences above
				t.Errorf("the steady time is off by %s", off)
			}
			if current := Current(); current.Correction != test.record.Correction || current.Boot != boot || current.Measured != (boot != "" && test.record.Boot == boot) {
				t.Errorf("the record is now %+v", current)
			}
		})
	}
}

// Without a jump, a wait that goes on after a restart ends when the wall clock shows the
// end that was promised, although what is recorded about the boot is not exact.
func TestResumeAgreesWithTheWallClock(t *testing.T) {
	boot, running := boot()
	for _, off := range []time.Duration{-9 * time.Millisecond, 9 * time.Millisecond, -MaxStep / 2, MaxStep / 2} {
		inBubble(t, func(t *testing.T) {
			booted := Now().Add(time.Hour - running)
			Resume(Record{Correction: time.Hour, Boot: boot, BootedAt: booted.Add(off), Seen: Now()})
			if shown := Wall(Steady()); !shown.Equal(Now()) {
				t.Errorf("with a record that is off by %s, the wall clock is said to show %s at %s", off, shown, Now())
			}
		})
	}
}

// Check notices that the wall clock was set.
func TestCheck(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		Resume(Record{})
		if correction, jumped := Check(); jumped {
			t.Errorf("without a jump, the correction is %s", correction)
		}
		Follow(time.Now().Add(-time.Hour), Monotonic())
		correction, jumped := Check()
		if !jumped || correction.Round(time.Second) != time.Hour {
			t.Errorf("after a jump back by an hour: %v, correction %s", jumped, correction)
		}
		Correct(correction)
		if correction, jumped := Check(); jumped {
			t.Errorf("after the correction: %s", correction)
		}
	})
}

func TestPastIsNotInTheFuture(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		Resume(Record{})
		now := Now()
		if got := Past(now); !got.Equal(now) {
			t.Errorf("got %s, want %s", got, now)
		}
		Follow(time.Now().Add(time.Hour), Monotonic()) // nobody has noticed the jump yet
		if got := Past(Now()); got.After(Steady()) {
			t.Errorf("%s is in the future", got)
		}
	})
}
