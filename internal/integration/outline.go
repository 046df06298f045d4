package integration

import (
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Outline is what lists show of an operation or a trigger. Unlike these themselves, it is
// known before anybody needs one of them.
type Outline struct {
	Name    string
	Title   string
	Summary string
	// Hidden operations are not offered to people.
	Hidden bool
	// Every is how often a trigger looks for something new.
	Every      string
	Deprecated *Deprecation
}

// detail is what most integrations are never asked for: it is compiled when it is first
// needed.
type detail struct {
	operations []Operation
	triggers   []Trigger
	hooks      []Hook
}

// OperationOutlines returns the outlines of the operations, in the order of the file.
func (i *Integration) OperationOutlines() []Outline { return i.operations }

// TriggerOutlines returns the outlines of the triggers, in the order of the file.
func (i *Integration) TriggerOutlines() []Outline { return i.triggers }

// Operations returns the operations, in the order of the file.
func (i *Integration) Operations() []Operation { return i.detail().operations }

// Triggers returns the triggers, in the order of the file.
func (i *Integration) Triggers() []Trigger { return i.detail().triggers }

func findOutline(outlines []Outline, name string) (Outline, bool) {
	at := slices.IndexFunc(outlines, func(one Outline) bool { return one.Name == name })
	if at < 0 {
		return Outline{}, false
	}
	return outlines[at], true
}

func outlineNames(outlines []Outline) []string {
	var out []string
	for _, one := range outlines {
		out = append(out, one.Name)
	}
	return out
}

// outline sets the outlines of an integration.
func (i *Integration) outline(m *manifest) {
	for _, o := range m.Operations {
		i.operations = append(i.operations, Outline{Name: o.name, Title: o.value.Title, Summary: o.value.Summary, Hidden: o.value.Hidden, Deprecated: o.value.Deprecated})
	}
	for _, t := range m.Triggers {
		one := Outline{Name: t.name, Title: t.value.Title, Summary: t.value.Summary, Deprecated: t.value.Deprecated}
		if t.value.Poll != nil {
			one.Every = t.value.Poll.Every
			if every, err := clock.ParseDuration(one.Every); err == nil {
				one.Every = clock.FormatDuration(every)
			}
		}
		i.triggers = append(i.triggers, one)
	}
}

// The members of operations and triggers that the index has.
type (
	indexedOperation struct {
		Title      string          `json:"title"`
		Summary    string          `json:"summary,omitempty"`
		Hidden     bool            `json:"hidden,omitempty"`
		Deprecated json.RawMessage `json:"deprecated,omitempty"`
	}
	indexedTrigger struct {
		Title      string          `json:"title"`
		Summary    string          `json:"summary,omitempty"`
		Deprecated json.RawMessage `json:"deprecated,omitempty"`
		Poll       *indexedPoll    `json:"poll,omitempty"`
	}
	indexedPoll struct {
		Every string `json:"every"`
	}
)

// Index returns the index of the manifests in a folder: the manifests as JSON, with an
// outline of their operations and triggers only.
func Index(folder fs.FS) ([]byte, error) {
	files, err := fs.Glob(folder, "*/"+manifestFile)
	if err != nil {
		return nil, err
	}
	out := []byte("[")
	for n, file := range files {
		text, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, err
		}
		one, err := indexed(text)
		if err != nil {
			return nil, AsErrors(err).In(file)
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = append(append(out, '\n'), one...)
	}
	return append(out, "\n]\n"...), nil
}

// indexed returns what the index has of a manifest.
func indexed(text []byte) ([]byte, error) {
	d, err := decode(text)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(d.document.JSON, &members); err != nil {
		return nil, err
	}
	if err := reduce[indexedOperation](members, "operations"); err != nil {
		return nil, err
	}
	if err := reduce[indexedTrigger](members, "triggers"); err != nil {
		return nil, err
	}
	delete(members, "hooks") // only triggers name them
	return strictjson.Encode(members)
}

// reduce reduces the values of a member, an object, to a type. They stay in their order.
func reduce[T any](members map[string]json.RawMessage, name string) error {
	if members[name] == nil {
		return nil
	}
	var values map[string]T
	if err := json.Unmarshal(members[name], &values); err != nil {
		return err
	}
	out := []byte("{")
	for n, key := range keys(members[name]) {
		pair, err := strictjson.Encode(map[string]T{key: values[key]})
		if err != nil {
			return err
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = append(out, pair[1:len(pair)-1]...)
	}
	members[name] = append(out, '}')
	return nil
}

// LoadIndexed returns the catalog of the manifests in a folder, given their index. It reads
// a manifest when its operations or triggers are first needed.
func LoadIndexed(folder fs.FS, index []byte) (*Catalog, error) {
	var manifests []json.RawMessage
	if err := json.Unmarshal(index, &manifests); err != nil {
		return nil, err
	}
	l := loader{catalog: &Catalog{}, sharing: map[string]*decoded{}}
	for _, text := range manifests {
		d := &decoded{outline: true}
		if err := strictjson.Decode(text, &d.manifest); err != nil {
			return nil, err
		}
		l.add(path.Join(d.manifest.ID, manifestFile), d)
	}
	out, err := l.finish()
	if err != nil {
		return nil, err
	}
	for _, one := range out.list {
		one.folder = folder
		one.detail = sync.OnceValue(func() detail { return out.read(folder, one.ID) })
	}
	return out, nil
}

// read returns what the manifest of an integration has beside its outline. It returns
// nothing for one that is not valid, which a test finds.
func (c *Catalog) read(folder fs.FS, id string) detail {
	text, err := fs.ReadFile(folder, path.Join(id, manifestFile))
	if err != nil {
		return detail{}
	}
	full, err := Parse(text, c.Find)
	if err != nil {
		return detail{}
	}
	return full.detail()
}
