package workflow

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/uid"
)

// References are the files that a definition refers to, by the JSON pointer of the
// object that names the file: {"$file": "file_…"} in the input of a step.
type References map[string]*expr.File

// Pointers returns the JSON pointers in order.
func (r References) Pointers() []string { return slices.Sorted(maps.Keys(r)) }

// IDs returns the ids of the files, each once.
func (r References) IDs() []string {
	var ids []string
	for _, f := range r {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// maxFiles limits the files that a definition, or the pins of a workflow, refer to.
const maxFiles = 100

// fileMember is in every JSON text that names a file.
var fileMember = []byte(`"` + expr.FileKey + `"`)

// fileNamed returns the id of the file that an object names, or false. A reference may
// have further members.
func fileNamed(object map[string]any) (string, bool) {
	id, ok := object[expr.FileKey].(string)
	return id, ok && uid.Valid(uid.File, id)
}

// NamedFiles returns the ids of the files that the inputs of steps name, by JSON pointer.
func (d Definition) NamedFiles() map[string]string {
	named := map[string]string{}
	nameFiles(d.Steps, "/steps", named)
	return named
}

func nameFiles(steps []Step, at string, named map[string]string) {
	for i, step := range steps {
		here := at + "/" + strconv.Itoa(i)
		if bytes.Contains(step.With, fileMember) {
			if input, err := decodeInput(step.With); err == nil {
				nameFilesIn(input, here+"/with", named)
			}
		}
		nameFiles(step.Steps, here+"/steps", named)
	}
}

func nameFilesIn(value any, at string, named map[string]string) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			nameFilesIn(item, at+"/"+strconv.Itoa(i), named)
		}
	case map[string]any:
		if id, ok := fileNamed(v); ok && len(v) == 1 {
			named[at] = id
			return
		}
		for key, item := range v {
			nameFilesIn(item, at+jsonpointer.Of(key), named)
		}
	}
}

// resolveFiles finds the files that a definition names, and reports those that do not
// exist.
func (s *Service) resolveFiles(ctx context.Context, workspaceID string, d *Definition) ([]Problem, error) {
	d.Files = nil
	named := d.NamedFiles()
	if len(named) == 0 {
		return nil, nil
	}
	var problems []Problem
	d.Files = make(References, len(named))
	found := map[string]*expr.File{}
	for _, pointer := range slices.Sorted(maps.Keys(named)) {
		id := named[pointer]
		f, known := found[id]
		if !known && len(found) == maxFiles {
			return append(problems, Problem{Pointer: pointer, Message: "a workflow refers to at most " + strconv.Itoa(maxFiles) + " files"}), nil
		}
		if !known {
			stored, err := s.store.File(ctx, workspaceID, id, clock.Now())
			if err != nil {
				return nil, err
			}
			if stored != nil {
				f = stored.Value()
			}
			found[id] = f
		}
		if d.Files[pointer] = f; f == nil {
			problems = append(problems, Problem{Pointer: pointer, Message: noFile(id)})
			d.Files[pointer] = expr.NewFile(expr.File{ID: id}) // there is only one problem with it
		}
	}
	return problems, nil
}

func noFile(id string) string { return "there is no file " + strconv.Quote(id) }

// place replaces the objects inside an input, which is at a JSON pointer, with the files
// that they name.
func (r References) place(input map[string]any, at string) {
	for pointer, f := range r {
		rest, inside := cutPointer(pointer, at)
		if !inside {
			continue
		}
		path := jsonpointer.Split(rest)
		placeFile(input, path, f)
	}
}

// cutPointer returns the part of a pointer below another one.
func cutPointer(pointer, at string) (string, bool) {
	if len(pointer) <= len(at) || pointer[:len(at)] != at || pointer[len(at)] != '/' {
		return "", false
	}
	return pointer[len(at):], true
}

func placeFile(in any, path []string, f *expr.File) {
	last := len(path) == 1
	switch in := in.(type) {
	case map[string]any:
		if last {
			in[path[0]] = f
			return
		}
		placeFile(in[path[0]], path[1:], f)
	case []any:
		i, err := strconv.Atoi(path[0])
		switch {
		case err != nil || i < 0 || i >= len(in):
		case last:
			in[i] = f
		default:
			placeFile(in[i], path[1:], f)
		}
	}
}
