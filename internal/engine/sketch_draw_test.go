package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

const (
	mostParts = 14
	mostDepth = 3
)

// generator draws sketches. Failures shrink towards its first choices.
type generator struct {
	t     *rapid.T
	count int
	racy  bool // expressions may read steps that may not have ended
	found bool // an expression does
}

// view holds what the steps of a level can read.
type view struct {
	sure   []*part // have ended
	unsure []*part // may have ended
	item   bool
	index  bool
}

func drawSketch(t *rapid.T) *sketch {
	a := &generator{t: t}
	a.racy = a.chance("racy", 12)
	parts := a.level(0, view{}, rapid.IntRange(1, 8).Draw(t, "steps"))
	return &sketch{parts: parts, racy: a.found}
}

func (a *generator) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(a.t, label)
}

// chance returns true in one of n cases. It shrinks to false.
func (a *generator) chance(label string, n int) bool {
	return rapid.IntRange(0, n-1).Draw(a.t, label) == n-1
}

// level draws a list of steps. They are drawn in an order that their needs allow; the
// order of the list may differ.
func (a *generator) level(depth int, outer view, n int) []*part {
	var parts []*part
	views := map[string]view{}
	for range n {
		if a.count >= mostParts && len(parts) > 0 {
			break
		}
		a.count++
		p := &part{id: fmt.Sprintf("s%d", a.count)}
		a.needs(p, parts)
		v := a.view(p, parts, views, outer)
		views[p.id] = v
		if p.disabled = a.chance("disabled", 8); p.disabled {
			views[p.id] = outer // it does not wait for its needs
		}
		if a.chance("if", 4) {
			c := a.condition(v)
			p.when = &c
		}
		p.continueOnError = a.chance("goes on", 4)
		if depth < mostDepth && a.chance("loop", 5) {
			p.loop = a.loop(depth, v)
		} else {
			p.behavior = a.behavior(v)
		}
		parts = append(parts, p)
	}
	if a.chance("shuffled", 6) {
		parts = rapid.Permutation(parts).Draw(a.t, "order")
	}
	for i, p := range parts {
		before := []string{}
		if i > 0 {
			before = []string{parts[i-1].id}
		}
		p.implicit = slices.Equal(p.needs, before) && !a.chance("explicit", 4)
	}
	return parts
}

func (a *generator) needs(p *part, earlier []*part) {
	if len(earlier) == 0 {
		return
	}
	p.needs = []string{earlier[len(earlier)-1].id}
	if a.chance("own needs", 2) {
		p.needs = nil
		for _, one := range rapid.SliceOfNDistinct(rapid.SampledFrom(earlier), 0, 3, rapid.ID[*part]).Draw(a.t, "needs") {
			p.needs = append(p.needs, one.id)
		}
		for i, id := range p.needs {
			if paths := findPart(earlier, id).pathIDs(); a.chance("path", 3) {
				p.needs[i] = id + "." + rapid.SampledFrom(paths).Draw(a.t, "path of")
			}
		}
	}
	if a.chance("join", 3) {
		p.join = a.pick("joined", "any_ran", "all", "always", "first")
	}
}

// view computes what a step can read: all steps before it have ended, unless a join in
// between did not wait for them.
func (a *generator) view(p *part, parts []*part, views map[string]view, outer view) view {
	v := view{item: outer.item, index: outer.index}
	sure, unsure := map[*part]bool{}, map[*part]bool{}
	counted := 0
	for _, need := range p.after(parts) {
		id, path, _ := strings.Cut(need, ".")
		before := findPart(parts, id)
		unsure[before] = true
		if before.disabled && path == "" {
			sure[before] = sure[before] || p.join != "first"
			continue
		}
		mine := map[*part]bool{before: true}
		for _, q := range views[id].sure {
			mine[q], unsure[q] = true, true
		}
		for _, q := range views[id].unsure {
			unsure[q] = true
		}
		if counted++; counted == 1 || p.join != "first" {
			maps.Copy(sure, mine)
			continue
		}
		maps.DeleteFunc(sure, func(q *part, _ bool) bool { return !mine[q] })
	}
	for _, q := range parts {
		switch {
		case sure[q]:
			v.sure = append(v.sure, q)
		case unsure[q]:
			v.unsure = append(v.unsure, q)
		}
	}
	v.sure = append(v.sure, outer.sure...)
	v.unsure = append(v.unsure, outer.unsure...)
	return v
}

// step picks a step that an expression can read, or nil if there is none.
func (a *generator) step(v view) *part {
	if a.racy && len(v.unsure) > 0 && a.chance("reads too early", 2) {
		a.found = true
		return rapid.SampledFrom(v.unsure).Draw(a.t, "read")
	}
	if len(v.sure) == 0 {
		return nil
	}
	return rapid.SampledFrom(v.sure).Draw(a.t, "read")
}

func (a *generator) amount(v view) amount {
	from := []string{"", "payload", "step", "step"}
	if v.item {
		from = append(from, "item")
	}
	if v.index {
		from = append(from, "index")
	}
	out := amount{of: a.pick("amount", from...), plus: rapid.IntRange(0, 3).Draw(a.t, "plus")}
	if out.of == "step" {
		p := a.step(v)
		switch {
		case p == nil:
			out.of = ""
		case p.loop != nil:
			out.of, out.step = "rounds", p.id
		default:
			out.step = p.id
		}
	}
	return out
}

func (a *generator) condition(v view) condition {
	c := condition{kind: a.pick("condition", "true", "false", "above", "above", "ended", "ended", "empty", "missing", "broken")}
	switch c.kind {
	case "above":
		c.amount, c.than = a.amount(v), rapid.IntRange(0, 6).Draw(a.t, "than")
	case "ended", "empty":
		p := a.step(v)
		if p == nil {
			return condition{kind: "true"}
		}
		c.step, c.status = p.id, a.pick("status", "succeeded", "failed", "skipped")
	}
	return c
}

func (a *generator) behavior(v view) behavior {
	d := behavior{
		kind: a.pick("deed", "set", "returns", "returns", "bare", "fails", "passing", "passing", "hangs", "panics",
			"count", "count", "count", "refused", "read", "wait", "wait", "past", "unfit", "first", "first", "all", "approved", "rejected", "unanswered", "log", "broken", "rare"),
		attempts: rapid.IntRange(1, 3).Draw(a.t, "attempts"),
		takes:    rapid.IntRange(0, 4).Draw(a.t, "takes"),
	}
	switch d.kind {
	case "wait", "unanswered":
		d.takes++
		d.text = a.pick("on timeout", "continue", "fail")
	case "first", "all":
		for range rapid.IntRange(1, 3).Draw(a.t, "paths") {
			d.paths = append(d.paths, a.condition(v))
		}
		d.fallback = a.chance("else", 2)
	case "passing":
		d.failures = rapid.IntRange(1, 3).Draw(a.t, "failures")
	case "broken":
		d.kind, d.value = "set", amount{of: "broken"}
		return d
	case "rare":
		d.kind = "set"
		if a.chance("stop", 2) {
			d.kind, d.text = "stop", a.pick("stop as", "succeeded", "failed")
		}
	}
	d.value = a.amount(v)
	return d
}

func (a *generator) loop(depth int, v view) *loop {
	l := &loop{}
	inside := v
	inside.index = true
	if a.chance("repeat", 2) {
		l.max = rapid.IntRange(1, 4-depth).Draw(a.t, "max")
		if a.chance("rests", 2) {
			l.every = "2ms"
		}
	} else {
		n := rapid.IntRange(0, 4-depth).Draw(a.t, "items")
		for i := range n {
			l.items = append(l.items, 4+i)
		}
		l.foreach = a.pick("list", fmt.Sprintf("trigger.payload.lists[%d]", n), fmt.Sprintf("trigger.payload.lists[4][:%d]", n))
		l.parallel = rapid.IntRange(1, 3).Draw(a.t, "parallel")
		inside.item = true
	}
	l.body = a.level(depth+1, inside, rapid.IntRange(1, 3).Draw(a.t, "body"))
	if l.foreach == "" {
		after := inside
		after.sure = append(slices.Clone(l.body), v.sure...)
		c := condition{kind: "above", amount: amount{of: "index"}, than: rapid.IntRange(-1, 2).Draw(a.t, "rounds")}
		if a.chance("looks at its round", 3) {
			c = a.condition(after)
		}
		l.until = &c
	}
	return l
}
