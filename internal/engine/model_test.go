package engine_test

import (
	"fmt"
	"maps"
	"slices"
)

// model tells what the rules of the format say must come of a sketch. It knows
// nothing of commits, queues or time: it goes through the steps in the order of
// their needs and works out how each of them ends.
type model struct{ by string } // who answers approvals

// fate is what must become of a step.
type fate struct {
	status  string
	output  any // as decoded JSON; nil: none
	attempt int
	causes  []cause // of a failure: any of them may be the one that is named
	rounds  []map[string]*fate
	// At least and at most this many rounds of a loop begin: after a failure
	// those beside it go on, and how many there are by then depends on timing.
	least, most int
}

// cause is why something failed: a code, and the path of the step it came from.
type cause struct{ code, step string }

// whatever stands for an output that depends on the clock.
type whatever struct{}

// scope is what expressions see.
type scope struct {
	steps       map[string]*fate
	item, index int
}

func (a amount) in(s scope) (int, bool) {
	base := 0
	switch a.of {
	case "broken":
		return 0, false
	case "payload":
		base = 3
	case "item":
		base = s.item
	case "index":
		base = s.index
	case "step", "rounds":
		output, _ := s.steps[a.step].output.(map[string]any)
		if v, ok := output["v"].(int); ok {
			base = v
		}
		if items, ok := output["items"].([]any); ok {
			base = len(items)
		}
	}
	return base + a.plus, true
}

// in tells whether the condition holds, and whether it can be evaluated at all.
func (c condition) in(s scope) (holds, ok bool) {
	switch c.kind {
	case "above":
		v, ok := c.amount.in(s)
		return v > c.than, ok
	case "ended":
		return s.steps[c.step].status == c.status, true
	case "empty":
		return s.steps[c.step].output == nil, true
	case "broken":
		return false, false
	}
	return c.kind == "true", true
}

// frame works out one pass through a list of steps.
func (m *model) frame(prefix string, parts []*part, outer scope) map[string]*fate {
	s := scope{steps: maps.Clone(outer.steps), item: outer.item, index: outer.index}
	fates := map[string]*fate{}
	for len(fates) < len(parts) {
		for _, p := range parts {
			known := func(id string) bool { return fates[id] != nil }
			if fates[p.id] == nil && !slices.ContainsFunc(p.needs, func(id string) bool { return !known(id) }) {
				fates[p.id] = m.step(prefix+p.id, p, parts, fates, s)
				s.steps[p.id] = fates[p.id]
			}
		}
	}
	return fates
}

func (m *model) step(path string, p *part, parts []*part, fates map[string]*fate, s scope) *fate {
	if !starts(p, parts, fates) {
		return &fate{status: "skipped"}
	}
	if p.when != nil {
		holds, ok := p.when.in(s)
		switch {
		case !ok:
			return failure(1, "expression_failed", path)
		case !holds:
			return &fate{status: "skipped"}
		}
	}
	switch {
	case p.loop == nil:
		return m.deed(path, p.deed, s)
	case p.loop.foreach != "":
		return m.foreach(path, p.loop, s)
	}
	return m.repeat(path, p.loop, s)
}

// starts applies the join of a step to how its needs ended.
func starts(p *part, parts []*part, fates map[string]*fate) bool {
	succeeded, tolerated, failed := 0, 0, 0
	for _, id := range p.needs {
		switch {
		case fates[id].status == "succeeded":
			succeeded++
		case fates[id].status == "failed" && findPart(parts, id).goesOn:
			tolerated++
		case fates[id].status == "failed":
			failed++
		}
	}
	switch {
	case len(p.needs) == 0 || p.join == "always":
		return true
	case p.join == "first":
		return succeeded > 0
	case p.join == "all":
		return succeeded == len(p.needs)
	}
	return failed == 0 && succeeded+tolerated > 0
}

func failure(attempt int, code, path string) *fate {
	return &fate{status: "failed", attempt: attempt, causes: []cause{{code, path}}}
}

func success(attempt int, output any) *fate {
	return &fate{status: "succeeded", attempt: attempt, output: output}
}

func (m *model) deed(path string, d deed, s scope) *fate {
	v, ok := d.value.in(s)
	if !ok {
		return failure(1, "expression_failed", path)
	}
	answer := func(approved bool, by, comment any) *fate {
		return success(1, map[string]any{"approved": approved, "by": by, "comment": comment, "data": nil})
	}
	switch d.kind {
	case "set", "returns":
		return success(1, map[string]any{"v": v})
	case "bare":
		return success(1, map[string]any{"value": v})
	case "log", "stop":
		return success(1, map[string]any{})
	case "wait", "past":
		return success(1, map[string]any{"waited_until": whatever{}})
	case "approved", "rejected":
		return answer(d.kind == "approved", m.by, path)
	case "unanswered":
		if d.text == "continue" {
			return answer(false, nil, nil)
		}
		return failure(1, "approval_timed_out", path)
	case "passing":
		if d.failures < d.attempts {
			return success(d.failures+1, map[string]any{"v": v})
		}
		return failure(d.attempts, "test_passing", path)
	case "hangs":
		return failure(d.attempts, "timed_out", path)
	case "fails":
		return failure(1, "test_failed", path)
	case "panics":
		return failure(1, "internal_error", path)
	case "unfit":
		return failure(1, "invalid_input", path)
	}
	panic("unknown deed " + d.kind)
}

func (m *model) foreach(path string, l *loop, s scope) *fate {
	f := success(1, nil)
	outputs, failing := []any{}, 0
	f.most = len(l.items)
	for i, item := range l.items {
		round := m.frame(fmt.Sprintf("%s[%d].", path, i), l.body, scope{steps: s.steps, item: item, index: i})
		f.rounds = append(f.rounds, round)
		outputs = append(outputs, round[l.body[len(l.body)-1].id].output)
		causes := unforgiven(l.body, round)
		if len(causes) == 0 {
			continue
		}
		if failing++; failing == 1 {
			f.least = max(i+1, min(l.parallel, len(l.items)))
		}
		f.status, f.causes = "failed", append(f.causes, causes...)
		// As many as may run at the same time have failed: no other begins.
		if failing == l.parallel {
			f.most = i + 1
			break
		}
	}
	if f.status == "succeeded" {
		f.output, f.least = map[string]any{"items": outputs}, f.most
	}
	return f
}

func (m *model) repeat(path string, l *loop, s scope) *fate {
	outputs, rounds := []any{}, []map[string]*fate{}
	for i := 0; ; i++ {
		round := m.frame(fmt.Sprintf("%s[%d].", path, i), l.body, scope{steps: s.steps, item: s.item, index: i})
		outputs, rounds = append(outputs, round[l.body[len(l.body)-1].id].output), append(rounds, round)
		f := m.afterRound(path, l, round, scope{steps: s.steps, item: s.item, index: i})
		if f == nil {
			continue
		}
		if f.status == "succeeded" {
			f.output = map[string]any{"items": outputs}
		}
		f.rounds, f.least, f.most = rounds, i+1, i+1
		return f
	}
}

// afterRound tells how a repetition ends with a round, nil if it goes on.
func (m *model) afterRound(path string, l *loop, round map[string]*fate, s scope) *fate {
	if causes := unforgiven(l.body, round); len(causes) > 0 {
		return &fate{status: "failed", attempt: 1, causes: causes}
	}
	all := maps.Clone(s.steps)
	maps.Copy(all, round)
	holds, ok := l.until.in(scope{steps: all, item: s.item, index: s.index})
	switch {
	case !ok:
		return failure(1, "expression_failed", path)
	case holds:
		return success(1, nil)
	case s.index+1 >= l.max:
		return failure(1, "repeat_limit_exceeded", path)
	}
	return nil
}

// unforgiven are the failures that fail a frame.
func unforgiven(parts []*part, fates map[string]*fate) []cause {
	var causes []cause
	for _, p := range parts {
		if f := fates[p.id]; f.status == "failed" && !p.goesOn {
			causes = append(causes, f.causes...)
		}
	}
	return causes
}
