package engine

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// frame is one pass through a list of steps: the run's own, or one round of a
// block. A round sees what its block sees, and its own steps.
type frame struct {
	plan   *workflow.Plan
	prefix string      // of the paths of its steps: "" or "lines[3]."
	steps  []*run.Step // by position in the plan; nil: not started
	blocks []*block    // by position in the plan; nil: not a block, or not open
	env    *expr.Env
	of     *place // the block that it is a round of; nil: it is the run itself
	n      int    // the number of the round
}

// place is a step of a frame.
type place struct {
	*frame
	i int
}

func (p place) step() *run.Step                { return p.steps[p.i] }
func (p place) planned() *workflow.PlannedStep { return &p.plan.Steps[p.i] }

func newFrame(plan *workflow.Plan, prefix string, env *expr.Env) *frame {
	return &frame{
		plan: plan, prefix: prefix, env: env,
		steps: make([]*run.Step, len(plan.Steps)), blocks: make([]*block, len(plan.Steps)),
	}
}

// round makes the frame of one round of a block.
func (p place) round(n int, loop expr.Loop) *frame {
	env := *p.env
	env.Steps = maps.Clone(p.env.Steps)
	env.Loop = &loop
	f := newFrame(p.planned().Block.Body, p.prefix+p.planned().ID+"["+strconv.Itoa(n)+"].", &env)
	f.of, f.n = &p, n
	return f
}

func (f *frame) status(i int) run.StepStatus {
	if f.steps[i] == nil {
		return ""
	}
	return f.steps[i].Status
}

// pathOf is the path of a step of this list, or of one that this is in.
func (f *frame) pathOf(id string) string {
	for f.index(id) < 0 && f.of != nil {
		f = f.of.frame
	}
	return f.prefix + id
}

// settled tells whether every step of the frame has come to its end.
func (f *frame) settled() bool {
	for _, step := range f.steps {
		if step == nil || !step.Status.Settled() {
			return false
		}
	}
	return true
}

// publish makes the outcome of a settled step visible to expressions.
func (p place) publish() error {
	step := p.step()
	if !step.Status.Settled() {
		return nil
	}
	entry, err := step.Seen()
	if err != nil {
		return err
	}
	p.env.Steps[p.planned().ID] = entry
	return nil
}

// each visits every step that has started and is not settled, in every open
// round.
func (f *frame) each(visit func(place)) {
	for i, step := range f.steps {
		if step == nil || step.Status.Settled() {
			continue
		}
		visit(place{f, i})
		if b := f.blocks[i]; b != nil {
			for _, inner := range b.rounds {
				inner.each(visit)
			}
		}
	}
}

// find returns the place of a path such as lines[3].reserve, opening the rounds
// on its way. It answers false for a step inside a block or a round that is
// settled: what counts of it is in the output of the block.
func (d *driver) find(path string) (place, bool, error) {
	f := d.root
	for {
		head, rest, inner := strings.Cut(path, ".")
		id, round, looped := strings.Cut(head, "[")
		i := f.index(id)
		if i < 0 || inner != looped {
			return place{}, false, fmt.Errorf("step %q is not in the plan", path)
		}
		if !inner {
			return place{f, i}, true, nil
		}
		n, err := strconv.Atoi(strings.TrimSuffix(round, "]"))
		if err != nil || f.plan.Steps[i].Block == nil || f.steps[i] == nil {
			return place{}, false, fmt.Errorf("step %q is not in the plan", path)
		}
		if f.steps[i].Status.Settled() {
			return place{}, false, nil
		}
		if f, err = d.reopen(place{f, i}, n); err != nil || f == nil {
			return place{}, false, err
		}
		path = rest
	}
}

func (f *frame) index(id string) int {
	for i := range f.plan.Steps {
		if f.plan.Steps[i].ID == id {
			return i
		}
	}
	return -1
}
