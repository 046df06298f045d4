package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/workflow"
)

func compile(t *testing.T, steps string) (*workflow.Program, []workflow.Problem) {
	t.Helper()
	actions, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	var d workflow.Definition
	if err := json.Unmarshal([]byte(steps), &d.Steps); err != nil {
		t.Fatal(err)
	}
	return workflow.Compile(d, actions, types(t))
}

const set = `"uses": "data.set", "with": {"values": {}}`

func TestProblemsHavePointers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps string
		want  []workflow.Problem
	}{
		"an invalid id": {
			`[{"id": "Get-It", ` + set + `}]`,
			[]workflow.Problem{{Pointer: "/steps/0/id", Message: "must start with a letter a-z and contain only a-z, 0-9 and _, at most 63 characters"}},
		},
		"an id used twice": {
			`[{"id": "a", ` + set + `}, {"id": "a", ` + set + `}]`,
			[]workflow.Problem{{Pointer: "/steps/1/id", Message: `the id "a" is already used by another step`}},
		},
		"an unknown action": {
			`[{"id": "a", "uses": "data.sett", "with": {}}]`,
			[]workflow.Problem{{Pointer: "/steps/0/uses", Message: `unknown action "data.sett"`, Hint: `did you mean "data.set"?`}},
		},
		"a missing field of the input": {
			`[{"id": "a", "uses": "data.set"}]`,
			[]workflow.Problem{{Pointer: "/steps/0/with/values", Message: "is required"}},
		},
		"an unknown field of the input": {
			`[{"id": "a", "uses": "data.set", "with": {"values": {}, "x/y": 1}}]`,
			[]workflow.Problem{{Pointer: "/steps/0/with/x~1y", Message: `unknown field "x/y"`}},
		},
		"a wrong type in the input": {
			`[{"id": "a", "uses": "data.set", "with": {"values": 5}}]`,
			[]workflow.Problem{{Pointer: "/steps/0/with/values", Message: "must be object, not number"}},
		},
		"an input that is not an object": {
			`[{"id": "a", "uses": "data.set", "with": [1]}]`,
			[]workflow.Problem{{Pointer: "/steps/0/with", Message: "must be an object"}},
		},
		"a wait without a time": {
			`[{"id": "a", "uses": "flow.wait", "with": {}}]`,
			[]workflow.Problem{{Pointer: "/steps/0/with", Message: `needs either "for" or "until"`}},
		},
		"a wait that is too long": {
			`[{"id": "a", "uses": "flow.wait", "with": {"for": "367d"}}]`,
			[]workflow.Problem{{Pointer: "/steps/0/with/for", Message: "must be at most 366 days"}},
		},
		"a need that does not exist": {
			`[{"id": "get", ` + set + `}, {"id": "b", "needs": ["gett"], ` + set + `}]`,
			[]workflow.Problem{{Pointer: "/steps/1/needs/0", Message: `there is no step "gett"`, Hint: `did you mean "get"?`}},
		},
		"a step that needs itself, and a need listed twice": {
			`[{"id": "a", "needs": ["a"], ` + set + `}, {"id": "b", "needs": ["a", "a"], ` + set + `}]`,
			[]workflow.Problem{
				{Pointer: "/steps/0/needs/0", Message: "a step cannot need itself"},
				{Pointer: "/steps/1/needs/1", Message: `"a" is listed twice`},
			},
		},
		"paths that do not exist": {
			`[{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "big", "when": "true"}], "else": "small"}}, {"id": "b", "needs": ["a.bog", "a.small", "a.error", "a"], ` + set + `},
				{"id": "c", "needs": ["b.big", "a.big", "a.big", "b.error"], ` + set + `}]`,
			[]workflow.Problem{
				{Pointer: "/steps/1/needs/0", Message: `step "a" has no path "bog"`, Hint: `did you mean "big"?`},
				{Pointer: "/steps/2/needs/0", Message: `step "b" has no paths: it is not a flow.switch`, Hint: `write "b", or "b.error" for what happens if it fails`},
				{Pointer: "/steps/2/needs/2", Message: `"a.big" is listed twice`},
			},
		},
		"paths with the same id, or a reserved one": {
			`[{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "x", "when": "true"}, {"id": "x", "when": "true"}, {"id": "error", "when": "true"}], "else": "x"}}]`,
			[]workflow.Problem{
				{Pointer: "/steps/0/with/paths/1/id", Message: `the path "x" is listed twice`},
				{Pointer: "/steps/0/with/paths/2/id", Message: `"error" is the path that is taken when the step fails`, Hint: "choose another id"},
				{Pointer: "/steps/0/with/else", Message: "must be a path of its own, not one with a condition"},
			},
		},
		"conditions of paths that cannot be evaluated": {
			`[{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "x", "when": "1 +"}, {"id": "y", "when": "steps.b.output.n > 1"}, {"id": "z", "when": "item > 1"}]}}, {"id": "b", ` + set + `}]`,
			[]workflow.Problem{
				{Pointer: "/steps/0/with/paths/0/when", Message: "unexpected end of the expression (column 3)"},
				{Pointer: "/steps/0/with/paths/1/when", Message: `step "b" does not come before this one`, Hint: `add "b" to needs`},
				{Pointer: "/steps/0/with/paths/2/when", Message: "item is available only inside a foreach"},
			},
		},
		"a cycle through the error path": {
			`[{"id": "a", "needs": ["b"], ` + set + `}, {"id": "b", "needs": ["a.error"], ` + set + `}]`,
			[]workflow.Problem{{Pointer: "/steps/0/needs", Message: "the steps need each other in a cycle: a → b → a"}},
		},
		"a cycle of disabled steps": {
			`[{"id": "a", "disabled": true, "needs": ["b"], ` + set + `}, {"id": "b", "disabled": true, "needs": ["a"], ` + set + `}]`,
			[]workflow.Problem{{Pointer: "/steps/0/needs", Message: "the steps need each other in a cycle: a → b → a"}},
		},
		"a cycle": {
			`[{"id": "a", "needs": ["c"], ` + set + `}, {"id": "b", "needs": ["a"], ` + set + `}, {"id": "c", "needs": ["b"], ` + set + `}]`,
			[]workflow.Problem{{Pointer: "/steps/0/needs", Message: "the steps need each other in a cycle: a → b → c → a"}},
		},
		"an unknown join and on_error": {
			`[{"id": "a", "join": "some", "on_error": "retry", ` + set + `}]`,
			[]workflow.Problem{
				{Pointer: "/steps/0/join", Message: "must be one of any_ran, all, always, first"},
				{Pointer: "/steps/0/on_error", Message: "must be fail or continue"},
			},
		},
		"an expression that refers to an unknown step": {
			`[{"id": "a", ` + set + `}, {"id": "b", "if": "steps.aa.output.x", ` + set + `}]`,
			[]workflow.Problem{{Pointer: "/steps/1/if", Message: `there is no step "aa"`, Hint: `did you mean "a"?`}},
		},
		"an expression that refers to a parallel step": {
			`[{"id": "a", "needs": [], ` + set + `}, {"id": "b", "needs": [], "uses": "data.set", "with": {"values": {"x": ["${{ steps.a.output.x }}"]}}}]`,
			[]workflow.Problem{{Pointer: "/steps/1/with/values/x/0", Message: `step "a" does not come before this one`, Hint: `add "a" to needs`}},
		},
		"item outside a loop": {
			`[{"id": "a", "if": "item > 1", ` + set + `}]`,
			[]workflow.Problem{{Pointer: "/steps/0/if", Message: "item is available only inside a foreach"}},
		},
		"masks that select nothing": {
			`[{"id": "a", "uses": "http.request", "with": {"url": "https://a.example/"}, "mask": ["body.token", "headrs.x", "body[0]", ""]},
				{"id": "b", "foreach": "[1]", "mask": ["items"], "steps": [{"id": "c", ` + set + `, "mask": ["any.thing"]}]}]`,
			[]workflow.Problem{
				{Pointer: "/steps/0/mask/1", Message: `the output of http.request has no "headrs"`, Hint: `did you mean "headers"?`},
				{Pointer: "/steps/0/mask/2", Message: "must be names separated by dots, such as body.access_token"},
				{Pointer: "/steps/0/mask/3", Message: "must be names separated by dots, such as body.access_token"},
				{Pointer: "/steps/1/mask", Message: "a block cannot have a mask", Hint: "set it on the steps inside the block"},
			},
		},
		"previous outside a repeat": {
			`[{"id": "a", "if": "previous.x", ` + set + `}, {"id": "b", "foreach": "[previous]", "steps": [{"id": "c", "if": "previous", ` + set + `}]},
				{"id": "d", "repeat": {"until": "previous.n > index"}, "steps": [{"id": "e", "foreach": "previous", "steps": [{"id": "f", "if": "previous", ` + set + `}]}]}]`,
			[]workflow.Problem{
				{Pointer: "/steps/0/if", Message: "previous is available only inside a repeat"},
				{Pointer: "/steps/1/foreach", Message: "previous is available only inside a repeat"},
				{Pointer: "/steps/1/steps/0/if", Message: "previous is available only inside a repeat"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, problems := compile(t, test.steps)
			if program != nil {
				t.Error("a program despite problems")
			}
			if diff := cmp.Diff(test.want, problems); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpressionsAreNotTypeChecked(t *testing.T) {
	t.Parallel()
	for _, steps := range []string{
		`[{"id": "a", "uses": "data.set", "with": {"values": "${{ trigger.payload }}"}}]`,
		`[{"id": "a", "uses": "flow.wait", "with": {"for": "${{ trigger.payload.for }}"}}]`,
		`[{"id": "a", "uses": "flow.wait", "with": {"until": "${{ trigger.payload.day }}T00:00:00Z"}}]`,
	} {
		if _, problems := compile(t, steps); len(problems) > 0 {
			t.Errorf("%s: %+v", steps, problems)
		}
	}
}

func TestStepWithoutNeedsFollowsThePreviousOne(t *testing.T) {
	t.Parallel()
	program, problems := compile(t, `[{"id": "a", `+set+`}, {"id": "b", `+set+`}, {"id": "c", "needs": [], `+set+`}, {"id": "d", "needs": ["c", "a"], `+set+`}]`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var got [][]workflow.Need
	for _, step := range program.Steps {
		got = append(got, step.After)
	}
	if diff := cmp.Diff([][]workflow.Need{nil, {{Step: 0}}, nil, {{Step: 2}, {Step: 0}}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCanonicalFormRoundTrips(t *testing.T) {
	t.Parallel()
	var d workflow.Definition
	const text = `{"triggers":[{"id":"t","type":"manual"}],"steps":[{"id":"a","name":"A","uses":"data.set","with":{"values":{"n":9007199254740993}},"needs":[],"if":"true","join":"all","on_error":"continue"}],"settings":{}}`
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	canonical, err := d.Canonical()
	if err != nil || string(canonical) != text {
		t.Fatalf("%s, %v", canonical, err)
	}
	again, err := workflow.ParseDefinition(canonical)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, again); diff != "" {
		t.Error(diff)
	}
	if empty, err := (workflow.Definition{}).Canonical(); err != nil || string(empty) != `{"triggers":[],"steps":[],"settings":{}}` {
		t.Errorf("%s, %v", empty, err)
	}
	if _, err := workflow.ParseDefinition([]byte(`{"steps":7}`)); err == nil {
		t.Error("a damaged definition is accepted")
	}
}

func TestInsertedValuesAreEscaped(t *testing.T) {
	t.Parallel()
	program, problems := compile(t, `[{"id": "a", "uses": "http.request", "with": {
		"url": "https://a.example/${{ trigger.payload.text }}", "xml": "<a>${{ trigger.payload.text }}</a>", "headers": {"x": "${{ trigger.payload.text }}"}
	}}]`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got, err := program.Steps[0].Input.Eval(&expr.Env{Trigger: expr.Trigger{Payload: map[string]any{"text": "</b>"}}}, expr.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"url": "https://a.example/%3C%2Fb%3E", "xml": "<a>&lt;/b&gt;</a>", "headers": map[string]any{"x": "</b>"}}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Error(diff)
	}
}
