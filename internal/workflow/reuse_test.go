package workflow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/workflow"
)

func compileSteps(t *testing.T, steps string) *workflow.Program {
	t.Helper()
	p, problems := compile(t, steps)
	if len(problems) > 0 {
		t.Fatalf("%s does not compile: %v", steps, problems)
	}
	return p
}

// degrees returns the names of the degrees by step id.
func degrees(reuse map[string]workflow.Reuse) map[string]string {
	names := []string{"nothing", "rounds", "success", "all"}
	out := map[string]string{}
	for id, degree := range reuse {
		out[id] = names[degree]
	}
	return out
}

const (
	stepA = `{"id": "a", ` + set + `}`
	stepB = `{"id": "b", "uses": "log.write", "with": {"message": "${{ steps.a.output.n }}"}}`
	stepC = `{"id": "c", "uses": "http.request", "with": {"url": "https://example.com/", "method": "GET"}}`
)

func TestReusableSteps(t *testing.T) {
	t.Parallel()
	inLoop := func(fields, body string) string {
		return fmt.Sprintf(`[%s, {"id": "l", %s, "steps": [%s]}, {"id": "z", %s}]`, stepA, fields, body, set)
	}
	const each, body = `"foreach": "[1, 2]"`, `{"id": "x", "uses": "data.set", "with": {"values": {"i": "${{ index }}"}}}, {"id": "y", ` + set + `}`
	for name, test := range map[string]struct {
		from, to string
		want     map[string]string
	}{
		"unchanged steps are reused": {
			`[` + stepA + `, ` + stepB + `, ` + stepC + `]`, `[` + stepA + `, ` + stepB + `, ` + stepC + `]`,
			map[string]string{"a": "all", "b": "all", "c": "all"},
		},
		"a step with a changed input is not reused, nor are the steps after it": {
			`[` + stepA + `, ` + stepB + `, ` + stepC + `]`,
			`[` + stepA + `, {"id": "b", "uses": "log.write", "with": {"message": "fixed"}}, ` + stepC + `]`,
			map[string]string{"a": "all"},
		},
		"the name and the notation do not matter": {
			`[{"id": "a", "uses": "http.request", "with": {"url": "https://example.com/", "method": "GET"}}, ` + stepC + `]`,
			`[{"id": "a", "name": "Fetch", "needs": [], "join": "any_ran", "on_error": "fail", "timeout": "1m",
				"uses": "http.request", "with": {"method": "GET", "url": "https://example.com/"}},
				{"id": "c", "needs": ["a"], "uses": "http.request", "with": {"url": "https://example.com/", "method": "GET"}}]`,
			map[string]string{"a": "all", "c": "all"},
		},
		"another action": {
			`[{"id": "a", "uses": "log.write", "with": {"message": "x"}}]`, `[` + stepA + `]`, map[string]string{},
		},
		"another condition": {
			`[` + stepA + `, {"id": "b", "if": "true", ` + set + `}]`, `[` + stepA + `, {"id": "b", "if": "1 == 1", ` + set + `}]`,
			map[string]string{"a": "all"},
		},
		"another condition of a path": {
			`[` + stepA + `, {"id": "b", "uses": "flow.switch", "with": {"paths": [{"id": "x", "when": "1 > 2"}], "else": "y"}}, {"id": "c", "needs": ["b.x"], ` + set + `}]`,
			`[` + stepA + `, {"id": "b", "uses": "flow.switch", "with": {"paths": [{"id": "x", "when": "2 > 1"}], "else": "y"}}, {"id": "c", "needs": ["b.x"], ` + set + `}]`,
			map[string]string{"a": "all"},
		},
		"another path": {
			`[{"id": "b", "uses": "flow.switch", "with": {"paths": [{"id": "x", "when": "1 > 2"}], "else": "y"}}, {"id": "c", "needs": ["b.x"], ` + set + `}]`,
			`[{"id": "b", "uses": "flow.switch", "with": {"paths": [{"id": "x", "when": "1 > 2"}], "else": "y"}}, {"id": "c", "needs": ["b.y"], ` + set + `}]`,
			map[string]string{"b": "all"},
		},
		"a step that handles a failure": {
			`[` + stepA + `]`, `[` + stepA + `, {"id": "b", "needs": ["a.error"], ` + set + `}]`,
			map[string]string{"a": "success"},
		},
		"a disabled step, and a step after one": {
			`[` + stepA + `, ` + stepC + `, {"id": "d", ` + set + `}]`, `[` + stepA + `, {"id": "c", "disabled": true, "uses": "http.request", "with": {"url": "https://example.com/", "method": "GET"}}, {"id": "d", ` + set + `}]`,
			map[string]string{"a": "all"},
		},
		"another join": {
			`[` + stepA + `, {"id": "b", ` + set + `}]`, `[` + stepA + `, {"id": "b", "join": "all", ` + set + `}]`,
			map[string]string{"a": "all"},
		},
		"another timeout, retry or on_error keeps a success, also for the steps after it": {
			`[` + stepC + `, {"id": "d", ` + set + `}, {"id": "e", ` + set + `}, {"id": "f", ` + set + `}]`,
			`[{"id": "c", "timeout": "5m", "uses": "http.request", "with": {"url": "https://example.com/", "method": "GET"}},
				{"id": "d", "retry": {"max_attempts": 2}, ` + set + `}, {"id": "e", "on_error": "continue", ` + set + `}, {"id": "f", ` + set + `}]`,
			map[string]string{"c": "success", "d": "success", "e": "success", "f": "all"},
		},
		"a removed step changes the next one in the list": {
			`[` + stepA + `, {"id": "b", ` + set + `}, ` + stepC + `]`, `[` + stepA + `, ` + stepC + `]`,
			map[string]string{"a": "all"},
		},
		"a removed step that no step needs does not affect the others": {
			`[` + stepA + `, {"id": "b", "needs": [], ` + set + `}, {"id": "c", "needs": ["a"], ` + set + `}]`,
			`[` + stepA + `, {"id": "c", "needs": ["a"], ` + set + `}]`,
			map[string]string{"a": "all", "c": "all"},
		},
		"an added step changes the next one in the list": {
			`[` + stepA + `, ` + stepC + `]`, `[` + stepA + `, {"id": "b", ` + set + `}, ` + stepC + `]`,
			map[string]string{"a": "all"},
		},
		"an added branch does not affect the others": {
			`[` + stepA + `, {"id": "c", "needs": ["a"], ` + set + `}]`,
			`[` + stepA + `, {"id": "b", "needs": [], ` + set + `}, {"id": "c", "needs": ["a"], ` + set + `}]`,
			map[string]string{"a": "all", "c": "all"},
		},
		"a renamed id is another step": {
			`[` + stepA + `, {"id": "b", ` + set + `}]`, `[{"id": "a2", ` + set + `}, {"id": "b", "needs": ["a2"], ` + set + `}]`,
			map[string]string{},
		},
		"another order is another sequence": {
			`[` + stepA + `, {"id": "b", ` + set + `}, ` + stepC + `]`, `[{"id": "b", ` + set + `}, ` + stepA + `, ` + stepC + `]`,
			map[string]string{},
		},
		"another order with the same needs changes nothing": {
			`[` + stepA + `, {"id": "b", "needs": [], ` + set + `}, {"id": "c", "needs": ["b", "a"], ` + set + `}]`,
			`[{"id": "b", "needs": [], ` + set + `}, {"id": "a", "needs": [], ` + set + `}, {"id": "c", "needs": ["a", "b"], ` + set + `}]`,
			map[string]string{"a": "all", "b": "all", "c": "all"},
		},
		"the same loop": {
			inLoop(each, body), inLoop(each, body),
			map[string]string{"a": "all", "l": "all", "x": "all", "y": "all", "z": "all"},
		},
		"another list to loop over changes everything inside and after the loop": {
			inLoop(each, body), inLoop(`"foreach": "[1, 2, 3]"`, body), map[string]string{"a": "all"},
		},
		"another number of parallel rounds": {
			inLoop(each, body), inLoop(each+`, "parallel": 2`, body),
			map[string]string{"a": "all", "l": "success", "x": "all", "y": "all", "z": "all"},
		},
		"a step changed inside a foreach": {
			inLoop(each, body), inLoop(each, `{"id": "x", "uses": "data.set", "with": {"values": {"i": "${{ index }}"}}}, {"id": "y", "if": "false", `+set+`}`),
			map[string]string{"a": "all", "l": "rounds", "x": "all"},
		},
		"another timeout inside a foreach": {
			inLoop(each, body), inLoop(each, `{"id": "x", "timeout": "2s", "uses": "data.set", "with": {"values": {"i": "${{ index }}"}}}, {"id": "y", `+set+`}`),
			map[string]string{"a": "all", "l": "success", "x": "success", "y": "all", "z": "all"},
		},
		"another last step of a foreach is another output": {
			inLoop(each, `{"id": "x", `+set+`}, {"id": "y", "needs": [], `+set+`}`), inLoop(each, `{"id": "y", "needs": [], `+set+`}, {"id": "x", "needs": [], `+set+`}`),
			map[string]string{"a": "all"},
		},
		"a step changed inside a repeat": {
			inLoop(`"repeat": {"until": "index == 1"}`, body), inLoop(`"repeat": {"until": "index == 1"}`, `{"id": "x", "uses": "data.set", "with": {"values": {"i": "${{ index }}"}}}, {"id": "y", "if": "false", `+set+`}`),
			map[string]string{"a": "all"},
		},
		"another end of a repeat": {
			inLoop(`"repeat": {"until": "index == 1"}`, body), inLoop(`"repeat": {"until": "index == 1", "max": 5}`, body),
			map[string]string{"a": "all"},
		},
		"a default written out in a repeat": {
			inLoop(`"repeat": {"until": "index == 1"}`, body), inLoop(`"repeat": {"until": "index == 1", "max": 100}`, body),
			map[string]string{"a": "all", "l": "all", "x": "all", "y": "all", "z": "all"},
		},
		"a step moved into a loop": {
			`[` + stepA + `, {"id": "l", "needs": ["a"], "foreach": "[1]", "steps": [{"id": "x", ` + set + `}]}, {"id": "b", "needs": ["a"], ` + set + `}]`,
			`[` + stepA + `, {"id": "l", "needs": ["a"], "foreach": "[1]", "steps": [{"id": "b", "needs": [], ` + set + `}, {"id": "x", "needs": [], ` + set + `}]}]`,
			map[string]string{"a": "all", "l": "rounds", "x": "all"},
		},
		"a loop that became a step": {
			`[{"id": "a", "foreach": "[1]", "steps": [{"id": "x", ` + set + `}]}]`, `[` + stepA + `]`, map[string]string{},
		},
		"a step that reads the version": {
			`[{"id": "a", "uses": "log.write", "with": {"message": "v${{ workflow.version }}"}}, {"id": "b", "needs": [], "uses": "log.write", "with": {"message": "${{ workflow.name }}"}}]`,
			`[{"id": "a", "uses": "log.write", "with": {"message": "v${{ workflow.version }}"}}, {"id": "b", "needs": [], "uses": "log.write", "with": {"message": "${{ workflow.name }}"}}]`,
			map[string]string{"b": "all"},
		},
		"a step that may read any other depends on all of them": {
			`[` + stepA + `, {"id": "b", "needs": [], "uses": "data.set", "with": {"values": {"all": "${{ steps }}"}}}, {"id": "c", "needs": ["a"], ` + set + `}]`,
			`[` + stepA + `, {"id": "b", "needs": [], "uses": "data.set", "with": {"values": {"all": "${{ steps }}"}}}, {"id": "c", "needs": ["a"], "if": "true", ` + set + `}]`,
			map[string]string{"a": "all"},
		},
		"a step that may read any other, when none changed": {
			`[` + stepA + `, {"id": "b", "needs": [], "uses": "data.set", "with": {"values": {"all": "${{ steps }}"}}}]`,
			`[{"id": "a", "name": "First", ` + set + `}, {"id": "b", "needs": [], "uses": "data.set", "with": {"values": {"all": "${{ steps }}"}}}]`,
			map[string]string{"a": "all", "b": "all"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, degrees(workflow.ReusableSteps(compileSteps(t, test.from), compileSteps(t, test.to)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPinnedOutputIsNotReused(t *testing.T) {
	t.Parallel()
	draft, saved := compileSteps(t, `[`+stepA+`, {"id": "b", "needs": [], `+set+`}]`), compileSteps(t, `[`+stepA+`, {"id": "b", "needs": [], `+set+`}]`)
	draft.Pins = workflow.Pins{"a": {Output: json.RawMessage(`{"n": 1}`)}}
	if diff := cmp.Diff(map[string]string{"b": "all"}, degrees(workflow.ReusableSteps(draft, saved))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
