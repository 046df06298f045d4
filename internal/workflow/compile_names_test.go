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
// and reports whether the names were looked up.
func check(t *testing.T, definition string) (problems []workflow.Problem, asked bool) {
	t.Helper()
	actions, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	var d workflow.Definition
	if err := json.Unmarshal([]byte(definition), &d); err != nil {
		t.Fatal(err)
	}
	problems, _, err = workflow.Check(t.Context(), workflow.Definition{}, d, actions, types(t), "ws_1", func() (workflow.Names, error) {
		asked = true
		return workflow.Names{Secrets: []string{"gh_token", "other"}, Variables: []string{"region"}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return problems, asked
}

const call = `"uses": "http.request", "with": {"url": "https://example.com", "headers": {"Authorization": "Bearer ${{ secrets.gh_token }}"}}`

func TestCheckNames(t *testing.T) {
	t.Parallel()
	const hint = "use the secret in the step that needs it"
	rejected := func(pointer, why string) []workflow.Problem {
		return []workflow.Problem{{Pointer: pointer, Message: "a secret cannot be used here: " + why, Hint: hint}}
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
		"a secret is not a variable": {
			`{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ vars.gh_token }}"}}}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/with/values/x", Message: `there is no variable "gh_token"`}},
		},
		"a variable in the settings": {
			`{"settings": {"concurrency": {"key": "${{ vars.regions }}"}}, "steps": []}`,
			[]workflow.Problem{{Pointer: "/settings/concurrency/key", Message: "the key cannot use variables", Hint: "use trigger.payload"}},
		},
		"random value in a concurrency key": {
			`{"settings": {"concurrency": {"key": "${{ uuid() }}"}}, "steps": []}`,
			[]workflow.Problem{{Pointer: "/settings/concurrency/key", Message: "uuid() is available only in steps", Hint: "use it in the step that needs it"}},
		},
		"problems in document order": {
			`{"steps": [{"id": "a", "if": "vars.none == 1", "uses": "data.set", "with": {"values": {}}}, {"id": "b", "uses": "data.set"}]}`,
			[]workflow.Problem{
				{Pointer: "/steps/0/if", Message: `there is no variable "none"`},
				{Pointer: "/steps/1/with/values", Message: "is required"},
			},
		},
		"a secret in a stored input": {
			`{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ secrets.gh_token }}"}}}]}`,
			rejected("/steps/0/with/values/x", "data.set stores its input in plain text"),
		},
		"a secret that is looped over": {
			`{"steps": [{"id": "a", "foreach": "split(secrets.gh_token, ',')", "steps": [{"id": "b", ` + call + `}]}]}`,
			rejected("/steps/0/foreach", "the rounds of a loop are recorded in plain text"),
		},
		"a secret that ends a loop": {
			`{"steps": [{"id": "a", "repeat": {"until": "secrets.none == 'x'"}, "steps": [{"id": "b", ` + call + `}]}]}`,
			rejected("/steps/0/repeat/until", "the rounds of a loop are recorded in plain text"),
		},
		"a link of a step that waits, before it": {
			`{"steps": [{"id": "tell", "uses": "http.request", "with": {"url": "https://a.example", "body": "${{ links.ask.page }}"}}, {"id": "ask", "uses": "flow.approval"}]}`, nil,
		},
		"its own link and a secret in its notification": {
			`{"steps": [{"id": "ask", "uses": "flow.approval", "with": {"notify": {"url": "${{ secrets.gh_token }}", "body": ["${{ links.ask.callback }}"]}}}]}`, nil,
		},
		"a link from inside a loop to outside": {
			`{"steps": [{"id": "ask", "needs": [], "uses": "flow.approval"}, {"id": "l", "needs": [], "foreach": "[1]", "steps": [{"id": "x", "uses": "http.request", "with": {"url": "https://a.example/${{ links.ask.page }}"}}]}]}`, nil,
		},
		"a link of a step inside a loop": {
			`{"steps": [{"id": "x", "uses": "http.request", "with": {"url": "https://a.example/${{ links.ask.page }}"}}, {"id": "l", "foreach": "[1]", "steps": [{"id": "ask", "uses": "flow.approval"}]}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/with/url", Message: `step "ask" is inside the block "l": its links can be used only inside that block`}},
		},
		"a link of an unknown step and of one that does not wait": {
			`{"steps": [{"id": "x", "uses": "http.request", "with": {"url": "https://a.example/${{ links.asc.page }}${{ links.x.page }}"}}, {"id": "ask", "uses": "flow.approval"}]}`,
			[]workflow.Problem{
				{Pointer: "/steps/0/with/url", Message: `there is no step "asc"`, Hint: `did you mean "ask"?`},
				{Pointer: "/steps/0/with/url", Message: `step "x" has no links: it does not wait for an answer`},
			},
		},
		"a link in a stored input": {
			`{"steps": [{"id": "ask", "uses": "flow.approval", "with": {"message": "${{ links.ask.page }}"}}]}`,
			[]workflow.Problem{{
				Pointer: "/steps/0/with/message", Hint: "use the link in the step that needs it",
				Message: "a link cannot be used here: flow.approval stores its input in plain text",
			}},
		},
		"a link in a condition": {
			`{"steps": [{"id": "ask", "if": "links.ask.page != nil", "uses": "flow.approval"}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/if", Message: "a link can be used only in the input of a step"}},
		},
		"reminders without a recipient": {
			`{"steps": [{"id": "ask", "uses": "flow.approval", "with": {"remind_every": "1d"}}]}`,
			[]workflow.Problem{{Pointer: "/steps/0/with/remind_every", Message: "requires notify, which is sent again as the reminder"}},
		},
		"reminders that are too frequent": {
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

func TestNamesAreLookedUpOnlyIfReferenced(t *testing.T) {
	t.Parallel()
	if _, asked := check(t, `{"steps": [{"id": "a", "uses": "data.set", "with": {"values": {"x": "${{ trigger.payload }}"}}}]}`); asked {
		t.Error("the names were looked up without a reference")
	}
	if _, asked := check(t, `{"steps": [{"id": "a", `+call+`}]}`); !asked {
		t.Error("the names were not looked up")
	}
	actions, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	d := workflow.Definition{Steps: []workflow.Step{{ID: "a", Uses: "data.set", If: "vars.x == 1", With: json.RawMessage(`{"values": {}}`)}}}
	if _, _, err := workflow.Check(t.Context(), workflow.Definition{}, d, actions, types(t), "ws_1", func() (workflow.Names, error) { return workflow.Names{}, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// A program lists its secrets, so that they need not be searched at run time.
func TestProgramListsItsSecrets(t *testing.T) {
	t.Parallel()
	program, problems := compile(t, `[
		{"id": "a", "if": "secrets.z != secrets.b", "uses": "http.request", "with": {"url": "https://example.com/${{ secrets.b }}", "headers": {"x": "${{ secrets.a }}"}}},
		{"id": "l", "if": "secrets.l != nil", "foreach": "[1]", "steps": [{"id": "in", "if": "vars.on", "uses": "http.request", "with": {"url": "https://example.com/${{ secrets.inner }}"}}]},
		{"id": "s", "uses": "data.set", "with": {"values": {}}}
	]`)
	if problems != nil {
		t.Fatal(problems)
	}
	got := [][]string{program.Secrets, program.Steps[0].Secrets, program.Steps[1].Secrets, program.Steps[1].Block.Body.Steps[0].Secrets, program.Steps[2].Secrets}
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
		program, problems := compile(t, steps)
		if problems != nil || program.Vars != vars {
			t.Errorf("%s: %v, %+v", steps, problems, program)
		}
	}
	if program.Steps[1].Block.Body.Vars || program.Steps[1].Block.Body.Secrets != nil {
		t.Error("the program of a block has fields of a whole workflow")
	}
}
