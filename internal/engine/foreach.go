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
	file     *fileItems // the items, if the list is a list file
	deferred []*frame   // open rounds reused by a retry, in order; they resume as others end
}

func newForeach(s *runState, p stepRef) (*foreach, error) {
	items, list, err := s.items(p)
	if err != nil {
		return nil, err
	}
	b := &foreach{rounds: newRounds(s, p), items: items}
	if list != nil {
		b.file = &fileItems{file: list}
	}
	return b, nil
}

// count returns the number of items.
func (b *foreach) count() int {
	if b.file != nil {
		return b.file.file.List.Count
	}
	return len(b.items)
}

// items returns the items of a foreach, an array or a list file. They are evaluated once
// and stored as the input of the step, so that they are the same after a restart.
func (s *runState) items(p stepRef) ([]any, *expr.File, error) {
	step := p.step()
	if step.Input != nil {
		stored := step.Input
		if step.State != nil { // the input is masked
			stored = step.State
		}
		return parseItems(stored, step.InputFiles)
	}
	p.env.Now, p.env.Seed = step.StartedAt, s.seedOf(step.Path, "foreach")
	items, list, err := p.compiled().Block.Items.EvalItems(p.env, expr.Budget{})
	if err != nil {
		return nil, nil, err
	}
	whole := map[string]any{"items": items}
	if list != nil {
		whole["items"] = list
	}
	encoded, err := strictjson.Encode(whole)
	if err != nil {
		return nil, nil, err
	}
	step.InputFiles = s.filesIn(whole)
	s.refer(whole)
	hide := s.secrets.maskOf(step)
	input := hide.secrets.JSON(encoded)
	if list == nil && !bytes.Equal(input, encoded) { // the rounds do not see secrets, as in outputs
		if items, _, err = parseItems(input, step.InputFiles); err != nil {
			return nil, nil, err
		}
	}
	shown := hide.found.JSON(input)
	s.setInput(step, shown)
	if !bytes.Equal(shown, input) {
		s.setUnmasked(step, input)
	}
	return items, list, nil
}

// parseItems reads the stored items of a foreach.
func parseItems(stored []byte, files []string) ([]any, *expr.File, error) {
	value, err := expr.FromJSONWithFiles(stored, files)
	if err != nil {
		return nil, nil, err
	}
	input, _ := value.(map[string]any)
	items, _ := input["items"].([]any)
	list, _ := input["items"].(*expr.File)
	return items, list, nil
}

// openNext opens the next round. A round without an item, which only a retry can
// reuse, has that of the enclosing loop. Previous is that of the enclosing repeat. The
// item of a list file is read before the round advances.
func (b *foreach) openNext() {
	item, unread := b.of.item(), b.file != nil && b.next < b.count()
	if b.next < len(b.items) {
		item = b.items[b.next]
	}
	b.rounds.openNext(item, b.of.previous())
	b.frames[b.next-1].unread = unread
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
		case b.next < b.count():
			b.openNext()
		default:
			b.done = true
			return begun
		}
		begun = true
	}
	b.done = b.done || len(b.deferred) == 0 && b.next >= b.count()
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
