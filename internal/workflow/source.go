package workflow

import (
	"errors"
	"reflect"
	"strconv"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// MaxSource is the maximum size of the text of a workflow in bytes.
const MaxSource = 256 << 10

// Text is the YAML of a workflow as its author wrote it, with comments.
type Text struct {
	Written  string
	document *strictyaml.Document
	members  textMembers
}

// textMembers are the members of a text. Unlike a patch, a text is complete: an
// omitted part of the definition is empty. State and pins belong to the workflow
// on this server, so a text may contain them but they are ignored.
type textMembers struct {
	Name        *string                       `json:"name"`
	Description strictjson.Optional[string]   `json:"description"`
	Triggers    []Trigger                     `json:"triggers"`
	Steps       []Step                        `json:"steps"`
	Settings    strictjson.Optional[Settings] `json:"settings"`
	Layout      strictjson.Optional[Layout]   `json:"layout"`
	State       any                           `json:"state"`
	Pinned      any                           `json:"pinned"`
}

// ReadText reads the text of a workflow. It reports problems with line and column,
// all at the pointer /source.
func ReadText(written string) (*Text, error) {
	if len(written) > MaxSource {
		return nil, fault.Field("/source", "has %d bytes; at most %d are allowed", len(written), MaxSource)
	}
	t := &Text{Written: written}
	var err error
	if t.document, err = strictyaml.Decode([]byte(written)); err == nil {
		err = strictjson.DecodeBody(t.document.JSON, &t.members)
	}
	if err != nil {
		return nil, t.readError(err)
	}
	return t, nil
}

func (t *Text) readError(err error) error {
	problems, ok := errors.AsType[strictjson.Errors](err)
	if !ok {
		return err
	}
	invalid := fault.New(fault.WorkflowInvalid, "the text of the workflow cannot be read")
	for _, problem := range problems {
		message := problem.Message
		if problem.Pointer != "" {
			message = problem.Pointer + ": " + message
		}
		line, column := problem.Line, problem.Column
		if t.document != nil { // it is valid YAML, so positions are known
			find := t.document.At
			if problem.Key {
				find = t.document.KeyAt
			}
			line, column, _ = find(problem.Pointer)
		}
		invalid.Details = append(invalid.Details, fault.Detail{Pointer: "/source", Message: message, Line: line, Column: column})
	}
	first := invalid.Details[0]
	invalid.Message = "/source: line " + strconv.Itoa(first.Line) + ", column " + strconv.Itoa(first.Column) + ": " + first.Message
	return invalid
}

// Locate adds line and column in the text to the problems of its definition.
func (t *Text) Locate(err error) error {
	f, ok := fault.As(err)
	if !ok || t == nil || t.document == nil {
		return err
	}
	for i := range f.Details {
		if detail := &f.Details[i]; detail.Pointer != "/source" {
			detail.Line, detail.Column, _ = t.document.At(detail.Pointer)
		}
	}
	return err
}

func (t *Text) definition() Definition {
	return Definition{Triggers: t.members.Triggers, Steps: t.members.Steps, Settings: t.members.Settings.Value}
}

// fillPatch copies the parts that the patch does not set from the text. If the
// patch sets any part of the definition, none of it is taken from the text.
func (t *Text) fillPatch(p *Patch, w Workflow) {
	if p.Name == nil {
		p.Name = t.members.Name
	}
	if given := t.members.Description; given.Set && !p.SetDescription {
		p.SetDescription = true
		if !given.Null {
			p.Description = &given.Value
		}
	}
	if given := t.members.Layout; given.Set && p.Layout == nil {
		p.Layout = &LayoutPatch{Clear: true, Places: map[string]*Point{}}
		for id, at := range given.Value {
			p.Layout.Places[id] = &at
		}
	}
	d := t.definition()
	if p.Triggers != nil || p.Steps != nil || p.Settings != nil || sameDefinition(d, w.Definition) {
		return
	}
	p.Triggers, p.Steps, p.Settings = &d.Triggers, &d.Steps, &SettingsPatch{Replace: &d.Settings}
}

// mismatch returns the name of a part in which the text and the workflow differ,
// or "".
func (t *Text) mismatch(w Workflow) string {
	d := t.definition()
	switch {
	case t.members.Name != nil && *t.members.Name != w.Name:
		return "name"
	case t.members.Description.Set && !sameText(t.description(), w.Description):
		return "description"
	case !sameDefinition(Definition{Triggers: d.Triggers}, Definition{Triggers: w.Definition.Triggers}):
		return "triggers"
	case !sameDefinition(Definition{Settings: d.Settings}, Definition{Settings: w.Definition.Settings}):
		return "settings"
	case !sameDefinition(Definition{Steps: d.Steps}, Definition{Steps: w.Definition.Steps}):
		return "steps"
	}
	return ""
}

func (t *Text) description() *string {
	if t.members.Description.Null {
		return nil
	}
	return &t.members.Description.Value
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// sameDefinition reports whether two definitions are equal, ignoring the order of
// members and the notation of numbers.
func sameDefinition(a, b Definition) bool {
	one, err := jsonDefinition(a)
	if err != nil {
		return false
	}
	other, err := jsonDefinition(b)
	return err == nil && reflect.DeepEqual(one, other)
}

func jsonDefinition(d Definition) (any, error) {
	text, err := d.Canonical()
	if err != nil {
		return nil, err
	}
	return strictjson.DecodeAny(text)
}

// SourcePatch changes the text of a workflow.
type SourcePatch struct {
	// Text is the new text; nil removes it.
	Text *Text
	// Optional means that the text is saved only if it matches the workflow. It is
	// the body of a patch and may describe only a part of it.
	Optional bool
}

// applySource sets the text of the workflow and marks it as stale if it no longer
// matches. Call it after everything else of the patch is applied.
func (p Patch) applySource(w *Workflow) error {
	if p.Source != nil {
		text := p.Source.Text
		switch {
		case text == nil:
			w.Source = nil
		case text.mismatch(*w) == "":
			w.Source = &text.Written
		case !p.Source.Optional:
			part := text.mismatch(*w)
			return fault.New(fault.WorkflowInvalid, "/source: the text does not match the workflow in its %s", part).
				With(fault.Detail{Pointer: "/source", Message: "does not match the workflow in its " + part})
		}
	}
	w.SourceStale = w.Source != nil && !textMatches(*w.Source, *w)
	return nil
}

// textMatches reports whether a text matches the workflow.
func textMatches(written string, w Workflow) bool {
	text, err := ReadText(written)
	return err == nil && text.mismatch(w) == ""
}

// versionText returns the text that is saved with the current version.
func (w Workflow) versionText() *string {
	if w.SourceStale {
		return nil
	}
	return w.Source
}
