package integration

import (
	"encoding/json"
	"io/fs"
	"path"
	"sync"

	"github.com/stepmill/stepmill/internal/strictjson"
)

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

// LoadIndexed returns the catalog of the manifests in a folder, given their index. It compiles
// nothing: what the index has of an integration is compiled when the integration is first
// needed, and its manifest is read when its operations or triggers are. A start therefore
// costs the same with any number of integrations. An index that is not valid is found by a
// test, not here.
func LoadIndexed(folder fs.FS, index []byte) (*Catalog, error) {
	var manifests []json.RawMessage
	if err := json.Unmarshal(index, &manifests); err != nil {
		return nil, err
	}
	out := &Catalog{}
	for _, text := range manifests {
		one := &entry{}
		if err := json.Unmarshal(text, &one.head); err != nil {
			return nil, err
		}
		one.load = sync.OnceValues(func() (*Integration, error) { return out.loadIndexed(folder, one, text) })
		out.insert(one)
	}
	out.linkServices()
	return out, nil
}

func (c *Catalog) loadIndexed(folder fs.FS, e *entry, text []byte) (*Integration, error) {
	d := &decoded{outline: true}
	if err := strictjson.Decode(text, &d.manifest); err != nil {
		return nil, err
	}
	out, err := c.compile(e, d)
	if err != nil {
		return nil, err
	}
	out.folder = folder
	out.detail = sync.OnceValue(func() detail { return c.read(folder, e.ID) })
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
