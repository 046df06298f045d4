package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
)

// The example of every operation is a valid step.
func TestIntegrationExamples(t *testing.T) {
	t.Parallel()
	actions, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	types, err := triggers.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := app.Integrations(nil)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, i := range all {
		for _, o := range i.Operations {
			count++
			document, err := strictyaml.Decode([]byte("steps:\n" + o.Example))
			if err != nil {
				t.Errorf("%s: %v in\n%s", o.Action, err, o.Example)
				continue
			}
			var definition workflow.Definition
			if err := strictjson.Decode(document.JSON, &definition); err != nil {
				t.Errorf("%s: %v in\n%s", o.Action, err, o.Example)
				continue
			}
			_, problems := workflow.Compile(definition, actions, types.Format())
			for _, problem := range problems {
				t.Errorf("%s: %s: %s in\n%s", o.Action, problem.Pointer, problem.Message, o.Example)
			}
			if len(definition.Steps) != 1 || definition.Steps[0].Uses != o.Action {
				t.Errorf("%s: the example is\n%s", o.Action, o.Example)
			}
		}
	}
	if count < 50 {
		t.Errorf("there are %d operations", count)
	}
}

func TestIntegrations(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"slack":             "slack",
		"Airtable sheet":    "airtable", // a keyword
		"post_message":      "slack",
		"Direct SLACK":      "slack", // the title of an operation
		"crm pipedr":        "pipedrive",
		"nobody knows this": "",
	} {
		found, err := app.Integrations(strings.Fields(words))
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, i := range found {
			ids = append(ids, i.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%q finds %q, want %q", words, got, want)
		}
	}
}

func TestFindOperation(t *testing.T) {
	t.Parallel()
	github, err := app.FindIntegration("github")
	if err != nil {
		t.Fatal(err)
	}
	o, err := github.FindOperation("create_issue")
	if err != nil {
		t.Fatal(err)
	}
	in := o.Inputs[0]
	var notes []string
	for _, note := range in.Notes {
		notes = append(notes, note.String())
	}
	got := []any{in.Name, in.Type, in.Required, in.Title, notes}
	want := []any{"repository", "string", true, "Repository", []string{"As owner/name.", "github.list_repositories lists the values.", "Must match ^[^/]+/[^/]+$.", "Example: octocat/hello-world"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := github.FindOperation("creat_issue"); err == nil || !strings.Contains(err.Error(), `GitHub has no operation "creat_issue" (did you mean "create_issue"?)`) {
		t.Errorf("the error is %v", err)
	}
	if _, err := app.FindIntegration("githbu"); err == nil || !strings.Contains(err.Error(), `there is no integration "githbu" (did you mean "github"?)`) {
		t.Errorf("the error is %v", err)
	}
}
