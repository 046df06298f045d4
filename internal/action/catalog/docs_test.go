package catalog_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
)

var update = flag.Bool("update", false, "rewrite the pages of the actions in the docs")

const docsFolder = "../../../docs/actions"

const written = "<!-- Written by `make gen` from the declaration of the action; a change here is lost. -->\n\n"

// TestDocs holds the pages of the actions against their declarations.
func TestDocs(t *testing.T) {
	c, err := catalog.New(catalog.Means{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"README.md": overview(c)}
	for _, name := range c.Names() {
		entry, _ := c.Find(name)
		want[name+".md"] = page(t, entry.Spec)
	}
	if *update {
		rewrite(t, want)
		return
	}
	got := map[string]string{}
	for _, path := range pages(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(path)] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is out of date, run: make gen\n%s", docsFolder, diff)
	}
}

func pages(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(docsFolder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func rewrite(t *testing.T, want map[string]string) {
	t.Helper()
	if err := os.MkdirAll(docsFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range pages(t) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range want {
		if err := os.WriteFile(filepath.Join(docsFolder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func overview(c *action.Catalog) string {
	var b strings.Builder
	b.WriteString(written)
	b.WriteString("# Actions\n\nWhat a step can do, named in `uses`. Every text in `with` may hold [expressions](../expressions.md).\n\n| action | |\n|---|---|\n")
	for _, name := range c.Names() {
		entry, _ := c.Find(name)
		fmt.Fprintf(&b, "| [`%s`](%s.md) | %s |\n", name, name, cell(entry.Spec.Summary))
	}
	return b.String()
}

func page(t *testing.T, spec action.Spec) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s# `%s`\n\n**%s.** %s\n", written, spec.Name, spec.Title, spec.Summary)
	b.WriteString("\n## Input\n\n")
	writeFields(t, &b, spec.Input, "It takes no fields.")
	b.WriteString("\n## Output\n\n")
	writeFields(t, &b, spec.Output, "There is no output.")
	if len(spec.Limits) > 0 {
		b.WriteString("\n## Limits\n\n")
		for _, limit := range spec.Limits {
			fmt.Fprintf(&b, "- %s\n", limit)
		}
	}
	b.WriteString("\n## Errors\n\n")
	if len(spec.Codes) > 0 {
		b.WriteString("| code | |\n|---|---|\n")
		for _, code := range spec.Codes {
			fmt.Fprintf(&b, "| `%s` | %s |\n", code.Name, cell(code.Meaning))
		}
		b.WriteString("\n")
	}
	b.WriteString("Any step can fail with the codes listed [here](../workflows.md#when-a-step-fails).\n\n## Examples\n")
	for _, example := range spec.Examples {
		fmt.Fprintf(&b, "\n%s. `with`:\n\n```json\n%s\n```\n", example.Title, indented(t, example.With))
		if example.Answer != "" {
			fmt.Fprintf(&b, "\nWhat comes for it:\n\n```json\n%s\n```\n", indented(t, example.Answer))
		}
		fmt.Fprintf(&b, "\nOutput:\n\n```json\n%s\n```\n", indented(t, example.Output))
	}
	return b.String()
}

// property is the part of a JSON Schema that a row of a table shows.
type property struct {
	Type        any             `json:"type"`
	Enum        []any           `json:"enum"`
	Default     json.RawMessage `json:"default"`
	Description string          `json:"description"`
	Required    []string        `json:"required"`
	Properties  json.RawMessage `json:"properties"`
	Items       *property       `json:"items"`
}

// writeFields writes the members of an object as a table, in the order in which
// they are declared.
func writeFields(t *testing.T, b *strings.Builder, schema, none string) {
	t.Helper()
	var root property
	if schema != "" {
		if err := json.Unmarshal([]byte(schema), &root); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case root.Properties != nil:
		b.WriteString("| field | type | |\n|---|---|---|\n")
		writeRows(t, b, "", root)
	case root.Description != "":
		fmt.Fprintf(b, "%s\n", root.Description)
	default:
		fmt.Fprintf(b, "%s\n", none)
	}
}

func writeRows(t *testing.T, b *strings.Builder, prefix string, object property) {
	t.Helper()
	for _, name := range memberNames(t, object.Properties) {
		var members map[string]property
		if err := json.Unmarshal(object.Properties, &members); err != nil {
			t.Fatal(err)
		}
		p := members[name]
		words := p.Description
		if slices.Contains(object.Required, name) {
			words = "required: " + words
		}
		if p.Default != nil {
			words += " Default: `" + string(p.Default) + "`."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", prefix+name, cell(p.kind()), cell(words))
		if p.Properties != nil {
			writeRows(t, b, prefix+name+".", p)
		}
		if p.Items != nil && p.Items.Properties != nil {
			writeRows(t, b, prefix+name+"[].", *p.Items)
		}
	}
}

// kind is the type of a value in words.
func (p property) kind() string {
	if len(p.Enum) > 0 {
		var values []string
		for _, value := range p.Enum {
			values = append(values, fmt.Sprintf("`%v`", value))
		}
		return strings.Join(values, ", ")
	}
	switch kind := p.Type.(type) {
	case string:
		if kind == "array" && p.Items != nil && p.Items.kind() != "any" {
			return "list of " + p.Items.kind()
		}
		return kind
	case []any:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(kind), " ", " or "), "[]")
	}
	return "any"
}

// memberNames are the names of an object's members as they are written.
func memberNames(t *testing.T, object json.RawMessage) []string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(object))
	var names []string
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
	}
	return names
}

func indented(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if text == "" {
		text = "null"
	}
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// cell keeps a text within its cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
}
