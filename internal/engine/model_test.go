package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// model computes the expected result of a sketch from the rules of the format. It knows
// nothing of commits, queues or time: it visits the steps in the order of their needs
// and computes how each of them ends.
type model struct{ by string } // answers approvals

// expectation is the expected result of a step.
type expectation struct {
	status  string
	output  any // as decoded JSON; nil: none
	attempt int
	taken   []string // paths of a switch
	causes  []cause  // of a failure: the run reports any of them
	rounds  []map[string]*expectation
	// The minimum and maximum number of rounds that start. After a failure, parallel
	// rounds finish, and how many there are depends on timing.
	least, most int
}

// cause is the cause of a failure: a code and the path of the step.
type cause struct{ code, step string }

// anyOutput matches any output, for outputs that depend on the clock.
type anyOutput struct{}

// scope holds the values that expressions see.
type scope struct {
	steps       map[string]*expectation
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

// in reports whether the condition holds, and whether it can be evaluated at all.
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

// frame computes one pass through a list of steps.
func (m *model) frame(prefix string, parts []*part, outer scope) map[string]*expectation {
	s := scope{steps: maps.Clone(outer.steps), item: outer.item, index: outer.index}
	expected := map[string]*expectation{}
	for len(expected) < len(parts) {
		for _, p := range parts {
			known := func(id string) bool { return expected[id] != nil }
			if expected[p.id] == nil && !slices.ContainsFunc(p.after(parts), func(need string) bool { return !known(stepOf(need)) }) {
				expected[p.id] = m.step(prefix+p.id, p, parts, expected, s)
				s.steps[p.id] = expected[p.id]
			}
		}
	}
	return expected
}

func (m *model) step(path string, p *part, parts []*part, expected map[string]*expectation, s scope) *expectation {
	if p.disabled || !starts(p, parts, expected) {
		return &expectation{status: "skipped"}
	}
	if p.when != nil {
		holds, ok := p.when.in(s)
		switch {
		case !ok:
			return failure(1, "expression_failed", path)
		case !holds:
			return &expectation{status: "skipped"}
		}
	}
	switch {
	case p.loop == nil:
		return m.behavior(path, p.behavior, s)
	case p.loop.foreach != "":
		return m.foreach(path, p.loop, s)
	}
	return m.repeat(path, p.loop, s)
}

// stepOf returns the step that a need refers to.
func stepOf(need string) string {
	id, _, _ := strings.Cut(need, ".")
	return id
}

// starts applies the join rule of a step to the results of its needs.
func starts(p *part, parts []*part, expected map[string]*expectation) bool {
	needed, succeeded, tolerated, failed := 0, 0, 0, 0
	for _, need := range p.after(parts) {
		id, path, _ := strings.Cut(need, ".")
		before, is := findPart(parts, id), expected[id]
		if before.disabled && path == "" {
			continue
		}
		needed++
		switch {
		case is.status == "skipped":
		case path == "error":
			if is.status == "failed" {
				succeeded++
			}
		case is.status == "succeeded":
			if path == "" || slices.Contains(is.taken, path) {
				succeeded++
			}
		case path == "" && before.continueOnError:
			tolerated++
		case !before.continueOnError && !before.handled(parts):
			failed++
		}
	}
	switch {
	case needed == 0 || p.join == "always":
		return true
	case p.join == "first":
		return succeeded > 0
	case p.join == "all":
		return succeeded == needed
	}
	return failed == 0 && succeeded+tolerated > 0
}

func failure(attempt int, code, path string) *expectation {
	return &expectation{status: "failed", attempt: attempt, causes: []cause{{code, path}}}
}

func success(attempt int, output any) *expectation {
	return &expectation{status: "succeeded", attempt: attempt, output: output}
}

func (m *model) behavior(path string, d behavior, s scope) *expectation {
	v, ok := d.value.in(s)
	if !ok {
		return failure(1, "expression_failed", path)
	}
	answer := func(approved bool, by, comment any) *expectation {
		return success(1, map[string]any{"approved": approved, "by": by, "comment": comment, "data": nil})
	}
	switch d.kind {
	case "set", "returns":
		return success(1, map[string]any{"v": v})
	case "bare":
		return success(1, map[string]any{"value": v})
	case "count":
		return success(1, map[string]any{"set": true, "created": anyOutput{}, "value": anyOutput{}, "expires_at": nil})
	case "refused":
		return failure(1, "table_not_found", path)
	case "read":
		return success(1, map[string]any{"found": false, "value": v, "expires_at": nil})
	case "log", "stop":
		return success(1, map[string]any{})
	case "wait", "past":
		return success(1, map[string]any{"waited_until": anyOutput{}})
	case "first", "all":
		return m.choose(path, d, s)
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

// choose decides which paths a switch takes.
func (m *model) choose(path string, d behavior, s scope) *expectation {
	taken := []string{}
	for i, when := range d.paths {
		holds, ok := when.in(s)
		if !ok {
			return failure(1, "expression_failed", path)
		}
		if !holds {
			continue
		}
		if taken = append(taken, fmt.Sprintf("p%d", i)); d.kind == "first" {
			break
		}
	}
	if len(taken) == 0 && d.fallback {
		taken = append(taken, "rest")
	}
	var output map[string]any
	switch all := []any{}; {
	case d.kind == "all":
		for _, id := range taken {
			all = append(all, id)
		}
		output = map[string]any{"paths": all}
	case len(taken) == 0:
		output = map[string]any{"path": nil}
	default:
		output = map[string]any{"path": taken[0]}
	}
	out := success(1, output)
	out.taken = taken
	return out
}

func (m *model) foreach(path string, l *loop, s scope) *expectation {
	f := success(1, nil)
	outputs, failed := []any{}, 0
	f.most = len(l.items)
	for i, item := range l.items {
		round := m.frame(fmt.Sprintf("%s[%d].", path, i), l.body, scope{steps: s.steps, item: item, index: i})
		f.rounds = append(f.rounds, round)
		outputs = append(outputs, round[l.body[len(l.body)-1].id].output)
		causes := countedFailures(l.body, round)
		if len(causes) == 0 {
			continue
		}
		if failed++; failed == 1 {
			f.least = max(i+1, min(l.parallel, len(l.items)))
		}
		f.status, f.causes = "failed", append(f.causes, causes...)
		// All parallel rounds have failed, so no other starts.
		if failed == l.parallel {
			f.most = i + 1
			break
		}
	}
	if f.status == "succeeded" {
		f.output, f.least = map[string]any{"items": outputs}, f.most
	}
	return f
}

func (m *model) repeat(path string, l *loop, s scope) *expectation {
	outputs, rounds := []any{}, []map[string]*expectation{}
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

// afterRound returns how a repeat ends after a round, or nil if it continues.
func (m *model) afterRound(path string, l *loop, round map[string]*expectation, s scope) *expectation {
	if causes := countedFailures(l.body, round); len(causes) > 0 {
		return &expectation{status: "failed", attempt: 1, causes: causes}
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

// countedFailures returns the failures that make a frame fail.
func countedFailures(parts []*part, expected map[string]*expectation) []cause {
	var causes []cause
	for _, p := range parts {
		if f := expected[p.id]; f.status == "failed" && !p.continueOnError && !p.handled(parts) {
			causes = append(causes, f.causes...)
		}
	}
	return causes
}
