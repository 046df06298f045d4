package engine

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
)

// repeat is an open loop that repeats until a condition holds. It has one open round
// at most.
type repeat struct{ rounds }

func newRepeat(s *runState, p stepRef) *repeat { return &repeat{newRounds(s, p)} }

// start opens the next round unless one is open.
func (b *repeat) start() bool {
	b.wake()
	if b.done || len(b.frames) > 0 {
		return false
	}
	b.openNext()
	return true
}

// openNext opens the next round, which sees the output of the one before. While a run
// is restored, that one may still be open.
func (b *repeat) openNext() {
	var previous any
	if before := b.frames[b.next-1]; before != nil {
		previous = before.output()
	} else if b.next > 0 {
		previous = b.outputs[b.next-1]
	}
	b.rounds.openNext(b.of.item(), previous)
}

// wake ends the wait between two rounds. The round that is still open if the run was
// restored ended before the wait, and it was already decided that another one follows.
func (b *repeat) wake() {
	step := b.of.step()
	if step.Status != run.StepWaiting {
		return
	}
	step.Status, step.WakeAt, step.Reason = run.StepRunning, nil, ""
	b.state.changes.add(step)
	for _, round := range b.frames {
		b.close(round)
	}
}

// end decides whether another round follows.
func (b *repeat) end(round *frame) {
	b.rounds.end(round)
	// After a restart this is called again for earlier rounds, which had a next one.
	if b.done || round.n+1 < b.next {
		return
	}
	loop := b.of.compiled().Block
	round.env.Seed = b.state.seedOf(b.of.step().Path+"["+strconv.Itoa(round.n)+"]", "until")
	holds, err := loop.Until.EvalBool(round.env, expr.Budget{})
	switch {
	case err != nil:
		b.fail(b.state.failureOf(b.of.step(), err))
	case holds:
		b.done = true
	case round.n+1 >= loop.Max:
		b.fail(run.Failure{Code: run.CodeRepeatLimit, Message: fmt.Sprintf("its condition was still false after %d rounds", loop.Max)})
	case loop.Every > 0:
		b.rest(round.n+2, loop.Every)
	}
}

// rest suspends the loop until its next round.
func (b *repeat) rest(number int, length time.Duration) {
	until := clock.Steady().Add(length).Truncate(time.Microsecond)
	step := b.of.step()
	step.Status, step.WakeAt = run.StepWaiting, &until
	step.Reason = fmt.Sprintf("round %d starts at %s", number, clock.Format(clock.Wall(until)))
	b.state.changes.add(step)
}

// reopen opens all rounds up to n and ends the one before it.
func (b *repeat) reopen(n int) *frame {
	for b.next <= n {
		b.openNext()
	}
	if before := b.frames[n-1]; before != nil && before.settled() {
		b.endRestored(before)
	}
	return b.frames[n]
}

// endRestored ends a round that was followed by another one.
func (b *repeat) endRestored(round *frame) {
	if round.n+1 < b.next {
		b.end(round)
	}
}
