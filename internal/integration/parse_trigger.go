package integration

import (
	"slices"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/suggest"
)

func (p *parser) triggers(m *manifest, operations []Operation, hooks []Hook) []Trigger {
	var out []Trigger
	for _, t := range m.Triggers {
		pointer := at("/triggers", t.name)
		one := p.trigger(pointer, t.name, &t.value, operations, hooks)
		p.linkInputs(at(pointer, "input"), one.Name, one.Input, operations)
		out = append(out, one)
	}
	return out
}

func (p *parser) trigger(pointer, name string, t *manifestTrigger, operations []Operation, hooks []Hook) Trigger {
	out := Trigger{Name: name, Title: t.Title, Summary: t.Summary, Deprecated: t.Deprecated}
	if !operationName.MatchString(name) {
		p.failf(pointer, "the name of a trigger has lower-case letters, digits and underscores, and starts with a letter")
	}
	p.require(at(pointer, "title"), t.Title)
	out.Input = p.inputs(at(pointer, "input"), t.Input)
	p.noFiles(at(pointer, "input"), out.Input)
	item := place{p.shared, map[string][]string{"input": inputNames(out.Input), "item": nil}}
	if t.Poll == nil {
		item.roots["headers"] = nil
	}
	out.When = p.condition(at(pointer, "when"), t.When, item.scope())
	out.Key = p.program(at(pointer, "key"), t.Key, item.scope())
	out.Output = p.optionalValue(at(pointer, "output"), t.Output, item.scope())
	out.Hook = p.hookOf(at(pointer, "hook"), t.Hook, hooks)
	switch {
	case t.Key == "" && (t.Poll != nil || out.Hook == nil || out.Hook.Key == nil):
		p.require(at(pointer, "key"), "")
	case out.Key == nil && out.Hook != nil:
		out.Key = out.Hook.Key
	}
	if t.Poll != nil {
		poll := p.poll(at(pointer, "poll"), t.Poll, out.Input, operations)
		out.Poll = &poll
	} else if t.Hook == "" {
		p.failf(pointer, "needs a poll, which looks for new items, or a hook, with which the service tells what is new")
	}
	return out
}

// hookOf returns the hook that a trigger names; nil if it names none.
func (p *parser) hookOf(pointer, name string, hooks []Hook) *Hook {
	if name == "" {
		return nil
	}
	var names []string
	for i := range hooks {
		if hooks[i].Name == name {
			return &hooks[i]
		}
		names = append(names, hooks[i].Name)
	}
	p.failf(pointer, "there is no hook %q%s", name, suggest.Hint(name, names))
	return nil
}

// noFiles reports settings of triggers that are files: only steps have them.
func (p *parser) noFiles(pointer string, inputs []Input) {
	for _, in := range inputs {
		if in.Type == "file" {
			p.failf(at(pointer, in.Name, "type"), "a trigger has no files")
		}
	}
}

func inputNames(inputs []Input) []string {
	out := []string{}
	for _, in := range inputs {
		out = append(out, in.Name)
	}
	return out
}

func (p *parser) poll(pointer string, m *manifestPoll, inputs []Input, operations []Operation) Poll {
	out := Poll{}
	if p.require(at(pointer, "every"), m.Every); m.Every != "" {
		if out.Every = p.duration(at(pointer, "every"), m.Every); out.Every < shortestPoll {
			p.failf(at(pointer, "every"), "must be at least %s", clock.FormatDuration(shortestPoll))
		}
	}
	settings := place{p.shared, map[string][]string{"input": inputNames(inputs)}}
	if m.Start != nil && m.Start.call != nil {
		out.StartCall = p.startCall(at(pointer, "start"), m.Start.call, inputs)
	} else if m.Start != nil {
		out.Start = p.optionalValue(at(pointer, "start"), m.Start.value, settings.scope())
	}
	i := slices.IndexFunc(operations, func(o Operation) bool { return o.Name == m.Operation })
	if i < 0 {
		var names []string
		for _, o := range operations {
			names = append(names, o.Name)
		}
		p.failf(at(pointer, "operation"), "there is no operation %q%s", m.Operation, suggest.Hint(m.Operation, names))
		return out
	}
	o := operations[i]
	p.checkPolled(at(pointer, "operation"), &o, inputs)
	answer, ok := p.answers[o.Name]
	if !ok { // the operation is not valid
		return out
	}
	out.Cursor = p.program(at(pointer, "cursor"), m.Cursor, answer.answerScope("items"))
	out.More = p.program(at(pointer, "more"), m.More, answer.answerScope("items"))
	if m.Reset != "" {
		o.Calls = slices.Clone(o.Calls)
		reset := ErrorRule{When: p.condition(at(pointer, "reset"), m.Reset, answer.answerScope()), Kind: PositionLost}
		for i := range o.Calls {
			o.Calls[i].Errors = append(slices.Clone(o.Calls[i].Errors), reset)
		}
	}
	if (m.More != "" || m.Reset != "" || m.Start != nil) && m.Cursor == "" {
		p.failf(at(pointer, "cursor"), "is required with start, more and reset: where the next poll goes on")
	}
	out.Operation = &o
	return out
}

// startCall compiles the call that reads the first cursor.
func (p *parser) startCall(pointer string, c *manifestCall, inputs []Input) *Operation {
	where := place{p.shared, map[string][]string{"input": inputNames(inputs), "results": {}, "step": {"key", "uuid"}}}
	p.checkCallID(pointer, c, true, nil)
	call := p.call(pointer, c, where)
	if c.Output == nil {
		p.failf(at(pointer, "output"), "is required: the first cursor")
	}
	if c.Page != nil || c.Batch != nil || c.Chunk != nil {
		p.failf(pointer, "is a single request, without page, batch and chunk")
	}
	return &Operation{Name: "start", Input: inputs, Calls: []Call{*call}}
}

func (p *parser) checkPolled(pointer string, o *Operation, inputs []Input) {
	for _, c := range o.Calls {
		if !c.Idempotency.Safe {
			p.failf(pointer, "the operation %s may have effects, but a poll repeats it: if it only reads, add idempotency: safe to its calls", o.Name)
			break
		}
	}
	for _, c := range o.Calls {
		if c.Response == ResponseFile || c.Blobs != nil || c.Chunk != nil {
			p.failf(pointer, "the operation %s reads or sends files, which a poll cannot do", o.Name)
			break
		}
	}
	if last := len(o.Calls) - 1; last >= 0 && o.Output == nil && o.Calls[last].Items == nil && o.Calls[last].Batch == nil {
		p.failf(pointer, "the operation %s does not return a list: add items to its last call, or an output that is a list", o.Name)
	}
	for _, needed := range o.Input {
		has := slices.ContainsFunc(inputs, func(in Input) bool { return in.Name == needed.Name })
		if needed.Required && !has {
			p.failf(pointer, "the operation %s needs the input %s, which the trigger does not have", o.Name, needed.Name)
		}
	}
}

// polled returns the names of the operations that polls use, which can read the cursor.
func (m *manifest) polled() []string {
	var out []string
	for _, t := range m.Triggers {
		if t.value.Poll != nil {
			out = append(out, t.value.Poll.Operation)
		}
	}
	return out
}
