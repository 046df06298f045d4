package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/app"
)

type integrationsCommand struct {
	List   listIntegrationsCommand   `cmd:"" help:"List integrations."`
	Show   showIntegrationCommand    `cmd:"" help:"Show an integration, or one of its operations or triggers with an example."`
	Lint   lintIntegrationsCommand   `cmd:"" help:"Check manifests, and report all their problems."`
	Test   testIntegrationsCommand   `cmd:"" help:"Run the tests of integrations. No request leaves the process."`
	Schema schemaIntegrationsCommand `cmd:"" help:"Print the JSON Schema of manifests, for editors."`

	FromOpenAPI openAPICommand `cmd:"" name:"from-openapi" help:"Write the manifest for an API that an OpenAPI document describes."`
}

type listIntegrationsCommand struct {
	Words []string `arg:"" optional:"" help:"Words that the name, id, category, keywords, operations or triggers have."`
	JSON  bool     `help:"Print JSON."`
}

// Run lists the integrations.
func (c *listIntegrationsCommand) Run(con *console) error {
	found, err := app.Integrations(c.Words)
	if err != nil {
		return err
	}
	if len(found) == 0 && !c.JSON {
		return fmt.Errorf("no integration matches %q", strings.Join(c.Words, " "))
	}
	rows := [][]string{{"ID", "NAME", "CATEGORY", "OPERATIONS", "TRIGGERS"}}
	for _, i := range found {
		rows = append(rows, []string{i.ID, i.Name, i.Category, strconv.Itoa(len(i.Operations)), strconv.Itoa(len(i.Triggers))})
	}
	return printResult(con, c.JSON, found, rows)
}

type showIntegrationCommand struct {
	Name string `arg:"" placeholder:"ID" help:"The id of an integration, such as slack, or the name of an operation or a trigger, such as slack.post_message."`
	JSON bool   `help:"Print JSON."`
}

// Run shows an integration, an operation or a trigger.
func (c *showIntegrationCommand) Run(con *console) error {
	id, name, isPart := strings.Cut(c.Name, ".")
	found, err := app.FindIntegration(id)
	if err != nil {
		return err
	}
	if !isPart {
		if c.JSON {
			return printResult(con, true, found, nil)
		}
		_, err = io.WriteString(con.out, integrationText(found))
		return err
	}
	operation, err := found.FindOperation(name)
	if trigger, ok := found.FindTrigger(name); ok && err != nil {
		if c.JSON {
			return printResult(con, true, trigger, nil)
		}
		_, err = io.WriteString(con.out, triggerText(trigger))
		return err
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printResult(con, true, operation, nil)
	}
	_, err = io.WriteString(con.out, operationText(operation))
	return err
}

type lintIntegrationsCommand struct {
	Paths []string `arg:"" optional:"" placeholder:"PATH" help:"Manifests, folders with an integration.yaml, or folders of such folders (default: the current folder)."`
}

// Run checks manifests.
func (c *lintIntegrationsCommand) Run(con *console) error {
	set, err := app.IntegrationFiles(pathsOr(c.Paths))
	if err != nil {
		return err
	}
	problems, manifests := set.Lint()
	files := map[string]bool{}
	for _, problem := range problems {
		files[problem.File] = true
		if _, err := fmt.Fprintln(con.out, problem); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s in %s", count(len(problems), "problem"), count(len(files), "file"))
	}
	_, err = fmt.Fprintf(con.out, "%s checked, no problems\n", count(manifests, "manifest"))
	return err
}

type testIntegrationsCommand struct {
	Paths   []string `arg:"" optional:"" placeholder:"PATH" help:"Folders with an integration.yaml and a tests.yaml, or folders of such folders (default: the current folder)."`
	Builtin bool     `help:"Test the integrations that are part of Stepmill."`
	Only    string   `name:"run" placeholder:"NAME" help:"Run only the tests of an operation or a trigger, such as post_message or slack.post_message. A part of the name of a test can follow, as in post_message/thread."`
}

// Run runs tests.
func (c *testIntegrationsCommand) Run(con *console) error {
	if c.Builtin && len(c.Paths) > 0 {
		return errors.New("--builtin tests the integrations that are part of Stepmill: leave out the paths")
	}
	open := func() (*app.IntegrationSet, error) { return app.IntegrationFiles(pathsOr(c.Paths)) }
	if c.Builtin {
		open = app.BuiltinIntegrationFiles
	}
	set, err := open()
	if err != nil {
		return err
	}
	report, err := set.Test(con, c.Only)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, problem := range report.Problems {
		fmt.Fprintln(&text, problem)
	}
	for _, o := range report.Outcomes {
		if o.Problem != "" {
			fmt.Fprintf(&text, "%s:%d: %s, %s\n  %s\n", o.File, o.Line, o.Of, o.Test, strings.ReplaceAll(o.Problem, "\n", "\n  "))
		}
	}
	if _, err := io.WriteString(con.out, text.String()); err != nil {
		return err
	}
	passed, failed := report.Passed()
	summary := fmt.Sprintf("%d passed, %d failed", passed, failed)
	if len(report.Problems) > 0 {
		return fmt.Errorf("%s, and %s in the files", summary, count(len(report.Problems), "problem"))
	}
	if failed > 0 {
		return errors.New(summary)
	}
	_, err = fmt.Fprintln(con.out, summary)
	return err
}

type schemaIntegrationsCommand struct {
	Tests bool `help:"Print the schema of tests.yaml."`
}

// Run prints a schema.
func (c *schemaIntegrationsCommand) Run(con *console) error {
	text, err := app.IntegrationSchema(c.Tests)
	if err != nil {
		return err
	}
	_, err = con.out.Write(text)
	return err
}

func pathsOr(paths []string) []string {
	if len(paths) == 0 {
		return []string{"."}
	}
	return paths
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
