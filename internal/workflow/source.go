package workflow

import (
	"errors"
	"reflect"
	"strconv"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// MaxSource is how many bytes the text of a workflow may have.
const MaxSource = 256 << 10

// Text is the YAML that somebody wrote for a workflow, with its comments.
type Text struct {
	Written  string
	document *strictyaml.Document
	says     textMembers
}

// textMembers is what a text may say. Unlike a patch it is whole: a part of
// the definition that is left out is empty. State and pins belong to the
// workflow on this server; a text may name them and changes nothing by it.
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

// ReadText reads the text of a workflow. What is wrong with it is told with the
// line and column, all at the pointer /source.
func ReadText(written string) (*Text, error) {
	if len(written) > MaxSource {
		return nil, fault.Field("/source", "has %d bytes; at most %d are allowed", len(written), MaxSource)
	}
	t := &Text{Written: written}
	var err error
	if t.document, err = strictyaml.Decode([]byte(written)); err == nil {
		err = strictjson.DecodeBody(t.document.JSON, &t.says)
	}
	if err != nil {
		return nil, t.unreadable(err)
	}
	return t, nil
}

func (t *Text) unreadable(err error) error {
	problems, ok := errors.AsType[strictjson.Errors](err)
	if !ok {
		return err
	}
	refused := fault.New(fault.WorkflowInvalid, "the text of the workflow cannot be read")
	for _, problem := range problems {
		message := problem.Message
		if problem.Pointer != "" {
			message = problem.Pointer + ": " + message
		}
		line, column := problem.Line, problem.Column
		if t.document != nil { // it is YAML, and its places are known
			find := t.document.At
			if problem.Key {
				find = t.document.KeyAt
			}
			line, column, _ = find(problem.Pointer)
		}
		refused.Details = append(refused.Details, fault.Detail{Pointer: "/source", Message: message, Line: line, Column: column})
	}
	first := refused.Details[0]
	refused.Message = "/source: line " + strconv.Itoa(first.Line) + ", column " + strconv.Itoa(first.Column) + ": " + first.Message
	return refused
}

// Locate tells where in the text the problems of its definition are.
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
	return Definition{Triggers: t.says.Triggers, Steps: t.says.Steps, Settings: t.says.Settings.Value}
}

// fill gives a patch what the text says and the patch does not. If a patch says
// anything of the definition, it is the patch that says all of it.
func (t *Text) fill(p *Patch, w Workflow) {
	if p.Name == nil {
		p.Name = t.says.Name
	}
	if given := t.says.Description; given.Set && !p.SetDescription {
		p.SetDescription = true
		if !given.Null {
			p.Description = &given.Value
		}
	}
	if given := t.says.Layout; given.Set && p.Layout == nil {
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

// differs names a part of which the text says something else than the workflow
// is; empty when there is none.
func (t *Text) differs(w Workflow) string {
	d := t.definition()
	switch {
	case t.says.Name != nil && *t.says.Name != w.Name:
		return "name"
	case t.says.Description.Set && !sameText(t.description(), w.Description):
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
	if t.says.Description.Null {
		return nil
	}
	return &t.says.Description.Value
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// sameDefinition tells whether two definitions say the same: the order of
// members and how a number is written are no difference.
func sameDefinition(a, b Definition) bool {
	one, err := plainDefinition(a)
	if err != nil {
		return false
	}
	other, err := plainDefinition(b)
	return err == nil && reflect.DeepEqual(one, other)
}

func plainDefinition(d Definition) (any, error) {
	text, err := d.Canonical()
	if err != nil {
		return nil, err
	}
	return strictjson.DecodeAny(text)
}

// SourcePatch changes the text of a workflow.
type SourcePatch struct {
	// Text is the new one; nil removes it.
	Text *Text
	// Offered says that the text need not be kept: it is the body of a patch, and
	// may say less than the workflow is.
	Offered bool
}

// applySource gives the workflow the text of a patch, once everything else of
// the patch is applied, and marks a text that no longer fits.
func (p Patch) applySource(w *Workflow) error {
	if p.Source != nil {
		text := p.Source.Text
		switch {
		case text == nil:
			w.Source = nil
		case text.differs(*w) == "":
			w.Source = &text.Written
		case !p.Source.Offered:
			part := text.differs(*w)
			return fault.New(fault.WorkflowInvalid, "/source: the text says something else than the workflow: its %s", part).
				With(fault.Detail{Pointer: "/source", Message: "says something else than the workflow: its " + part})
		}
	}
	w.SourceStale = w.Source != nil && !fits(*w.Source, *w)
	return nil
}

// fits tells whether a text says what the workflow is.
func fits(written string, w Workflow) bool {
	text, err := ReadText(written)
	return err == nil && text.differs(w) == ""
}

// versionText is the text that is kept with the current version.
func (w Workflow) versionText() *string {
	if w.SourceStale {
		return nil
	}
	return w.Source
}
