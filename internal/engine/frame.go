package engine

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// frame is one pass through a list of steps: those of the run, or one round of a
// block. A round sees everything that its block sees, and its own steps.
type frame struct {
	program *workflow.Program
	prefix  string      // of step paths: "" or "lines[3]."
	steps   []*run.Step // by index in the program; nil if not started
	blocks  []block     // by index in the program; nil if not an open block
	env     *expr.Env
	of      *stepRef // the block of the round; nil for the run itself
	n       int      // index of the round
	unread  bool     // the item of the round must be read from a list file
}

// stepRef refers to a step of a frame.
type stepRef struct {
	*frame
	i int
}

func (p stepRef) step() *run.Step                  { return p.steps[p.i] }
func (p stepRef) compiled() *workflow.CompiledStep { return &p.program.Steps[p.i] }
func (p stepRef) block() block                     { return p.blocks[p.i] }

// item returns the item of the enclosing foreach, if any.
func (p stepRef) item() any {
	if p.env.Loop == nil {
		return nil
	}
	return p.env.Loop.Item
}

// previous returns the output of the previous round of the enclosing repeat, if any.
func (p stepRef) previous() any {
	if p.env.Loop == nil {
		return nil
	}
	return p.env.Loop.Previous
}

func newFrame(program *workflow.Program, prefix string, env *expr.Env) *frame {
	return &frame{
		program: program, prefix: prefix, env: env,
		steps: make([]*run.Step, len(program.Steps)), blocks: make([]block, len(program.Steps)),
	}
}

func (f *frame) status(i int) run.StepStatus {
	if f.steps[i] == nil {
		return ""
	}
	return f.steps[i].Status
}

// pathOf returns the path of a step of the frame or of an enclosing one.
func (f *frame) pathOf(id string) string {
	for f.index(id) < 0 && f.of != nil {
		f = f.of.frame
	}
	return f.prefix + id
}

// settled reports whether every step of the frame has settled.
func (f *frame) settled() bool {
	for _, step := range f.steps {
		if step == nil || !step.Status.Settled() {
			return false
		}
	}
	return true
}

// isActive reports whether a step of the frame is running or waiting. A loop counts
// as running only if one of its rounds does.
func (f *frame) isActive() bool {
	for p := range f.unsettled() {
		if p.compiled().Block == nil || p.step().Status == run.StepWaiting {
			return true
		}
	}
	return false
}

// publish makes the result of a settled step visible to expressions.
func (p stepRef) publish() error {
	step := p.step()
	if !step.Status.Settled() {
		return nil
	}
	entry, err := step.Seen()
	if err == nil && step.State != nil {
		entry.Output, err = expr.FromJSONWithFiles(step.State, step.OutputFiles)
	}
	if err != nil {
		return err
	}
	p.env.Steps[p.compiled().ID] = entry
	return nil
}

// unsettled returns all steps that have started and not settled, including those of
// open rounds.
func (f *frame) unsettled() iter.Seq[stepRef] {
	return func(yield func(stepRef) bool) { f.visit(yield) }
}

// visit calls yield for each unsettled step until it returns false. It reports
// whether every call returned true.
func (f *frame) visit(yield func(stepRef) bool) bool {
	for i, step := range f.steps {
		if step == nil || step.Status.Settled() {
			continue
		}
		if !yield(stepRef{f, i}) {
			return false
		}
		if b := f.blocks[i]; b != nil {
			for _, inner := range b.open() {
				if !inner.visit(yield) {
					return false
				}
			}
		}
	}
	return true
}

// find returns the step with a path such as lines[3].reserve, and opens the rounds
// that contain it. It returns false for a step inside a settled block or round,
// because only the output of the block matters then.
func (s *runState) find(path string) (stepRef, bool, error) {
	f := s.root
	for {
		head, rest, inner := strings.Cut(path, ".")
		id, round, looped := strings.Cut(head, "[")
		i := f.index(id)
		if i < 0 || inner != looped {
			return stepRef{}, false, fmt.Errorf("step %q is not in the program", path)
		}
		if !inner {
			return stepRef{f, i}, true, nil
		}
		n, err := strconv.Atoi(strings.TrimSuffix(round, "]"))
		if err != nil || f.program.Steps[i].Block == nil || f.steps[i] == nil {
			return stepRef{}, false, fmt.Errorf("step %q is not in the program", path)
		}
		if f.steps[i].Status.Settled() {
			return stepRef{}, false, nil
		}
		p := stepRef{f, i}
		if p.block() == nil {
			if err := s.openBlock(p); err != nil {
				return stepRef{}, false, err
			}
		}
		if f = p.block().reopen(n); f == nil {
			return stepRef{}, false, nil
		}
		path = rest
	}
}

func (f *frame) index(id string) int {
	for i := range f.program.Steps {
		if f.program.Steps[i].ID == id {
			return i
		}
	}
	return -1
}
