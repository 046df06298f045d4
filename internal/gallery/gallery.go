// Package gallery owns the templates: whole workflows to begin with, each a file
// that says what it is for, and then the text of a workflow with comments that
// teach. It does not own what a workflow means; a test holds every template
// against that and runs it.
package gallery

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

//go:embed templates/*.yaml
var files embed.FS

// Template is a workflow to begin with.
type Template struct {
	Name string `json:"-"` // that of its file
	about
	// Triggers and Uses are the types of its triggers and the actions of its
	// steps, each once, sorted.
	Triggers []string `json:"-"`
	Uses     []string `json:"-"`
	// Source is the text of the workflow, without a name: whoever takes it gives
	// it one.
	Source string `json:"-"`
}

// about is the first part of a file.
type about struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Category    string `json:"category"`
	// FirstRun marks those that run at once, without any account or network.
	FirstRun bool `json:"first_run"`
	// Payload is something to start a first run with.
	Payload json.RawMessage `json:"payload"`
}

// All lists the templates: those for the first run, then the others by
// category and title.
var All = sync.OnceValues(readAll)

// Find returns the template with a name; nil when there is none.
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
		t, err := read(strings.TrimSuffix(entry.Name(), ".yaml"), string(text))
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

// read takes a file apart: what it is for, a line of three dashes, the text.
func read(name, text string) (Template, error) {
	head, source, found := strings.Cut(text, "\n---\n")
	if !found {
		return Template{}, fmt.Errorf("there is no line of three dashes")
	}
	t := Template{Name: name, Source: source}
	document, err := strictyaml.Decode([]byte(head))
	if err != nil {
		return t, err
	}
	if err := strictjson.Decode(document.JSON, &t.about); err != nil {
		return t, err
	}
	document, err = strictyaml.Decode([]byte(source))
	if err != nil {
		return t, err
	}
	var outline block
	err = json.Unmarshal(document.JSON, &outline)
	t.Triggers, t.Uses = outline.kinds()
	return t, err
}

// block is as much of a workflow as tells what is in it.
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
