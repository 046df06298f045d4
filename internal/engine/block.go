package engine

import (
	"maps"
	"slices"
	"strconv"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
)

// block is an open step that contains steps. It decides which rounds it has; the
// driver executes them.
type block interface {
	// start opens rounds as far as the limits of the block allow. It reports whether
	// it opened any.
	start() bool
	// open returns the open rounds by index.
	open() map[int]*frame
	// end closes a round whose steps have settled and decides what follows.
	end(round *frame)
	// reopen returns a round while a run is restored, or nil if the round has ended.
	reopen(n int) *frame
	// endRestored ends a round whose steps were restored as settled, to bound the
	// memory for rounds. A decision about further rounds is left until the run
	// advances.
	endRestored(round *frame)
	// ended reports whether all rounds have ended and no more start.
	ended() bool
	// settle settles the step of a block that has ended.
	settle()
	// ofRounds returns the rounds of the block.
	ofRounds() *rounds
}

// openBlock starts a block.
func (s *runState) openBlock(p stepRef) error {
	if p.compiled().Block.Items == nil {
		p.blocks[p.i] = newRepeat(s, p)
		return nil
	}
	b, err := newForeach(s, p)
	if err == nil {
		p.blocks[p.i] = b
	}
	return err
}

// rounds are the rounds of a loop. Only the outputs of finished rounds are kept.
type rounds struct {
	state   *runState
	of      stepRef        // the loop
	next    int            // index of the next round to start
	frames  map[int]*frame // open rounds
	outputs []any
	// outputBytes is about how many bytes the outputs have. If they are too many, spilled
	// is the output of the loop.
	outputBytes int
	spilled     map[string]any
	failure     *run.Failure // of the first round that failed
	done        bool         // no more rounds start
}

func newRounds(s *runState, p stepRef) rounds {
	return rounds{state: s, of: p, frames: map[int]*frame{}}
}

// openNext opens the next round.
func (r *rounds) openNext(item, previous any) {
	r.frames[r.next] = r.of.round(r.next, expr.Loop{Index: r.next, Item: item, Previous: previous})
	r.next++
}

func (r *rounds) ofRounds() *rounds { return r }

func (r *rounds) open() map[int]*frame { return r.frames }

// close stores the output of a round and drops its frame.
func (r *rounds) close(round *frame) {
	delete(r.frames, round.n)
	for len(r.outputs) <= round.n {
		r.outputs = append(r.outputs, nil)
	}
	r.outputs[round.n] = round.output()
	size := len("null")
	if last := round.steps[len(round.steps)-1]; last != nil && last.Status == run.StepSucceeded {
		size = len(last.Output)
	}
	r.outputBytes += size + len(",")
}

// end closes a round. After a failed one, the other open rounds finish but no more
// rounds start.
func (r *rounds) end(round *frame) {
	r.close(round)
	if status, failure := frameResult(round); status == run.Failed {
		r.fail(*failure)
	}
}

// fail makes the loop fail once its open rounds have ended.
func (r *rounds) fail(failure run.Failure) {
	r.done = true
	if r.failure == nil {
		r.failure = &failure
	}
}

func (r *rounds) ended() bool { return r.done && len(r.frames) == 0 }

func (r *rounds) settle() {
	p, s := r.of, r.state
	p.blocks[p.i] = nil
	if r.outputs == nil {
		r.outputs = []any{}
	}
	output := r.spilled
	if output == nil {
		output = map[string]any{"items": r.outputs}
	}
	if r.failure == nil {
		s.succeed(p, output, nil)
		return
	}
	// The outputs of a failed loop count towards the size of the run, as those of a
	// loop that succeeded do.
	_, _ = s.encodeOutput(p, output, nil)
	p.step().Output = nil
	s.fail(p, *r.failure)
}

// output returns the output of a round whose steps have settled: that of its last step,
// or nil if it did not succeed.
func (f *frame) output() any {
	last := f.program.Steps[len(f.program.Steps)-1]
	if outcome := f.env.Steps[last.ID]; outcome.Status == string(run.StepSucceeded) {
		return outcome.Output
	}
	return nil
}

// inOrder returns rounds in order.
func inOrder(rounds map[int]*frame) []*frame {
	list := make([]*frame, 0, len(rounds))
	for _, round := range rounds {
		list = append(list, round)
	}
	slices.SortFunc(list, func(a, b *frame) int { return a.n - b.n })
	return list
}

// round returns a new frame for a round of a block.
func (p stepRef) round(n int, loop expr.Loop) *frame {
	env := *p.env
	env.Steps = maps.Clone(p.env.Steps)
	env.Loop = &loop
	f := newFrame(p.compiled().Block.Body, p.prefix+p.compiled().ID+"["+strconv.Itoa(n)+"].", &env)
	f.of, f.n = &p, n
	return f
}
