package expr

import (
	"sort"
	"strconv"

	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// FileKey is the member that names the file in the JSON form of a reference.
const FileKey = "$file"

// File is a reference to a stored file. In JSON it is an object with the member
// [FileKey], but decoding JSON never creates one: only the runtime does, so data from
// outside cannot refer to files. A File is immutable.
type File struct {
	ID     string
	Name   string
	Type   string
	Size   int64
	SHA256 string
	// List describes the items of a list file; nil for other files.
	List *FileList

	members map[string]any
}

// FileList describes a list that is stored as a file, one JSON value per line.
type FileList struct {
	Count int
	First []any // the first items
}

// NewFile returns a reference.
func NewFile(f File) *File {
	f.members = map[string]any{FileKey: f.ID, "name": f.Name, "type": f.Type, "size": int(f.Size), "sha256": f.SHA256}
	if f.List != nil {
		f.members["count"], f.members["first"] = f.List.Count, f.List.First
	}
	return &f
}

// MarshalJSON returns the reference as an object.
func (f *File) MarshalJSON() ([]byte, error) { return strictjson.Encode(f.members) }

// fileOf returns the reference whose JSON form an object is. It returns false if a
// member is missing or has another type, such as a size that a mask replaced.
func fileOf(object map[string]any) (*File, bool) {
	f := File{members: object}
	size, ok := object["size"].(int)
	if !ok {
		return nil, false
	}
	f.Size = int64(size)
	for name, into := range map[string]*string{FileKey: &f.ID, "name": &f.Name, "type": &f.Type, "sha256": &f.SHA256} {
		if *into, ok = object[name].(string); !ok {
			return nil, false
		}
	}
	if count, ok := object["count"].(int); ok {
		first, _ := object["first"].([]any)
		f.List = &FileList{Count: count, First: first}
	}
	return &f, true
}

// FilePointers returns the JSON pointers of the files inside a value, in order.
func FilePointers(v any) []string {
	var found []string
	eachFile(v, nil, func(at []string, _ *File) { found = append(found, jsonpointer.Of(at...)) })
	sort.Strings(found)
	return found
}

// Files returns the files inside a value.
func Files(v any) []*File {
	var found []*File
	eachFile(v, nil, func(_ []string, f *File) { found = append(found, f) })
	return found
}

func eachFile(v any, at []string, visit func(at []string, f *File)) {
	switch v := v.(type) {
	case *File:
		visit(at, v)
	case []any:
		for i, e := range v {
			eachFile(e, append(at, strconv.Itoa(i)), visit)
		}
	case map[string]any:
		for k, e := range v {
			eachFile(e, append(at, k), visit)
		}
	}
}

// FromJSONWithFiles is like [FromJSON] for data that the runtime stored: the objects
// at the given JSON pointers are references to files. A pointer to something else, such
// as a value that a mask replaced, is ignored.
func FromJSONWithFiles(data []byte, pointers []string) (any, error) {
	v, err := FromJSON(data)
	if err != nil {
		return nil, err
	}
	for _, pointer := range pointers {
		v = restoreFile(v, jsonpointer.Split(pointer))
	}
	return v, nil
}

// restoreFile replaces the object at a path inside v, which was just decoded.
func restoreFile(v any, at []string) any {
	if len(at) == 0 {
		if object, ok := v.(map[string]any); ok {
			if f, ok := fileOf(object); ok {
				return f
			}
		}
		return v
	}
	key := at[0]
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v[key]; ok {
			v[key] = restoreFile(v[key], at[1:])
		}
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(v) {
			v[i] = restoreFile(v[i], at[1:])
		}
	}
	return v
}

// CopyFiles returns a copy of v in which the objects that are the JSON form of a file at
// the same place in from are files too. It is for a value that was encoded, changed and
// decoded again.
func CopyFiles(v, from any) any {
	switch from := from.(type) {
	case *File:
		if object, ok := v.(map[string]any); ok && object[FileKey] == from.ID {
			if f, ok := fileOf(object); ok {
				return f
			}
		}
	case []any:
		list, ok := v.([]any)
		if !ok {
			return v
		}
		out := make([]any, len(list))
		for i, e := range list {
			if out[i] = e; i < len(from) {
				out[i] = CopyFiles(e, from[i])
			}
		}
		return out
	case map[string]any:
		object, ok := v.(map[string]any)
		if !ok {
			return v
		}
		out := make(map[string]any, len(object))
		for k, e := range object {
			out[k] = CopyFiles(e, from[k])
		}
		return out
	}
	return v
}
