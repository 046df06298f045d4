package template_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/template"
)

const head = "title: T\ndescription: D\ncategory: C\npayload: {}\ninputs:\n"

func parse(t *testing.T, inputs, source string) *template.Template {
	t.Helper()
	parsed, err := template.Parse("test", head+inputs+"---\n"+source)
	if err != nil {
		t.Fatal(err)
	}
	return &parsed
}

func values(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	var out map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const inputs = `  - {name: slack, type: connection, integration: slack, title: Slack}
  - {name: channel, type: account, title: Channel}
  - {name: greeting, type: text, title: Greeting, default: "Hello"}
  - {name: limit, type: integer, title: Limit, default: 3}
`

const source = `# Posts a greeting.
steps:
  - id: settings
    uses: data.set
    with: {values: {limit: $(inputs.limit)}} # a number
  - id: post
    uses: slack.post_message
    connection: $(inputs.slack)
    with:
      channel: $(inputs.channel)
      text: "$(inputs.greeting), ${{ trigger.payload.name }}! At most $(inputs.limit)."
`

func TestFill(t *testing.T) {
	t.Parallel()
	filled, err := parse(t, inputs, source).Fill("", values(t, `{"slack": "team", "channel": "#ops", "greeting": "He said: \"hi\" # no comment\n- x: y"}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `# Posts a greeting.
steps:
  - id: settings
    uses: data.set
    with: {values: {limit: 3}} # a number
  - id: post
    uses: slack.post_message
    connection: team
    with:
      channel: "#ops"
      text: |-
        He said: "hi" # no comment
        - x: y, ${{ trigger.payload.name }}! At most 3.
`
	if diff := cmp.Diff(want, filled.Workflow.Patch.Source.Text.Written); diff != "" {
		t.Error(diff)
	}
	if filled.Workflow.DefaultName != "T" || *filled.Workflow.Patch.Description != "D" {
		t.Errorf("it is called %q and described as %q", filled.Workflow.DefaultName, *filled.Workflow.Patch.Description)
	}
}

func TestFillNamesInputs(t *testing.T) {
	t.Parallel()
	parsed := parse(t, inputs+`  - {name: mail, type: email, title: Address, default: ann@acme.test}
  - {name: page, type: url, title: Page, default: "https://acme.test", example: "https://acme.test/x"}
  - {name: kind, type: choice, title: Kind, options: [{value: a, label: A}, {value: b, label: B}], default: a}
  - {name: code, type: string, title: Code, pattern: "[A-Z]+", default: X}
  - {name: call, type: workflow, title: Workflow, default: wf_01m7f9hb3mevr88y42wdngtn4v}
`, source+"  - {id: rest, uses: data.set, with: {values: [$(inputs.mail), $(inputs.page), $(inputs.kind), $(inputs.code), $(inputs.call)]}}\n")
	for _, tc := range []struct{ given, want string }{
		{`{}`, "/inputs/slack: is required; /inputs/channel: is required"},
		{`{"slack": "team", "channel": "#a", "chanel": 1}`, `/inputs/chanel: is not an input of this template (did you mean "channel"?)`},
		{`{"slack": "", "channel": "#a"}`, "/inputs/slack: must not be empty"},
		{`{"slack": null, "channel": "#a"}`, "/inputs/slack: must not be null"},
		{`{"slack": 7, "channel": "#a"}`, "/inputs/slack: must be a string"},
		{`{"slack": "team", "channel": ["#a"]}`, "/inputs/channel: must be a string, a number or true or false"},
		{`{"slack": "team", "channel": "#a", "limit": "3"}`, "/inputs/limit: must be a number"},
		{`{"slack": "team", "channel": "#a", "limit": 1.5}`, "/inputs/limit: must be a whole number"},
		{`{"slack": "team", "channel": "#a\nb"}`, "/inputs/channel: must be a single line"},
		{`{"slack": "team", "channel": "${{ secrets.key }}"}`, "/inputs/channel: must not contain ${{: it would become an expression; add it in the builder"},
		{`{"slack": "team", "channel": "#a", "mail": "Ann <ann@acme.test>"}`, "/inputs/mail: must be an email address"},
		{`{"slack": "team", "channel": "#a", "page": "acme.test"}`, "/inputs/page: must be a URL that begins with https:// or http://, such as https://acme.test/x"},
		{`{"slack": "team", "channel": "#a", "kind": "c"}`, "/inputs/kind: must be one of a, b"},
		{`{"slack": "team", "channel": "#a", "code": "xX"}`, "/inputs/code: must match [A-Z]+"},
		{`{"slack": "team", "channel": "#a", "call": "mine"}`, "/inputs/call: must be the id of a workflow, such as wf_01m7f9hb3mevr88y42wdngtn4v"},
	} {
		_, err := parsed.Fill("", values(t, tc.given))
		f, ok := fault.As(err)
		if !ok || f.Code != fault.InvalidRequest || f.Message != tc.want {
			t.Errorf("%s: %v, want %s", tc.given, err, tc.want)
		}
	}
}

// A value never becomes an expression together with the text around it.
func TestFillFormsNoExpression(t *testing.T) {
	t.Parallel()
	parsed := parse(t, "  - {name: a, type: string, title: A}\n  - {name: b, type: string, title: B}\n",
		"steps:\n  - {id: s, uses: data.set, with: {values: [\"$(inputs.a)$(inputs.b)\", \"$(inputs.a)${{ run.id }}\", \"$(inputs.b){{ run.id }}\"]}}\n")
	for _, given := range []string{
		`{"a": "$", "b": "{{ secrets.x }}"}`, `{"a": "${", "b": "{ secrets.x }}"}`, `{"a": "$", "b": "b"}`, `{"a": "a", "b": "$"}`, `{"a": "a", "b": "${"}`,
	} {
		if filled, err := parsed.Fill("", values(t, given)); err == nil && strings.Count(filled.Workflow.Patch.Source.Text.Written, "${{") != 1 {
			t.Errorf("%s gives\n%s", given, filled.Workflow.Patch.Source.Text.Written)
		}
	}
	if _, err := parsed.Fill("", values(t, `{"a": "$", "b": "5"}`)); err == nil || !strings.Contains(err.Error(), "/inputs/a") {
		t.Errorf("the error is %v", err)
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ inputs, source, want string }{
		{"  - {name: a, type: string, title: A}\n", "steps: []\n", "does not use the input a"},
		{"  []\n", "steps: [{with: {a: $(inputs.a)}}]\n", "there is no input a"},
		{"  - {name: a, type: string, title: A}\n", "steps: [{with: {a: $(inputs.a), b: $(inputs.B)}}]\n", "is written as"},
		{"  - {name: a, type: string, title: A}\n", "steps: [{if: $(inputs.a)}]\n", "can only be used in with"},
		{"  - {name: a, type: string, title: A}\n", "steps: [{with: {code: $(inputs.a)}}]\n", "can only be used in with"},
		{"  - {name: a, type: string, title: A}\n", "steps: [{with: {a: \"x ${{ y } $(inputs.a) }}\"}}]\n", "cannot be part of an expression"},
		{"  - {name: a, type: string, title: A}\n", "steps: [{with: {a: $$(inputs.a)}}]\n", "cannot be part of an expression"},
		{"  - {name: a, type: string, title: A}\n", "steps: [{with: {\"$(inputs.a)\": 1}}]\n", "the name of a member"},
		{"  - {name: a, type: account, title: A}\n", "steps: [{uses: x.y, with: {a: $(inputs.a)}}]\n", "no operation or trigger"},
		{"  - {name: a, type: text, title: A, integration: slack}\n", "steps: []\n", "has an integration"},
		{"  - {name: a, type: choice, title: A}\n", "steps: []\n", "has options"},
		{"  - {name: a, type: words, title: A}\n", "steps: []\n", "there is no type"},
		{"  - {name: a, type: number, title: A, default: x}\n", "steps: []\n", "must be a number"},
		{"  - {name: a, type: text, title: A}\n  - {name: a, type: text, title: A}\n", "steps: []\n", "there are two inputs a"},
	} {
		if _, err := template.Parse("test", head+tc.inputs+"---\n"+tc.source); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s%s\n%v, want %s", tc.inputs, tc.source, err, tc.want)
		}
	}
}

func TestListings(t *testing.T) {
	t.Parallel()
	parsed := parse(t, `  - {name: google, type: connection, integration: google, title: Google}
  - {name: file, type: account, title: Spreadsheet}
  - {name: sheet, type: account, title: Sheet}
  - {name: label, type: account, title: Label}
`, `triggers:
  - {id: mail, type: gmail.new_message, connection: $(inputs.google), with: {label: $(inputs.label)}}
steps:
  - id: row
    uses: google_sheets.append_row
    connection: $(inputs.google)
    with: {spreadsheet: $(inputs.file), sheet: $(inputs.sheet), values: {a: 1}}
`)
	if diff := cmp.Diff([]string{"gmail", "google_sheets"}, parsed.Inputs[0].Services); diff != "" {
		t.Error(diff)
	}
	got := map[string]*template.Listing{}
	for _, in := range parsed.Inputs {
		got[in.Name] = in.Lists
	}
	want := map[string]*template.Listing{
		"google": nil,
		"file":   {Operation: "google_sheets.append_row", Input: "spreadsheet", Connection: "google", With: map[string]string{"sheet": "sheet"}},
		"sheet":  {Operation: "google_sheets.append_row", Input: "sheet", Connection: "google", With: map[string]string{"spreadsheet": "file"}},
		"label":  {Trigger: "gmail.new_message", Input: "label", Connection: "google", With: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every template can be filled in with the examples and defaults of its inputs. All inputs
// are used, or it could not be read.
func TestTemplatesFill(t *testing.T) {
	t.Parallel()
	all, err := template.All()
	if err != nil {
		t.Fatal(err)
	}
	placeholder := regexp.MustCompile(`//[^/\s]*example\.(com|org|net)`)
	for _, parsed := range all {
		if strings.Contains(parsed.Source, "example.com") || placeholder.MatchString(parsed.Source) {
			t.Errorf("%s: the source has a placeholder address: ask for it", parsed.Name)
		}
		filled, err := parsed.Fill("Mine", sample(parsed))
		if err != nil {
			t.Errorf("%s: %v", parsed.Name, err)
			continue
		}
		written := filled.Workflow.Patch.Source.Text.Written
		if strings.Contains(written, "$(") {
			t.Errorf("%s: a reference is left:\n%s", parsed.Name, written)
		}
		if strings.Count(written, "#") < strings.Count(parsed.Source, "#") {
			t.Errorf("%s: a comment is gone:\n%s", parsed.Name, written)
		}
		if _, err := strictyaml.Decode([]byte(written)); err != nil {
			t.Errorf("%s: %v", parsed.Name, err)
		}
	}
}

// sample returns values for the inputs of a template.
func sample(parsed template.Template) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, in := range parsed.Inputs {
		switch {
		case in.Default != nil:
			continue
		case in.Type == template.Connection:
			out[in.Name] = json.RawMessage(`"mine"`)
		default:
			out[in.Name] = parsed.TextValue(in.Name, in.Example)
		}
	}
	return out
}
