// Package template holds the templates: workflows to start from. Each is a file with
// metadata, which declares the inputs that people fill in, followed by the commented
// source of a workflow, which refers to them. The package puts values into the source;
// it does not interpret workflows. Tests elsewhere validate and run every template.
package template

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

//go:embed templates/*.yaml
var files embed.FS

// Template is a workflow to start from.
type Template struct {
	Name string `json:"-"` // the name of its file
	metadata
	// Triggers and Uses are the types of its triggers and the actions of its
	// steps, sorted and without duplicates.
	Triggers []string `json:"-"`
	Uses     []string `json:"-"`
	// Source is the YAML source of the workflow, without a name.
	Source string `json:"-"`

	// places has the inputs that the source refers to, by the JSON pointers of the
	// values that contain them.
	places map[string][]string
}

type metadata struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Category    string `json:"category"`
	// FirstRun reports whether the template runs without any account or network.
	FirstRun bool `json:"first_run"`
	// Payload is a payload for a first run.
	Payload json.RawMessage `json:"payload"`
	// Inputs are what people fill in to use the template, in the order of the form.
	Inputs []Input `json:"inputs"`
}

// All returns the templates: those for a first run, then the others by category
// and title.
var All = sync.OnceValues(readAll)

// Connects reports whether the template needs a connection.
func (t Template) Connects() bool {
	return slices.ContainsFunc(t.Inputs, func(in Input) bool { return in.Type == Connection })
}

// Find returns the template with the name, or nil if there is none.
func Find(name string) (*Template, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, nil
}

// Search returns the templates that match a query by their title, name,
// description, category, triggers or actions, best first.
func Search(query search.Query, limit int) ([]Template, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	best := search.NewBest[Template](limit)
	for _, t := range all {
		text := slices.Concat([]string{t.Name, t.Description, t.Category}, t.Triggers, t.Uses)
		entry := search.Entry{Name: t.Title, Text: text}
		best.Add(query.Rank(entry), entry, t)
	}
	return best.Items(), nil
}

func readAll() ([]Template, error) {
	entries, err := files.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	out := make([]Template, 0, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("templates", entry.Name()))
		if err != nil {
			return nil, err
		}
		t, err := Parse(strings.TrimSuffix(entry.Name(), ".yaml"), string(text))
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", entry.Name(), err)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Template) int { return strings.Compare(a.order(), b.order()) })
	return out, nil
}

func (t Template) order() string {
	if t.FirstRun {
		return " " + t.Title
	}
	return t.Category + " " + t.Title
}

// Parse reads a file: its metadata and its source, which a line of three
// dashes separates.
func Parse(name, text string) (Template, error) {
	head, source, found := strings.Cut(text, "\n---\n")
	if !found {
		return Template{}, fmt.Errorf("the line of three dashes is missing")
	}
	t := Template{Name: name, Source: source}
	document, err := strictyaml.Decode([]byte(head))
	if err != nil {
		return t, err
	}
	if err := strictjson.Decode(document.JSON, &t.metadata); err != nil {
		return t, err
	}
	document, err = strictyaml.Decode([]byte(source))
	if err != nil {
		return t, err
	}
	var outline block
	if err := json.Unmarshal(document.JSON, &outline); err != nil {
		return t, err
	}
	t.Triggers, t.Uses = outline.kinds()
	err = t.resolveInputs(document.JSON)
	return t, err
}

// block is the part of a workflow that names its triggers and actions.
type block struct {
	Triggers []struct {
		Type string `json:"type"`
	} `json:"triggers"`
	Uses  string  `json:"uses"`
	Steps []block `json:"steps"`
}

func (b block) kinds() (triggers, uses []string) {
	types, actions := map[string]bool{}, map[string]bool{}
	for _, trigger := range b.Triggers {
		types[trigger.Type] = true
	}
	for _, step := range b.Steps {
		if step.Uses != "" {
			actions[step.Uses] = true
		}
		_, inner := step.kinds()
		for _, name := range inner {
			actions[name] = true
		}
	}
	return slices.Sorted(maps.Keys(types)), slices.Sorted(maps.Keys(actions))
}
