package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"path"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

type files struct{ content map[string][]byte }

// Create implements action.Files.
func (f *files) Create(_ context.Context, made action.NewFile) (action.FileWriter, error) {
	return &writer{files: f, made: made}, nil
}

// Open implements action.Files.
func (f *files) Open(_ context.Context, opened *expr.File, offset int64) (io.ReadCloser, error) {
	content, ok := f.content[opened.ID]
	if !ok || offset > int64(len(content)) {
		return nil, fmt.Errorf("there is no file %s", opened.Name)
	}
	return io.NopCloser(bytes.NewReader(content[offset:])), nil
}

func (f *files) add(made action.NewFile, content []byte) *expr.File {
	sum := sha256.Sum256(content)
	id := fmt.Sprintf("file_%d", len(f.content)+1)
	f.content[id] = content
	return expr.NewFile(expr.File{
		ID: id, Name: made.Name, Type: made.Type, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), List: made.List,
	})
}

type writer struct {
	files *files
	made  action.NewFile
	bytes.Buffer
}

// Finish implements action.FileWriter.
func (w *writer) Finish() (*expr.File, error) { return w.files.add(w.made, w.Bytes()), nil }

// Abort implements action.FileWriter.
func (w *writer) Abort() {}

// decode reads an input in which {$file: name} is one of the given files.
func (f *files) decode(input json.RawMessage, given map[string]Content) (map[string]any, error) {
	if input == nil {
		return map[string]any{}, nil
	}
	value, err := expr.FromJSON(input)
	if err != nil {
		return nil, err
	}
	object, ok := f.replace(value, given).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must be an object")
	}
	return object, nil
}

func (f *files) replace(value any, given map[string]Content) any {
	switch v := value.(type) {
	case map[string]any:
		if name, ok := v["$file"].(string); ok {
			return f.add(action.NewFile{Name: name, Type: mime.TypeByExtension(path.Ext(name))}, given[name].Bytes())
		}
		for name, member := range v {
			v[name] = f.replace(member, given)
		}
	case []any:
		for i, item := range v {
			v[i] = f.replace(item, given)
		}
	}
	return value
}

// describe replaces files in an output by their name and text.
func (f *files) describe(value any) any {
	switch v := value.(type) {
	case *expr.File:
		return map[string]any{"$file": v.Name, "text": string(f.content[v.ID])}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = f.describe(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = f.describe(item)
		}
		return out
	}
	return value
}
