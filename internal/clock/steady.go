package clock

import (
	"sync/atomic"
	"time"
)

// MaxStep is the largest difference between the wall clock and the steady time that
// does not count as a jump.
const MaxStep = time.Second

type steadyTime struct {
	at         time.Time     // the steady time
	local      time.Time     // the monotonic time of the reading
	suspended  time.Duration // how long the machine had been suspended since it booted
	correction time.Duration // how far the steady time is ahead of the wall clock
	measured   bool          // see Record
}

// steady is the last reading of the steady time, nil if it is the same as Now. Like
// followed it is process-wide: deadlines that one part of a process stores are compared
// with the time by another. Readings are immutable and replaced atomically.
var steady atomic.Pointer[steadyTime]

// Steady returns the time that stored deadlines refer to. Unlike Now it never jumps: it
// advances with the monotonic clock while the process runs, and after a restart it
// continues from what the database recorded. Use it for the ends of waits, pauses and
// leases, and Now for times of day and for times that are shown.
func Steady() time.Time {
	if s := steady.Load(); s != nil {
		return s.at.Add(time.Since(s.local)).UTC().Truncate(time.Microsecond)
	}
	return Now()
}

// UntilSteady returns the duration until a steady time.
func UntilSteady(t time.Time) time.Duration { return t.Sub(Steady()) }

// Correction returns how far the steady time is ahead of the wall clock, as recorded at
// the last jump. It is zero until a clock jumps.
func Correction() time.Duration {
	if s := steady.Load(); s != nil {
		return s.correction
	}
	return 0
}

// Wall returns what the wall clock shows at a steady time, unless it jumps.
func Wall(t time.Time) time.Time { return t.Add(-Correction()) }

// WallPtr is like Wall for a time that may be absent.
func WallPtr(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	wall := Wall(*t)
	return &wall
}

// AtWall returns the steady time at which the wall clock shows t, unless it jumps.
func AtWall(t time.Time) time.Time { return Steady().Add(t.Sub(Now())) }

// Past returns the steady time at which the wall clock showed t, which is not in the
// future even if the wall clock has just jumped.
func Past(t time.Time) time.Time {
	at, now := t.Add(Correction()), Steady()
	if at.Before(now) {
		return at
	}
	return now
}

// Record is what a database stores about the steady time, so that it continues after a
// restart and is the same on all nodes.
type Record struct {
	// Correction is how far the steady time is ahead of the wall clock.
	Correction time.Duration
	// Seen is a recent steady time.
	Seen time.Time
	// Boot identifies the boot of the machine that wrote the record, and BootedAt is the
	// steady time at which it booted. Boot is empty if the system does not tell.
	Boot     string
	BootedAt time.Time
	// Measured reports whether Seen was measured since an earlier record. Otherwise it is
	// what the wall clock told when the process started. It is not stored.
	Measured bool
}

// Resume continues the steady time of a record. If this machine wrote the record and
// has not been rebooted since, it knows how much time has passed, even if the wall clock
// has jumped. Otherwise the wall clock tells, but the steady time does not go back.
func Resume(r Record) {
	id, running := boot()
	now, elapsed := Now().Add(r.Correction), r.BootedAt.Add(running)
	measured := id != "" && id == r.Boot
	switch {
	case measured && elapsed.Sub(now).Abs() > MaxStep:
		now = elapsed
	case !measured && now.Before(r.Seen):
		now = r.Seen
	}
	setSteady(now, r.Correction, measured)
}

// Correct records that the steady time is ahead of the wall clock by another duration
// than before. The steady time itself does not change.
func Correct(correction time.Duration) { setSteady(Steady(), correction, true) }

func setSteady(now time.Time, correction time.Duration, measured bool) {
	steady.Store(&steadyTime{at: now, local: Monotonic(), suspended: suspended(), correction: correction, measured: measured})
}

// Current returns the record of the current steady time.
func Current() Record {
	catchUp()
	id, _ := boot()
	running, seen := together(func() time.Duration { _, running := boot(); return running }, sinceEpoch(Steady))
	now := time.UnixMicro(seen.Microseconds()).UTC()
	r := Record{Correction: Correction(), Seen: now, Boot: id, BootedAt: now.Add(-running)}
	if s := steady.Load(); s != nil {
		r.Measured = s.measured
	}
	return r
}

// Check compares the wall clock with the steady time. If one of them has jumped, it
// returns the correction that they need now.
func Check() (correction time.Duration, jumped bool) {
	catchUp()
	wall, now := together(sinceEpoch(Now), sinceEpoch(Steady))
	correction = now - wall
	off := correction - Correction()
	return correction, off > MaxStep || off < -MaxStep
}

// FollowSteady makes Now and Steady follow the clock of a database, which is behind the
// steady time by correction. See Follow.
func FollowSteady(now, asked time.Time, correction time.Duration) {
	Follow(now, asked)
	took, s, at := time.Since(asked), steady.Load(), Steady()
	first, last := now.Add(correction), now.Add(correction+took) // what it may be now
	switch {
	case at.Before(first.Add(-maxDrift)):
		setSteady(first, correction, true)
	case at.After(last.Add(maxDrift)):
		setSteady(last, correction, true)
	case s == nil || s.correction != correction || !s.measured:
		setSteady(at, correction, true)
	}
}

// together reads two clocks at the same time. A process that was interrupted in between
// tries again.
func together(one, other func() time.Duration) (time.Duration, time.Duration) {
	const most = 10 * time.Millisecond
	for {
		before := other()
		reading := one()
		if after := other(); after-before < most {
			return reading, before
		}
	}
}

func sinceEpoch(clock func() time.Time) func() time.Duration {
	return func() time.Duration { return time.Duration(clock().UnixNano()) }
}

// catchUp adds the time for which the machine was suspended. The monotonic clock does
// not advance meanwhile, but the steady time does.
func catchUp() {
	s := steady.Load()
	if s == nil {
		return
	}
	if slept := suspended() - s.suspended; slept > MaxStep {
		next := *s
		next.at, next.suspended = s.at.Add(slept), s.suspended+slept
		steady.CompareAndSwap(s, &next)
	}
}
