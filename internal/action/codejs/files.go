package codejs

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/sandbox"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// scriptFiles are the files of a script: first those of its input, then those that it
// creates. The script refers to them by their index, so it cannot name any others. It
// implements sandbox.Storage.
type scriptFiles struct {
	stored action.Files
	marker string
	files  []*expr.File
	index  map[string]int // by id
}

// encode returns an input as JSON, in which markers stand for the files.
func (s *scriptFiles) encode(input any) (json.RawMessage, error) {
	encoded, err := strictjson.Encode(input)
	if err != nil || !bytes.Contains(encoded, []byte(`"`+expr.FileKey+`"`)) {
		return encoded, err // there are no files
	}
	return strictjson.Encode(s.mark(input))
}

// mark returns a copy of a value with markers for its files.
func (s *scriptFiles) mark(v any) any {
	switch v := v.(type) {
	case *expr.File:
		i, known := s.index[v.ID]
		if !known {
			i = len(s.files)
			s.index[v.ID] = i
			s.files = append(s.files, v)
		}
		return s.marker + strconv.Itoa(i)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.mark(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = s.mark(member)
		}
		return out
	}
	return v
}

// decode returns the value of an output, with the files that markers stand for.
func (s *scriptFiles) decode(output json.RawMessage) (any, error) {
	value, err := expr.FromJSON(output)
	if err != nil || !bytes.Contains(output, []byte(s.marker)) {
		return value, err
	}
	return s.unmark(value), nil
}

// unmark replaces markers in a value that was just decoded.
func (s *scriptFiles) unmark(v any) any {
	switch v := v.(type) {
	case string:
		if number, marked := strings.CutPrefix(v, s.marker); marked {
			if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(s.files) {
				return s.files[i]
			}
		}
	case []any:
		for i := range v {
			v[i] = s.unmark(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = s.unmark(v[name])
		}
	}
	return v
}

// forSandbox returns what the sandbox needs to know of the files.
func (s *scriptFiles) forSandbox() sandbox.Files {
	if s.stored == nil {
		return sandbox.Files{}
	}
	out := sandbox.Files{Marker: s.marker, Storage: s}
	for _, f := range s.files {
		out.Given = append(out.Given, sandbox.File{Name: f.Name, Type: f.Type, Size: f.Size, SHA256: f.SHA256})
	}
	return out
}

// Open implements sandbox.Storage.
func (s *scriptFiles) Open(ctx context.Context, index int) (io.ReadCloser, error) {
	return s.stored.Open(ctx, s.files[index], 0)
}

// Create implements sandbox.Storage.
func (s *scriptFiles) Create(ctx context.Context, name, mediaType string) (sandbox.FileWriter, error) {
	w, err := s.stored.Create(ctx, action.NewFile{Name: name, Type: mediaType})
	if err != nil {
		return nil, err
	}
	return &scriptFileWriter{FileWriter: w, files: s}, nil
}

type scriptFileWriter struct {
	action.FileWriter
	files *scriptFiles
}

func (w *scriptFileWriter) Finish() error {
	f, err := w.FileWriter.Finish()
	if err == nil {
		w.files.files = append(w.files.files, f)
	}
	return err
}
