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
)

// block is a loop that is under way. Rounds that have ended are only their
// output.
type block struct {
	items   []any          // of a foreach
	next    int            // the round that starts next
	rounds  map[int]*frame // those under way
	outputs []any
	failure *run.Failure // of the first round that failed
	done    bool         // no round starts any more
}

// openBlock begins a loop.
func (d *driver) openBlock(p place) error {
	b := &block{rounds: map[int]*frame{}}
	if p.planned().Block.Items != nil {
		items, err := d.items(p)
		if err != nil {
			return err
		}
		b.items = items
	}
	p.blocks[p.i] = b
	return nil
}

// items is the list of a foreach. It is worked out once and kept as the input of
// the step, so that it is the same after a restart.
func (d *driver) items(p place) ([]any, error) {
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
	items, err := p.planned().Block.Items.EvalList(p.env, expr.Budget{})
	if err != nil {
		return nil, err
	}
	if step.Input, err = strictjson.Encode(map[string]any{"items": items}); err != nil {
		return nil, err
	}
	d.keep(len(step.Input))
	d.change(step)
	return items, nil
}

// reopen finds a round of a block while the rows of a run are read back; nil if
// it has ended.
func (d *driver) reopen(p place, n int) (*frame, error) {
	if p.blocks[p.i] == nil {
		if err := d.openBlock(p); err != nil {
			return nil, err
		}
	}
	b := p.blocks[p.i]
	// A retry may bring a later round along, but nothing of an earlier one.
	for ; b.next <= n; b.next++ {
		b.rounds[b.next] = p.round(b.next, b.loop(p, b.next))
	}
	if before := b.rounds[n-1]; before != nil {
		d.fold(before)
	}
	return b.rounds[n], nil
}

// fold ends a round whose last row was read back, so that no more of them are in
// memory than when they ran. What follows from the last round of a repetition is
// decided when the run moves.
func (d *driver) fold(f *frame) {
	if f.of == nil || !f.settled() {
		return
	}
	b := f.of.blocks[f.of.i]
	if f.of.planned().Block.Until == nil || f.n+1 < b.next {
		d.endRound(*f.of, b, f.n)
	}
}

// loop is what item and index are in a round. Inside a block that is repeated,
// item is that of the foreach around it.
func (b *block) loop(p place, n int) expr.Loop {
	loop := expr.Loop{Index: n}
	switch {
	case n < len(b.items):
		loop.Item = b.items[n]
	case p.env.Loop != nil:
		loop.Item = p.env.Loop.Item
	}
	return loop
}

// moveBlock moves the rounds of a loop forward, starts new ones, and settles the
// loop when the last has ended.
func (d *driver) moveBlock(ctx context.Context, p place) moved {
	if p.blocks[p.i] == nil {
		if err := d.openBlock(p); err != nil {
			d.settleFailed(p, d.failureOf(p.step(), err))
			return settledNow
		}
	}
	b := p.blocks[p.i]
	for ctx.Err() == nil && !d.full() {
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
			return settledNow
		case !progress:
			return nothing
		case p.step().Status == run.StepWaiting:
			return nothing
		}
	}
	return nothing
}

// wakeBlock ends the rest between two rounds. The rounds that are there have
// ended before it; that another one follows was decided then.
func (d *driver) wakeBlock(p place) {
	step := p.step()
	if step.Status != run.StepWaiting {
		return
	}
	step.Status, step.WakeAt, step.Reason = run.StepRunning, nil, ""
	d.change(step)
	if b := p.blocks[p.i]; b != nil {
		for _, n := range b.open() {
			b.keep(n)
		}
	}
}

// keep takes the output of a round and forgets the rest of it.
func (b *block) keep(n int) *frame {
	round := b.rounds[n]
	delete(b.rounds, n)
	for len(b.outputs) <= n {
		b.outputs = append(b.outputs, nil)
	}
	last := round.plan.Steps[len(round.plan.Steps)-1]
	b.outputs[n] = round.env.Steps[last.ID].Output
	return round
}

// open lists the rounds under way in their order.
func (b *block) open() []int {
	list := make([]int, 0, len(b.rounds))
	for n := range b.rounds {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// start begins as many rounds as may run.
func (b *block) start(p place) bool {
	loop, begun := p.planned().Block, false
	if loop.Items == nil {
		if b.done || len(b.rounds) > 0 {
			return false
		}
		b.rounds[b.next] = p.round(b.next, b.loop(p, b.next))
		b.next++
		return true
	}
	for !b.done && len(b.rounds) < loop.Parallel && b.next < len(b.items) {
		b.rounds[b.next] = p.round(b.next, b.loop(p, b.next))
		b.next++
		begun = true
	}
	b.done = b.done || b.next == len(b.items)
	return begun
}

// endRound takes the output of a round that has ended. A round that failed lets
// those beside it finish, but none follows.
func (d *driver) endRound(p place, b *block, n int) {
	round := b.keep(n)
	if status, failure := ending(round); status == run.Failed {
		b.done = true
		if b.failure == nil {
			b.failure = failure
		}
		return
	}
	// After a restart rounds are ended once more; whether one followed is known.
	if p.planned().Block.Until != nil && n+1 == b.next {
		d.endRepetition(p, b, n, round)
	}
}

// endRepetition decides whether a block that is repeated has another round.
func (d *driver) endRepetition(p place, b *block, n int, round *frame) {
	loop := p.planned().Block
	holds, err := loop.Until.EvalBool(round.env, expr.Budget{})
	switch {
	case err != nil:
		failure := d.failureOf(p.step(), err)
		b.failure, b.done = &failure, true
	case holds:
		b.done = true
	case n+1 >= loop.Max:
		b.failure, b.done = &run.Failure{Code: run.CodeRepeatLimit, Message: fmt.Sprintf("its condition did not hold after %d rounds", loop.Max)}, true
	case loop.Every > 0:
		until := clock.Now().Add(loop.Every).Truncate(time.Microsecond)
		step := p.step()
		step.Status, step.WakeAt = run.StepWaiting, &until
		step.Reason = fmt.Sprintf("round %d is at %s", n+2, clock.Format(until))
		d.change(step)
	}
}

func (d *driver) settleBlock(p place, b *block) {
	p.blocks[p.i] = nil
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
		d.end(p)
	}
}
