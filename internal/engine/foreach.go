package engine

import (
	"bytes"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// foreach is an open loop over a list.
type foreach struct {
	rounds
	items    []any
	deferred []*frame // open rounds reused by a retry, in order; they resume as others end
}

func newForeach(s *runState, p stepRef) (*foreach, error) {
	items, err := s.items(p)
	if err != nil {
		return nil, err
	}
	return &foreach{rounds: newRounds(s, p), items: items}, nil
}

// items returns the items of a foreach. They are evaluated once and stored as the
// input of the step, so that they are the same after a restart.
func (s *runState) items(p stepRef) ([]any, error) {
	step := p.step()
	if step.Input != nil {
		stored := step.Input
		if step.State != nil { // the input is masked
			stored = step.State
		}
		value, err := expr.FromJSON(stored)
		if err != nil {
			return nil, err
		}
		input, _ := value.(map[string]any)
		items, _ := input["items"].([]any)
		return items, nil
	}
	p.env.Now, p.env.Seed = step.StartedAt, s.seedOf(step.Path, "foreach")
	items, err := p.compiled().Block.Items.EvalList(p.env, expr.Budget{})
	if err != nil {
		return nil, err
	}
	input, err := strictjson.Encode(map[string]any{"items": items})
	if err != nil {
		return nil, err
	}
	shown := s.secrets.foundMask.JSON(input)
	s.setInput(step, shown)
	if !bytes.Equal(shown, input) {
		s.setUnmasked(step, input)
	}
	return items, nil
}

// openNext opens the next round. A round without an item, which only a retry can
// reuse, has that of the enclosing loop. Previous is that of the enclosing repeat.
func (b *foreach) openNext() {
	item := b.of.item()
	if b.next < len(b.items) {
		item = b.items[b.next]
	}
	b.rounds.openNext(item, b.of.previous())
}

// start opens rounds up to the limit of parallel rounds.
func (b *foreach) start() bool {
	b.deferExcess()
	parallel, begun := b.of.compiled().Block.Parallel, false
	for !b.done && len(b.frames) < parallel {
		switch {
		case len(b.deferred) > 0:
			b.frames[b.deferred[0].n] = b.deferred[0]
			b.deferred = b.deferred[1:]
		case b.next < len(b.items):
			b.openNext()
		default:
			b.done = true
			return begun
		}
		begun = true
	}
	b.done = b.done || len(b.deferred) == 0 && b.next == len(b.items)
	return begun
}

// deferExcess defers open rounds beyond the limit of parallel rounds. A retry can
// reuse any number of incomplete rounds, for example after a step has changed.
func (b *foreach) deferExcess() {
	parallel := b.of.compiled().Block.Parallel
	if len(b.frames) <= parallel {
		return
	}
	var idle []*frame
	for _, round := range inOrder(b.frames) {
		if !round.isActive() {
			idle = append(idle, round)
		}
	}
	room := max(0, parallel-(len(b.frames)-len(idle)))
	for _, round := range idle[min(room, len(idle)):] {
		b.deferred = append(b.deferred, round)
		delete(b.frames, round.n)
	}
}

// reopen opens all rounds up to n: a retry may reuse steps of a later round but none
// of an earlier one.
func (b *foreach) reopen(n int) *frame {
	for b.next <= n {
		b.openNext()
	}
	return b.frames[n]
}

func (b *foreach) endRestored(round *frame) { b.end(round) }

// settle cancels the open steps of rounds that no longer resume.
func (b *foreach) settle() {
	for _, round := range b.deferred {
		b.state.cancel(round)
	}
	b.rounds.settle()
}
