package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// sketch is a workflow drawn by the generator. The engine executes it as JSON, the model
// interprets it directly.
type sketch struct {
	parts []*part
	// racy reports whether an expression reads a step that may not have ended, so that
	// its value depends on timing.
	racy bool
}

// part is a step of a sketch: a behavior or a loop.
type part struct {
	id              string
	needs           []string
	implicit        bool // needs are omitted: the step needs the previous one
	when            *condition
	join            string
	continueOnError bool // on_error: continue
	disabled        bool
	behavior        behavior
	loop            *loop
}

// behavior is what a step does.
type behavior struct {
	kind     string
	value    amount
	takes    int // milliseconds
	failures int // retryable failures before it succeeds
	attempts int // maximum
	text     string
	paths    []condition // of a switch, whose ids are p0, p1, …
	fallback bool        // the switch has the path rest as its else
}

// pathIDs returns the paths out of a step.
func (p *part) pathIDs() []string {
	ids := []string{"error"}
	for i := range p.behavior.paths {
		ids = append(ids, fmt.Sprintf("p%d", i))
	}
	if p.behavior.fallback {
		ids = append(ids, "rest")
	}
	return ids
}

// after returns the needs of a part in a list with what the disabled steps among them need.
func (p *part) after(parts []*part) []string {
	var out []string
	for _, need := range p.needs {
		out = append(out, need)
		if before := findPart(parts, need); before != nil && before.disabled {
			out = append(out, before.after(parts)...)
		}
	}
	return out
}

// handled reports whether a step of the list handles the failure of a part.
func (p *part) handled(parts []*part) bool {
	return slices.ContainsFunc(parts, func(q *part) bool { return !q.disabled && slices.Contains(q.after(parts), p.id+".error") })
}

// loop makes a step a block.
type loop struct {
	items    []int // of a foreach
	foreach  string
	parallel int
	until    *condition
	every    string
	max      int
	body     []*part
}

// amount is an expression for a number.
type amount struct {
	of   string // "", payload, step, rounds, item or index
	step string
	plus int
}

func (a amount) String() string {
	base := map[string]string{
		"": "0", "payload": "trigger.payload.n", "item": "item", "index": "index", "broken": "trigger.payload.missing",
		"step": "(steps." + a.step + ".output.v ?? 0)", "rounds": "len(steps." + a.step + ".output.items ?? [])",
	}[a.of]
	return fmt.Sprintf("%s + %d", base, a.plus)
}

// condition is an expression for a boolean.
type condition struct {
	kind   string // true, false, missing, broken, above, ended or empty
	amount amount
	than   int
	step   string
	status string
}

func (c condition) String() string {
	switch c.kind {
	case "missing":
		return "trigger.payload.missing"
	case "broken":
		return `trigger.payload.n > "x"`
	case "above":
		return fmt.Sprintf("%s > %d", c.amount, c.than)
	case "ended":
		return fmt.Sprintf("steps.%s.status == %q", c.step, c.status)
	case "empty":
		return fmt.Sprintf("steps.%s.output == nil", c.step)
	}
	return c.kind
}

// payload is the payload of every run of a sketch.
const payload = `{"n": 3, "lists": [[], [4], [4, 5], [4, 5, 6], [4, 5, 6, 7]]}`

// json returns the sketch as the steps of a definition.
func (s *sketch) json() string {
	var lines []string
	for _, step := range written(s.parts) {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(step); err != nil {
			panic(err)
		}
		lines = append(lines, "\n  "+strings.TrimSpace(line.String()))
	}
	return "[" + strings.Join(lines, ",") + "]"
}

func written(parts []*part) []map[string]any {
	var out []map[string]any
	for _, p := range parts {
		step := map[string]any{"id": p.id}
		if !p.implicit {
			step["needs"] = append([]string{}, p.needs...)
		}
		if p.when != nil {
			step["if"] = p.when.String()
		}
		if p.join != "" {
			step["join"] = p.join
		}
		if p.disabled {
			step["disabled"] = true
		}
		if p.continueOnError {
			step["on_error"] = "continue"
		}
		if p.loop != nil {
			p.loop.write(step)
		} else {
			p.behavior.write(step)
		}
		out = append(out, step)
	}
	return out
}

func (l *loop) write(step map[string]any) {
	step["steps"] = written(l.body)
	if l.foreach != "" {
		step["foreach"] = l.foreach
		if l.parallel > 1 {
			step["parallel"] = l.parallel
		}
		return
	}
	repeat := map[string]any{"until": l.until.String(), "max": l.max}
	if l.every != "" {
		repeat["every"] = l.every
	}
	step["repeat"] = repeat
}

func (d behavior) write(step map[string]any) {
	value := "${{ " + d.value.String() + " }}"
	switch d.kind {
	case "set":
		step["uses"], step["with"] = "data.set", map[string]any{"values": map[string]any{"v": value}}
	case "log":
		step["uses"], step["with"] = "log.write", map[string]any{"message": "v is " + value}
	case "wait":
		step["uses"], step["with"] = "flow.wait", map[string]any{"for": fmt.Sprintf("%dms", d.takes)}
	case "past":
		step["uses"], step["with"] = "flow.wait", map[string]any{"until": "1999-01-01T00:00:00Z"}
	case "unfit":
		step["uses"], step["with"] = "flow.wait", map[string]any{"for": value}
	case "count":
		step["uses"], step["with"] = "state.increment", map[string]any{"key": fmt.Sprintf("${{ run.id }}:%s", step["id"])}
	case "refused":
		step["uses"], step["with"] = "table.update", map[string]any{"table": "nothing", "key": value, "values": map[string]any{}}
	case "read":
		step["uses"], step["with"] = "state.get", map[string]any{"key": "nothing", "default": value}
	case "stop":
		step["uses"], step["with"] = "flow.stop", map[string]any{"status": d.text}
	case "first", "all":
		var paths []any
		for i, when := range d.paths {
			paths = append(paths, map[string]any{"id": fmt.Sprintf("p%d", i), "when": when.String()})
		}
		with := map[string]any{"paths": paths, "match": d.kind}
		if d.fallback {
			with["else"] = "rest"
		}
		step["uses"], step["with"] = "flow.switch", with
	case "approved", "rejected":
		step["uses"], step["with"] = "flow.approval", map[string]any{"message": "v is " + value}
	case "unanswered":
		step["uses"], step["with"] = "flow.approval", map[string]any{"timeout": fmt.Sprintf("%dms", d.takes), "on_timeout": d.text}
	default:
		step["uses"], step["with"] = "test.act", map[string]any{"does": d.kind, "v": value, "takes": d.takes, "failures": d.failures}
		step["retry"] = map[string]any{"max_attempts": d.attempts, "initial": "1ms"}
		if d.kind == "hangs" {
			step["timeout"] = "5ms"
		}
	}
}

// find returns the part with a path, and the prefix of its level.
func (s *sketch) find(path string) (*part, string) {
	id := path[strings.LastIndex(path, ".")+1:]
	return findPart(s.parts, id), strings.TrimSuffix(path, id)
}

func findPart(parts []*part, id string) *part {
	for _, p := range parts {
		if p.id == id {
			return p
		}
		if p.loop == nil {
			continue
		}
		if inner := findPart(p.loop.body, id); inner != nil {
			return inner
		}
	}
	return nil
}

// describe returns what is needed to reproduce a failure.
func (s *sketch) describe(faults []injectedFault, cancelAt int) string {
	text := fmt.Sprintf("steps: %s\nfaults: %v", s.json(), faults)
	if cancelAt > 0 {
		text += fmt.Sprintf("\ncancelled after: %d.5ms", cancelAt)
	}
	return text
}
