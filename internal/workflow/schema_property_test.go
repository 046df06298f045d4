package workflow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// maker draws workflows: most are valid, some have a mistake.
type maker struct {
	t     *rapid.T
	steps int
}

func pick[T any](m *maker, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(m.t, label)
}

// some sets a member in some cases.
func (m *maker) some(object map[string]any, name string, value func() any) {
	if rapid.IntRange(0, 3).Draw(m.t, "has "+name) == 0 {
		object[name] = value()
	}
}

// rarely reports true in a few cases, for values that are most likely mistakes.
func (m *maker) rarely(label string) bool { return rapid.IntRange(0, 14).Draw(m.t, label) == 0 }

func (m *maker) duration() any {
	if m.rarely("odd time") {
		return rapid.StringMatching(`[0-9]{0,2}\.?[0-9]{0,2}d?[0-9]?\.?[0-9]?(ms|s|m|us|µs|ns)?0?`).Draw(m.t, "time")
	}
	return pick(m, "time", "1s", "90s", "1.5m", ".5s", "5.m", "1m30s", "250ms", "1d", "1d12h", "10us", "7µs")
}

func (m *maker) condition() any {
	return pick[any](m, "condition", true, false, "true", "trigger.payload.x > 1", "${{ trigger.payload.x }}")
}

// value draws a value that an action may or may not accept.
func (m *maker) value(fitting ...any) any {
	odd := []any{"${{ trigger.payload.x }}", "a ${{ trigger.payload.x }} b", "text", 7, -1.5, true, nil, []any{1, "${{ 1 }}"}, map[string]any{"a": "${{ 1 }}"}}
	if m.rarely("odd") {
		return pick(m, "odd value", odd...)
	}
	return pick(m, "value", fitting...)
}

func (m *maker) action(step map[string]any) {
	with := map[string]any{}
	switch uses := pick(m, "action", "data.set", "flow.wait", "http.request"); uses {
	case "data.set":
		with["values"] = m.value(map[string]any{}, map[string]any{"a": []any{"${{ 1 }}", nil}})
		step["uses"] = uses
	case "flow.wait":
		with["for"] = m.value("1s", "3d", "${{ trigger.payload.for }}")
		step["uses"] = uses
	default:
		with["url"] = m.value("https://a.example/x", "https://a.example/${{ trigger.payload.id }}")
		m.some(with, "method", func() any { return m.value("GET", "POST") })
		m.some(with, "query", func() any { return m.value(map[string]any{"a": []any{1}}) })
		m.some(with, "follow_redirects", func() any { return m.value(true, false) })
		m.some(with, "fail_on", func() any { return m.value(">=500", "never") })
		m.some(with, "body", func() any { return m.value("x", 1) })
		step["uses"] = uses
	}
	if m.rarely("extra") {
		with[pick(m, "name", "values", "for", "headers")] = m.value(map[string]any{}, "1s")
	}
	step["with"] = with
	m.some(step, "timeout", m.duration)
	m.some(step, "retry", func() any {
		retry := map[string]any{}
		m.some(retry, "max_attempts", func() any { return rapid.IntRange(0, 21).Draw(m.t, "attempts") })
		m.some(retry, "factor", func() any { return pick(m, "factor", 1, 2.5, 10) })
		m.some(retry, "initial", m.duration)
		m.some(retry, "max_delay", m.duration)
		return retry
	})
}

func (m *maker) block(step map[string]any, depth int) {
	if rapid.Bool().Draw(m.t, "foreach") {
		step["foreach"] = pick(m, "items", "trigger.payload.items", "${{ [1, 2] }}")
		m.some(step, "parallel", func() any { return rapid.IntRange(0, 101).Draw(m.t, "parallel") })
	} else {
		repeat := map[string]any{"until": "index > 1"}
		m.some(repeat, "every", m.duration)
		m.some(repeat, "max", func() any { return pick(m, "max", 0, 1, 10_000) })
		step["repeat"] = repeat
	}
	step["steps"] = m.list(depth + 1)
	if m.rarely("stray") {
		step[pick(m, "name", "uses", "retry", "parallel")] = pick[any](m, "stray value", "data.set", 2)
	}
}

func (m *maker) list(depth int) []any {
	var out []any
	var before []any
	for range rapid.IntRange(1, 3).Draw(m.t, "steps") {
		m.steps++
		step := map[string]any{"id": fmt.Sprintf("s%d", m.steps)}
		m.some(step, "name", func() any { return rapid.StringN(0, 200, -1).Draw(m.t, "name") })
		m.some(step, "if", m.condition)
		m.some(step, "join", func() any { return pick(m, "join", "any_ran", "all", "always", "first") })
		m.some(step, "on_error", func() any { return pick(m, "on_error", "fail", "continue") })
		if len(before) > 0 {
			m.some(step, "needs", func() any {
				return rapid.SliceOfNDistinct(rapid.SampledFrom(before), 0, 1, rapid.ID[any]).Draw(m.t, "needs")
			})
		}
		if depth < 3 && rapid.IntRange(0, 3).Draw(m.t, "is block") == 0 {
			m.block(step, depth)
		} else {
			m.action(step)
		}
		before = append(before, step["id"])
		out = append(out, step)
	}
	return out
}

func (m *maker) workflow() map[string]any {
	settings := map[string]any{}
	m.some(settings, "timeout", m.duration)
	m.some(settings, "concurrency", func() any {
		concurrency := map[string]any{}
		m.some(concurrency, "key", func() any { return pick(m, "key", "", "all", "${{ trigger.payload.customer }}") })
		m.some(concurrency, "limit", func() any { return pick(m, "limit", 0, 1, 1000) })
		m.some(concurrency, "on_limit", func() any { return pick(m, "on_limit", "queue", "drop", "cancel_running") })
		return concurrency
	})
	out := map[string]any{"steps": m.list(1), "settings": settings}
	m.some(out, "triggers", func() any { return []any{m.trigger()} })
	return out
}

func (m *maker) trigger() any {
	t := map[string]any{"id": pick(m, "trigger", "a", "by_hand"), "type": pick(m, "type", append(types(m.t).Names(), "gmail.new_message")...)}
	switch t["type"] {
	case workflow.ScheduleTrigger:
		if rapid.Bool().Draw(m.t, "interval") {
			t["every"] = m.duration()
		} else {
			t["cron"] = pick(m, "cron", "0 3 * * *", "*/5 8-18 * JAN,FEB MON-FRI", "@daily", "@every 15m", "0 0 31 2 *")
			m.some(t, "timezone", func() any { return pick(m, "zone", "UTC", "Europe/Paris", "Nowhere") })
		}
		m.some(t, "missed", func() any { return pick(m, "missed", "skip", "latest") })
		m.some(t, "jitter", func() any { return pick(m, "jitter", "0s", "5s", "1h") })
	case workflow.WebhookTrigger:
		m.some(t, "methods", func() any { return pick(m, "methods", []any{"GET"}, []any{"POST", "PUT"}) })
		m.some(t, "respond", func() any { return pick(m, "respond", "now", "result") })
		m.some(t, "rate", func() any { return pick(m, "rate", 1, 600) })
		m.some(t, "dedupe", func() any { return "${{ trigger.headers['x-id'] }}" })
		m.some(t, "verify", m.verify)
	case "gmail.new_message":
		m.some(t, "connection", func() any { return pick(m, "connection", "mail", "No") })
		m.some(t, "every", m.duration)
		m.some(t, "with", func() any {
			return pick[any](m, "with", map[string]any{}, map[string]any{"label": "${{ vars.label }}"}, map[string]any{"label": 1.5}, map[string]any{"labels": "x"})
		})
	case workflow.EventTrigger:
		t["events"] = pick(m, "events", []any{"run.failed"}, []any{"run.started", "workflow.paused"})
		m.some(t, "workflows", func() any { return []any{"wf_01m7f8njhve3pt0yekqqme4qcm"} })
	case workflow.PollTrigger:
		t["every"], t["items"] = m.duration(), "response.body.items"
		t["request"] = map[string]any{"url": m.value("https://a.example/x", "https://a.example/${{ cursor }}"), "headers": map[string]any{"x": "${{ secrets.s }}"}}
		m.some(t, "key", func() any { return "item.id" })
		m.some(t, "cursor", func() any { return "${{ response.body.next }}" })
	}
	if m.rarely("stray member") {
		t[pick(m, "stray", "cron", "every", "rate", "events")] = pick[any](m, "stray value", "@daily", "1h", 5, []any{"run.failed"})
	}
	return t
}

func (m *maker) verify() any {
	v := map[string]any{"scheme": pick(m, "scheme", workflow.Schemes()...)}
	if v["scheme"] != workflow.SchemeNone {
		v["secret"] = "${{ secrets.hook }}"
	}
	switch v["scheme"] {
	case workflow.SchemeBasic:
		v["username"] = "ada"
	case workflow.SchemeHMAC:
		v["header"] = "X-Signature"
		m.some(v, "algorithm", func() any { return pick(m, "algorithm", "sha256", "sha512") })
		m.some(v, "encoding", func() any { return pick(m, "encoding", "hex", "base64") })
		m.some(v, "prefix", func() any { return "v1=" })
		m.some(v, "signed", func() any { return pick(m, "signed", "{body}", "{x-time}.{body}", "{body}{body}") })
		m.some(v, "timestamp", func() any { return "x-time" })
	}
	m.some(v, "tolerance", m.duration)
	return v
}

// decoded returns the definition if the API accepts it.
func decoded(t *rapid.T, document map[string]any) (workflow.Definition, bool) {
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var d workflow.Definition
	return d, strictjson.Decode(text, &d) == nil
}

func TestSchemaAcceptsWhatCompileAccepts(t *testing.T) {
	t.Parallel()
	schema, accepted := format(t, actions(t)), 0
	lane.Check(t, func(rt *rapid.T) {
		d, ok := decoded(rt, (&maker{t: rt}).workflow())
		if !ok {
			return
		}
		if _, problems := workflow.Compile(d, actions(t), types(t)); len(problems) > 0 {
			return
		}
		if len(d.Steps) > 0 {
			accepted++
		}
		text, err := d.Canonical()
		if err != nil {
			rt.Fatal(err)
		}
		accepts(rt, schema, string(text))
	})
	if accepted == 0 {
		t.Error("no workflow with steps was valid: nothing was tested")
	}
	t.Logf("%d workflows in order", accepted)
}
