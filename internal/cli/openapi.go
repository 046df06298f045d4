package cli

import (
	"fmt"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/app"
)

type openAPICommand struct {
	File       string   `arg:"" help:"The OpenAPI 3.0 or 3.1 document, in JSON or YAML."`
	List       bool     `help:"List the operations of the document instead."`
	ID         string   `placeholder:"X_NAME" help:"The id of the integration, which begins with x_. Default: made of the title of the document."`
	Name       string   `help:"The name of the service. Default: the title of the document."`
	Category   string   `help:"The category of the service (default: development)."`
	Server     string   `placeholder:"URL" help:"The https URL of the API, in place of the servers of the document."`
	Operations []string `placeholder:"NAME,…" help:"The operations to convert, by name or pattern, as in list_orders,refunds_*. Default: all that are not deprecated."`
	Test       string   `placeholder:"NAME" help:"The operation that tests connections: a GET that needs no input."`
	Output     string   `short:"o" placeholder:"FILE" help:"The file to write, which must not exist. Default: standard output."`
}

// Run writes the manifest for an OpenAPI document. Its notes are printed as errors are, so
// that the output is the manifest alone.
func (c *openAPICommand) Run(con *console) error {
	if c.List {
		return c.list(con)
	}
	made, err := app.ConvertOpenAPI(c.File, app.OpenAPIOptions{
		ID: c.ID, Name: c.Name, Category: c.Category, Server: c.Server, Operations: c.Operations, Test: c.Test,
	})
	if err != nil {
		return err
	}
	for _, note := range made.Notes {
		place := c.File
		if note.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d: %s", c.File, note.Line, note.Column, note.Pointer)
		}
		if _, err := fmt.Fprintf(con.err, "%s: %s\n", place, note.Message); err != nil {
			return err
		}
	}
	if c.Output == "" || c.Output == stdio {
		_, err := con.out.Write(made.Manifest)
		return err
	}
	if err := app.WriteManifest(c.Output, made.Manifest); err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "wrote %s with %s. Add tests, and check them: stepmill integrations lint %s\n",
		c.Output, count(len(made.Operations), "operation"), filepath.Dir(c.Output))
	return err
}

func (c *openAPICommand) list(con *console) error {
	found, err := app.OpenAPIOperations(c.File)
	if err != nil {
		return err
	}
	rows := [][]string{{"NAME", "METHOD", "PATH", "TITLE"}}
	for _, o := range found {
		title := o.Title
		if o.Deprecated {
			title += " (deprecated)"
		}
		rows = append(rows, []string{o.Name, o.Method, o.Path, title})
	}
	return printResult(con, false, found, rows)
}
