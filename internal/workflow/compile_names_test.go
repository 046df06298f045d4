package workflow_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
)

// check checks a definition in a workspace that has two secrets and a variable,
// and tells whether it was asked for the names.
func check(t *testing.T, definition string) (problems []workflow.Problem, asked bool) {
	t.Helper()
	actions, err := catalog.New(catalog.Means{})
	if err != nil {
		t.Fatal(err)
	}
	var d workflow.Definition
	if err := json.Unmarshal([]byte(definition), &d); err != nil {
		t.Fatal(err)
	}
	problems, err = workflow.Check(d, actions, func() (workflow.Names, error) {
		asked = true
		return workflow.Names{Secrets: []string{"gh_token", "other"}, Variables: []string{"region"}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return problems, asked
}

const call = `"uses": "http.request", "with": {"url": "https://example.com", "headers": {"Authorization": "Bearer ${{ secrets.gh_token }}"}}`

func TestNamesAreChecked(t *testing.T) {
	t.Parallel()
	const elsewhere = "refer to the secret in the step that needs it"
	refused := func(pointer, why string) []workflow.Problem {
		return []workflow.Problem{{Pointer: pointer, Message: "a secret cannot be used here: " + why, Hint: elsewhere}}
	}
	for name, test := range map[string]struct {
		definition string
		want       []workflow.Problem
	}{
		"a secret and a variable that exist": {
			`{"steps": [{"id": "a", "if": "secrets.other != '' && vars.region == 'eu'", ` + call + `}]}`, nil,
		},
		"a secret that does not exist": {
			`{"steps": [{"id": "a", "uses": "http.request", "with": {"url": "https://example.com", "body": {"t": ["${{ secrets.gh_tokn }}"]}}}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/with/body/t/0", Message: `there is no secret "gh_tokn"`, Hint: `did you mean "gh_token"?`}},
		},
		"the case of a name counts": {
			`{"steps": [{"id": "a", "if": "secrets.OTHER == 'x'", "uses": "data.set", "with": {"values": {}}}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/if", Message: `there is no secret "OTHER"`, Hint: `did you mean "other"?`}},
		},
		"a secret is no variable": {
			`{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ vars.gh_token }}"}}}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/with/values/x", Message: `there is no variable "gh_token"`}},
		},
		"a variable of the settings": {
			`{"settings": {"concurrency": {"key": "${{ vars.regions }}"}}, "steps": []}`,
			[]workflow.Problem{{Pointer: "/settings/concurrency/key", Message: "the key cannot be made from variables", Hint: "use trigger.payload"}},
		},
		"problems in the order of the document": {
			`{"steps": [{"id": "a", "if": "vars.none == 1", "uses": "data.set", "with": {"values": {}}}, {"id": "b", "uses": "data.set"}]}`,
			[]workflow.Problem{
				{Pointer: "/steps/0/if", Message: `there is no variable "none"`},
				{Pointer: "/steps/1/with/values", Message: "is required"},
			},
		},
		"a secret in what is kept": {
			`{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ secrets.gh_token }}"}}}]}`,
			refused("/steps/0/with/values/x", "data.set keeps its input in the open"),
		},
		"a secret that is looped over": {
			`{"steps": [{"id": "a", "foreach": "split(secrets.gh_token, ',')", "steps": [{"id": "b", ` + call + `}]}]}`,
			refused("/steps/0/foreach", "the rounds of a loop are recorded in the open"),
		},
		"a secret that ends a loop": {
			`{"steps": [{"id": "a", "repeat": {"until": "secrets.none == 'x'"}, "steps": [{"id": "b", ` + call + `}]}]}`,
			refused("/steps/0/repeat/until", "the rounds of a loop are recorded in the open"),
		},
		"a link of a step that waits, before it": {
			`{"steps": [{"id": "tell", "uses": "http.request", "with": {"url": "https://a.example", "body": "${{ links.ask.page }}"}}, {"id": "ask", "uses": "flow.approval"}]}`, nil,
		},
		"its own link, and a secret, in what it sends": {
			`{"steps": [{"id": "ask", "uses": "flow.approval", "with": {"notify": {"url": "${{ secrets.gh_token }}", "body": ["${{ links.ask.callback }}"]}}}]}`, nil,
		},
		"a link from inside a loop to outside": {
			`{"steps": [{"id": "ask", "needs": [], "uses": "flow.approval"}, {"id": "l", "needs": [], "foreach": "[1]", "steps": [{"id": "x", "uses": "http.request", "with": {"url": "https://a.example/${{ links.ask.page }}"}}]}]}`, nil,
		},
		"a link of what is inside a loop": {
			`{"steps": [{"id": "x", "uses": "http.request", "with": {"url": "https://a.example/${{ links.ask.page }}"}}, {"id": "l", "foreach": "[1]", "steps": [{"id": "ask", "uses": "flow.approval"}]}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/with/url", Message: `step "ask" is inside the block "l": each round has links of its own, which are known only there`}},
		},
		"a link of no step, and of one that does not wait": {
			`{"steps": [{"id": "x", "uses": "http.request", "with": {"url": "https://a.example/${{ links.asc.page }}${{ links.x.page }}"}}, {"id": "ask", "uses": "flow.approval"}]}`,
			[]workflow.Problem{
				{Pointer: "/steps/0/with/url", Message: `there is no step "asc"`, Hint: `did you mean "ask"?`},
				{Pointer: "/steps/0/with/url", Message: `step "x" has no links: it does not wait for an answer`},
			},
		},
		"a link in what is kept": {
			`{"steps": [{"id": "ask", "uses": "flow.approval", "with": {"message": "${{ links.ask.page }}"}}]}`,
			[]workflow.Problem{{
				Pointer: "/steps/0/with/message", Hint: "refer to the link in the step that needs it",
				Message: "a link cannot be used here: flow.approval keeps its input in the open",
			}},
		},
		"a link in a condition": {
			`{"steps": [{"id": "ask", "if": "links.ask.page != nil", "uses": "flow.approval"}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/if", Message: "a link can be used only in the input of a step"}},
		},
		"reminders of nobody": {
			`{"steps": [{"id": "ask", "uses": "flow.approval", "with": {"remind_every": "1d"}}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/with/remind_every", Message: "needs notify: there is nobody to remind"}},
		},
		"reminders all the time": {
			`{"steps": [{"id": "ask", "uses": "flow.approval", "with": {"remind_every": "1s", "notify": {"url": "chat.example"}}}]}`,
			[]workflow.Problem{
				{Pointer: "/steps/0/with/remind_every", Message: "must be at least 1m"},
				{Pointer: "/steps/0/with/notify/url", Message: "must be an absolute http or https URL"},
			},
		},
		"a secret in a loop": {
			`{"steps": [{"id": "a", "foreach": "[1]", "steps": [{"id": "b", "if": "secrets.other != nil", ` + call + `}]}]}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := check(t, test.definition)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesAreAskedForWhenNeeded(t *testing.T) {
	t.Parallel()
	if _, asked := check(t, `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ trigger.payload }}"}}}]}`); asked {
		t.Error("the names were asked for, and there is no reference")
	}
	if _, asked := check(t, `{"steps": [{"id": "a", `+call+`}]}`); !asked {
		t.Error("the names were not asked for")
	}
	actions, err := catalog.New(catalog.Means{})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	d := workflow.Definition{Steps: []workflow.Step{{ID: "a", Uses: "data.set", If: "vars.x == 1", With: json.RawMessage(`{"values": {}}`)}}}
	if _, err := workflow.Check(d, actions, func() (workflow.Names, error) { return workflow.Names{}, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// What a plan refers to is written in it; names are not looked up any more.
func TestPlansNameTheirSecrets(t *testing.T) {
	t.Parallel()
	plan, problems := compile(t, `[
		{"id": "a", "if": "secrets.z != secrets.b", "uses": "http.request", "with": {"url": "https://example.com/${{ secrets.b }}", "headers": {"x": "${{ secrets.a }}"}}},
		{"id": "l", "if": "secrets.l != nil", "foreach": "[1]", "steps": [{"id": "in", "if": "vars.on", "uses": "http.request", "with": {"url": "https://example.com/${{ secrets.inner }}"}}]},
		{"id": "s", "uses": "data.set", "with": {"values": {}}}
	]`)
	if problems != nil {
		t.Fatal(problems)
	}
	got := [][]string{plan.Secrets, plan.Steps[0].Secrets, plan.Steps[1].Secrets, plan.Steps[1].Block.Body.Steps[0].Secrets, plan.Steps[2].Secrets}
	want := [][]string{{"a", "b", "inner", "l", "z"}, {"a", "b", "z"}, {"l"}, {"inner"}, nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	for steps, vars := range map[string]bool{
		`[{"id": "s", "uses": "data.set", "with": {"values": {}}}]`:                                              false,
		`[{"id": "s", "uses": "data.set", "with": {"values": {"a": "${{ vars.a }}"}}}]`:                          true,
		`[{"id": "s", "uses": "data.set", "with": {"values": {"a": "${{ vars[trigger.payload.name] }}"}}}]`:      true,
		`[{"id": "l", "foreach": "vars.a", "steps": [{"id": "s", "uses": "data.set", "with": {"values": {}}}]}]`: true,
	} {
		plan, problems := compile(t, steps)
		if problems != nil || plan.Vars != vars {
			t.Errorf("%s: %v, %+v", steps, problems, plan)
		}
	}
	if plan.Steps[1].Block.Body.Vars || plan.Steps[1].Block.Body.Secrets != nil {
		t.Error("the plan of a block has what only that of a workflow has")
	}
}
