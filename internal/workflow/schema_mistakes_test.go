package workflow_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
)

// document is a workflow in the format of the API.
type document struct {
	workflow.Definition
	Name        *string              `json:"name"`
	Description *string              `json:"description"`
	State       *workflow.State      `json:"state"`
	Layout      map[string][]float64 `json:"layout"`
}

// compilePlaces returns the pointers at which decoding and Compile find problems.
func compilePlaces(t testing.TB, text string) []string {
	t.Helper()
	var d document
	var found []string
	if err := strictjson.Decode([]byte(text), &d); err != nil {
		shape, ok := errors.AsType[strictjson.Errors](err)
		if !ok {
			t.Fatal(err)
		}
		for _, e := range shape {
			found = append(found, e.Pointer)
		}
		return found
	}
	_, problems := workflow.Compile(d.Definition, actions(t), types(t))
	for _, problem := range problems {
		found = append(found, problem.Pointer)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// mistakes are steps or whole documents, each with the pointer of its mistake.
var mistakes = []struct{ name, text, at string }{
	{"a document that is a list", `[]`, ""},
	{"an unknown member of the workflow", `{"step": []}`, "/step"},
	{"a name that is not text", `{"name": 7}`, "/name"},
	{"a description that is not text", `{"description": []}`, "/description"},
	{"a state that is not text", `{"state": true}`, "/state"},
	{"steps that are no list", `{"steps": {"a": {}}}`, "/steps"},
	{"triggers that are no list", `{"triggers": "manual"}`, "/triggers"},
	{"settings that are no object", `{"settings": []}`, "/settings"},
	{"a layout that is not an object", `{"layout": [1, 2]}`, "/layout"},
	{"a place that is text", `{"layout": {"a": ["left", "top"]}}`, "/layout/a/0 /layout/a/1"},
	{"an unknown setting", `{"settings": {"retries": 3}}`, "/settings/retries"},
	{"a time limit that is a number", `{"settings": {"timeout": 60}}`, "/settings/timeout"},
	{"a time limit that is not a duration", `{"settings": {"timeout": "soon"}}`, "/settings/timeout"},
	{"a limit of runs that is too small", `{"settings": {"concurrency": {"limit": -1}}}`, "/settings/concurrency/limit"},
	{"a limit of runs that is too large", `{"settings": {"concurrency": {"limit": 1001}}}`, "/settings/concurrency/limit"},
	{"an unknown on_limit", `{"settings": {"concurrency": {"on_limit": "wait"}}}`, "/settings/concurrency/on_limit"},
	{"an unknown member of concurrency", `{"settings": {"concurrency": {"max": 3}}}`, "/settings/concurrency/max"},
	{"a trigger that is text", `{"triggers": ["manual"]}`, "/triggers/0"},
	{"a trigger without an id", `{"triggers": [{"type": "manual"}]}`, "/triggers/0/id"},
	{"a trigger without a type", `{"triggers": [{"id": "a"}]}`, "/triggers/0/type"},
	{"a trigger of an unknown type", `{"triggers": [{"id": "a", "type": "cron"}]}`, "/triggers/0/type"},
	{"a trigger with a bad id", `{"triggers": [{"id": "A b", "type": "manual"}]}`, "/triggers/0/id"},
	{"an unknown member of a trigger", `{"triggers": [{"id": "a", "type": "manual", "when": "now"}]}`, "/triggers/0/when"},

	{"a step that is text", `"data.set"`, "/steps/0"},
	{"a step without an id", `{` + set + `}`, "/steps/0/id"},
	{"an id with a capital letter", `{"id": "Get", ` + set + `}`, "/steps/0/id"},
	{"an id with a hyphen", `{"id": "get-it", ` + set + `}`, "/steps/0/id"},
	{"an id that begins with a digit", `{"id": "1st", ` + set + `}`, "/steps/0/id"},
	{"an id of 64 characters", `{"id": "` + strings.Repeat("a", 64) + `", ` + set + `}`, "/steps/0/id"},
	{"an id that is a number", `{"id": 7, ` + set + `}`, "/steps/0/id"},
	{"a name of 201 characters", `{"id": "a", "name": "` + strings.Repeat("ü", 201) + `", ` + set + `}`, "/steps/0/name"},
	{"an unknown member of a step", `{"id": "a", "need": [], ` + set + `}`, "/steps/0/need"},
	{"a step without an action", `{"id": "a"}`, "/steps/0/uses"},
	{"an unknown action", `{"id": "a", "uses": "data.sett", "with": {"values": {}}}`, "/steps/0/uses"},
	{"an action that is a list", `{"id": "a", "uses": ["data.set"], "with": {"values": {}}}`, "/steps/0/uses"},
	{"needs that is text", `{"id": "a", "needs": "b", ` + set + `}`, "/steps/0/needs"},
	{"a need that is a number", `{"id": "a", "needs": [1], ` + set + `}`, "/steps/0/needs/0"},
	{"a need that is not a valid id", `{"id": "a", "needs": ["Get It"], ` + set + `}`, "/steps/0/needs/0"},
	{"a need with two dots", `{"id": "a", "needs": ["b.c.d"], ` + set + `}`, "/steps/0/needs/0"},
	{"disabled as text", `{"id": "a", "disabled": "yes", ` + set + `}`, "/steps/0/disabled"},
	{"a condition that is a number", `{"id": "a", "if": 1, ` + set + `}`, "/steps/0/if"},
	{"a condition that is empty", `{"id": "a", "if": "", ` + set + `}`, "/steps/0/if"},
	{"an unknown join", `{"id": "a", "join": "some", ` + set + `}`, "/steps/0/join"},
	{"an unknown on_error", `{"id": "a", "on_error": "retry", ` + set + `}`, "/steps/0/on_error"},
	{"a time limit without a unit", `{"id": "a", "timeout": "60", ` + set + `}`, "/steps/0/timeout"},
	{"a time limit in weeks", `{"id": "a", "timeout": "1w", ` + set + `}`, "/steps/0/timeout"},
	{"a retry that is a number", `{"id": "a", "retry": 3, ` + set + `}`, "/steps/0/retry"},
	{"too many attempts", `{"id": "a", "retry": {"max_attempts": 21}, ` + set + `}`, "/steps/0/retry/max_attempts"},
	{"a negative number of attempts", `{"id": "a", "retry": {"max_attempts": -1}, ` + set + `}`, "/steps/0/retry/max_attempts"},
	{"a fractional number of attempts", `{"id": "a", "retry": {"max_attempts": 1.5}, ` + set + `}`, "/steps/0/retry/max_attempts"},
	{"a factor that is too small", `{"id": "a", "retry": {"factor": 0.5}, ` + set + `}`, "/steps/0/retry/factor"},
	{"a factor that is too large", `{"id": "a", "retry": {"factor": 11}, ` + set + `}`, "/steps/0/retry/factor"},
	{"a delay that is not a duration", `{"id": "a", "retry": {"initial": "-1s"}, ` + set + `}`, "/steps/0/retry/initial"},
	{"an unknown member of retry", `{"id": "a", "retry": {"attempts": 3}, ` + set + `}`, "/steps/0/retry/attempts"},

	{"an input that is a list", `{"id": "a", "uses": "data.set", "with": [1]}`, "/steps/0/with"},
	{"an input that is one expression", `{"id": "a", "uses": "data.set", "with": "${{ trigger.payload }}"}`, "/steps/0/with"},
	{"an input without a required member", `{"id": "a", "uses": "data.set", "with": {}}`, "/steps/0/with/values"},
	{"an input with an unknown member", `{"id": "a", "uses": "data.set", "with": {"values": {}, "x/y": 1}}`, "/steps/0/with/x~1y"},
	{"an unknown member that is an expression", `{"id": "a", "uses": "data.set", "with": {"values": {}, "x": "${{ 1 }}"}}`, "/steps/0/with/x"},
	{"an input of the wrong type", `{"id": "a", "uses": "data.set", "with": {"values": 5}}`, "/steps/0/with/values"},
	{"text where no expression is", `{"id": "a", "uses": "data.set", "with": {"values": "trigger.payload"}}`, "/steps/0/with/values"},
	{"a method that does not exist", `{"id": "a", "uses": "http.request", "with": {"url": "https://a.example", "method": "FETCH"}}`, "/steps/0/with/method"},
	{"a boolean as text", `{"id": "a", "uses": "http.request", "with": {"url": "https://a.example", "follow_redirects": "no"}}`, "/steps/0/with/follow_redirects"},
	{"an empty URL", `{"id": "a", "uses": "http.request", "with": {"url": ""}}`, "/steps/0/with/url"},
	{"an invalid fail_on", `{"id": "a", "uses": "http.request", "with": {"url": "https://a.example", "fail_on": "500"}}`, "/steps/0/with/fail_on"},
	{"a time to wait that is a number", `{"id": "a", "uses": "flow.wait", "with": {"for": 5}}`, "/steps/0/with/for"},
	{"an expression in a GraphQL query", `{"id": "a", "uses": "graphql.request", "with": {"url": "https://a.example", "query": "{ a(id: \"${{ trigger.payload.id }}\") }"}}`, "/steps/0/with/query"},

	{"a switch without paths", `{"id": "a", "uses": "flow.switch", "with": {"paths": []}}`, "/steps/0/with/paths"},
	{"a path without a condition", `{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "b"}]}}`, "/steps/0/with/paths/0/when"},
	{"a path without an id", `{"id": "a", "uses": "flow.switch", "with": {"paths": [{"when": "true"}]}}`, "/steps/0/with/paths/0/id"},
	{"a condition of a path that is a number", `{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "b", "when": 1}]}}`, "/steps/0/with/paths/0/when"},
	{"a condition of a path that is empty", `{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "b", "when": ""}]}}`, "/steps/0/with/paths/0/when"},
	{"a bad id of a path", `{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "B", "when": true}], "else": "C d"}}`, "/steps/0/with/else /steps/0/with/paths/0/id"},
	{"expressions in place of names", `{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "${{ 1 }}", "name": "${{ 2 }}", "when": "${{ true }}"}], "else": "${{ 3 }}", "match": "${{ 4 }}"}}`,
		"/steps/0/with/else /steps/0/with/match /steps/0/with/paths/0/id /steps/0/with/paths/0/name"},
	{"paths that are an expression", `{"id": "a", "uses": "flow.switch", "with": {"paths": "${{ trigger.payload }}"}}`, "/steps/0/with/paths"},
	{"an unknown match", `{"id": "a", "uses": "flow.switch", "with": {"paths": [{"id": "b", "when": true}], "match": "any"}}`, "/steps/0/with/match"},

	{"a block without steps", `{"id": "a", "foreach": "[1]"}`, "/steps/0/steps"},
	{"a block with no steps in it", `{"id": "a", "foreach": "[1]", "steps": []}`, "/steps/0/steps"},
	{"a block without foreach or repeat", `{"id": "a", "steps": [{"id": "b", ` + set + `}]}`, "/steps/0"},
	{"a block with foreach and repeat", `{"id": "a", "foreach": "[1]", "repeat": {"until": "true"}, "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/repeat"},
	{"a block that uses an action", `{"id": "a", "uses": "data.set", "foreach": "[1]", "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/uses"},
	{"a block with an input", `{"id": "a", "with": {}, "foreach": "[1]", "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/with"},
	{"a block with a time limit", `{"id": "a", "timeout": "1s", "foreach": "[1]", "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/timeout"},
	{"a block with a retry", `{"id": "a", "retry": {}, "foreach": "[1]", "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/retry"},
	{"a repeat in parallel", `{"id": "a", "parallel": 2, "repeat": {"until": "true"}, "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/parallel"},
	{"too many rounds in parallel", `{"id": "a", "parallel": 101, "foreach": "[1]", "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/parallel"},
	{"a foreach that is a list", `{"id": "a", "foreach": [1], "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/foreach"},
	{"a repeat without an end", `{"id": "a", "repeat": {"every": "1s"}, "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/repeat/until"},
	{"too many rounds", `{"id": "a", "repeat": {"until": "true", "max": 10001}, "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/repeat/max"},
	{"an interval that is not a duration", `{"id": "a", "repeat": {"until": "true", "every": "often"}, "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/repeat/every"},
	{"an unknown member of repeat", `{"id": "a", "repeat": {"until": "true", "times": 3}, "steps": [{"id": "b", ` + set + `}]}`, "/steps/0/repeat/times"},
	{"a mistake inside a block", `{"id": "a", "foreach": "[1]", "steps": [{"id": "b", "uses": "data.sett"}]}`, "/steps/0/steps/0/uses"},
}

// The schema reports each mistake at the same pointer as the server.
func TestSchemaAndServerAgreeOnMistakes(t *testing.T) {
	t.Parallel()
	schema := format(t, actions(t))
	for _, test := range mistakes {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text, want := test.text, strings.Fields(test.at)
			if strings.HasPrefix(test.at, "/steps/0") {
				text = `{"steps": [` + text + `]}`
			}
			if test.at == "" {
				want = []string{""}
			}
			if diff := cmp.Diff(want, places(t, schema, text)); diff != "" {
				t.Errorf("the schema (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, compilePlaces(t, text)); diff != "" {
				t.Errorf("the server (-want +got):\n%s", diff)
			}
		})
	}
}
