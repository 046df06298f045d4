package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
)

// block is a loop in progress. Only the outputs of finished rounds are kept.
type block struct {
	items    []any          // of a foreach
	next     int            // index of the next round to start
	rounds   map[int]*frame // open rounds
	deferred []*frame       // open rounds reused by a retry, in order; they resume as others end
	outputs  []any
	failure  *run.Failure // of the first round that failed
	done     bool         // no more rounds start
}

// openBlock starts a loop.
func (d *driver) openBlock(p stepRef) error {
	b := &block{rounds: map[int]*frame{}}
	if p.compiled().Block.Items != nil {
		items, err := d.items(p)
		if err != nil {
			return err
		}
		b.items = items
	}
	p.blocks[p.i] = b
	return nil
}

// items returns the items of a foreach. They are evaluated once and stored as the
// input of the step, so that they are the same after a restart.
func (d *driver) items(p stepRef) ([]any, error) {
	step := p.step()
	if step.Input != nil {
		value, err := expr.FromJSON(step.Input)
		if err != nil {
			return nil, err
		}
		input, _ := value.(map[string]any)
		items, _ := input["items"].([]any)
		return items, nil
	}
	p.env.Now = step.StartedAt
	items, err := p.compiled().Block.Items.EvalList(p.env, expr.Budget{})
	if err != nil {
		return nil, err
	}
	if step.Input, err = strictjson.Encode(map[string]any{"items": items}); err != nil {
		return nil, err
	}
	d.addSize(len(step.Input))
	d.change(step)
	return items, nil
}

// reopen returns a round of a block while a run is restored, or nil if the round has
// ended.
func (d *driver) reopen(p stepRef, n int) (*frame, error) {
	if p.blocks[p.i] == nil {
		if err := d.openBlock(p); err != nil {
			return nil, err
		}
	}
	b := p.blocks[p.i]
	// A retry may reuse steps of a later round but none of an earlier one.
	for ; b.next <= n; b.next++ {
		b.rounds[b.next] = p.round(b.next, b.loop(p, b.next))
	}
	if before := b.rounds[n-1]; before != nil {
		d.closeRestoredRound(before)
	}
	return b.rounds[n], nil
}

// closeRestoredRound ends a round whose last row was restored, to bound the memory
// for rounds. Whether another round of a repeat follows is decided later, when the
// run advances.
func (d *driver) closeRestoredRound(f *frame) {
	if f.of == nil || !f.settled() {
		return
	}
	b := f.of.blocks[f.of.i]
	if f.of.compiled().Block.Until == nil || f.n+1 < b.next {
		d.endRound(*f.of, b, f.n)
	}
}

// loop returns item and index of a round. Inside a repeat, item is that of the
// enclosing foreach.
func (b *block) loop(p stepRef, n int) expr.Loop {
	loop := expr.Loop{Index: n}
	switch {
	case n < len(b.items):
		loop.Item = b.items[n]
	case p.env.Loop != nil:
		loop.Item = p.env.Loop.Item
	}
	return loop
}

// moveBlock advances the rounds of a loop, starts new ones, and settles the loop
// when the last one has ended.
func (d *driver) moveBlock(ctx context.Context, p stepRef) stepChange {
	if p.blocks[p.i] == nil {
		if err := d.openBlock(p); err != nil {
			d.settleFailed(p, d.failureOf(p.step(), err))
			return stepSettled
		}
	}
	b := p.blocks[p.i]
	b.deferExcessRounds(p.compiled().Block)
	for ctx.Err() == nil && !d.batchFull() {
		progress := b.start(p)
		for _, n := range b.open() {
			d.advance(ctx, b.rounds[n])
			if b.rounds[n].settled() {
				d.endRound(p, b, n)
				progress = true
			}
		}
		switch {
		case b.done && len(b.rounds) == 0:
			d.settleBlock(p, b)
			return stepSettled
		case !progress:
			return noChange
		case p.step().Status == run.StepWaiting:
			return noChange
		}
	}
	return noChange
}

// wakeBlock ends the wait between two rounds of a repeat. Its open rounds ended
// before the wait, and it was already decided that another one follows.
func (d *driver) wakeBlock(p stepRef) {
	step := p.step()
	if step.Status != run.StepWaiting {
		return
	}
	step.Status, step.WakeAt, step.Reason = run.StepRunning, nil, ""
	d.change(step)
	if b := p.blocks[p.i]; b != nil {
		for _, n := range b.open() {
			b.closeRound(n)
		}
	}
}

// closeRound stores the output of a round and drops its frame.
func (b *block) closeRound(n int) *frame {
	round := b.rounds[n]
	delete(b.rounds, n)
	for len(b.outputs) <= n {
		b.outputs = append(b.outputs, nil)
	}
	last := round.program.Steps[len(round.program.Steps)-1]
	if outcome := round.env.Steps[last.ID]; outcome.Status == string(run.StepSucceeded) {
		b.outputs[n] = outcome.Output
	}
	return round
}

// open lists the open rounds in order.
func (b *block) open() []int {
	list := make([]int, 0, len(b.rounds))
	for n := range b.rounds {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// deferExcessRounds defers open rounds beyond the limit of parallel rounds. A retry
// can reuse any number of incomplete rounds, for example after a step has changed.
func (b *block) deferExcessRounds(loop *workflow.Block) {
	if loop.Items == nil || len(b.rounds) <= loop.Parallel {
		return
	}
	var idle []int
	for _, n := range b.open() {
		if !b.rounds[n].isActive() {
			idle = append(idle, n)
		}
	}
	room := max(0, loop.Parallel-(len(b.rounds)-len(idle)))
	for _, n := range idle[min(room, len(idle)):] {
		b.deferred = append(b.deferred, b.rounds[n])
		delete(b.rounds, n)
	}
}

// start starts rounds up to the limit of parallel rounds. It reports whether it
// started any.
func (b *block) start(p stepRef) bool {
	loop, begun := p.compiled().Block, false
	if loop.Items == nil {
		if b.done || len(b.rounds) > 0 {
			return false
		}
		b.rounds[b.next] = p.round(b.next, b.loop(p, b.next))
		b.next++
		return true
	}
	for !b.done && len(b.rounds) < loop.Parallel {
		switch {
		case len(b.deferred) > 0:
			b.rounds[b.deferred[0].n] = b.deferred[0]
			b.deferred = b.deferred[1:]
		case b.next < len(b.items):
			b.rounds[b.next] = p.round(b.next, b.loop(p, b.next))
			b.next++
		default:
			b.done = true
			return begun
		}
		begun = true
	}
	b.done = b.done || len(b.deferred) == 0 && b.next == len(b.items)
	return begun
}

// endRound ends a round whose steps have settled. After a failed round, the other
// open rounds finish but no more rounds start.
func (d *driver) endRound(p stepRef, b *block, n int) {
	round := b.closeRound(n)
	if status, failure := frameResult(round); status == run.Failed {
		b.done = true
		if b.failure == nil {
			b.failure = failure
		}
		return
	}
	// After a restart this is called again for earlier rounds, which had a next one.
	if p.compiled().Block.Until != nil && n+1 == b.next {
		d.endRepetition(p, b, n, round)
	}
}

// endRepetition decides whether a repeat has another round.
func (d *driver) endRepetition(p stepRef, b *block, n int, round *frame) {
	loop := p.compiled().Block
	holds, err := loop.Until.EvalBool(round.env, expr.Budget{})
	switch {
	case err != nil:
		failure := d.failureOf(p.step(), err)
		b.failure, b.done = &failure, true
	case holds:
		b.done = true
	case n+1 >= loop.Max:
		b.failure, b.done = &run.Failure{Code: run.CodeRepeatLimit, Message: fmt.Sprintf("its condition was still false after %d rounds", loop.Max)}, true
	case loop.Every > 0:
		until := clock.Now().Add(loop.Every).Truncate(time.Microsecond)
		step := p.step()
		step.Status, step.WakeAt = run.StepWaiting, &until
		step.Reason = fmt.Sprintf("round %d starts at %s", n+2, clock.Format(until))
		d.change(step)
	}
}

// cancelOpenSteps cancels the open steps of a round that does not continue.
func (d *driver) cancelOpenSteps(f *frame) {
	now := clock.Now()
	for p := range f.unsettled() {
		step := p.step()
		step.Status, step.FinishedAt = run.StepCancelled, &now
		d.change(step)
	}
}

func (d *driver) settleBlock(p stepRef, b *block) {
	p.blocks[p.i] = nil
	for _, round := range b.deferred {
		d.cancelOpenSteps(round)
	}
	if b.outputs == nil {
		b.outputs = []any{}
	}
	output, err := d.encodeOutput(map[string]any{"items": b.outputs}, d.mask)
	switch {
	case b.failure != nil:
		p.step().Output = nil
		d.settleFailed(p, *b.failure)
	case err != nil:
		d.settleFailed(p, d.failureOf(p.step(), err))
	default:
		p.step().Status, p.step().Output = run.StepSucceeded, output
		d.finishStep(p)
	}
}
