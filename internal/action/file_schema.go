package action

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// FileFormat is the format of values that must be files, in the schema of an input. A
// value for which the schema states no type can be a file too.
const FileFormat = "file"

// errNotFile is returned for every value that reaches the check of the format: JSON
// Schema knows no files, so the validator rejects them earlier, and explainFile decides.
var errNotFile = errors.New("not a file")

// explainFile returns the problems with a file at a place whose schema has the given
// address.
func (c *checked) explainFile(at, address string) []Problem {
	_, pointer, _ := strings.Cut(address, "#")
	types := typesAt(c.document, pointer)
	if len(types) == 0 {
		return nil
	}
	return []Problem{{Pointer: at, Message: fmt.Sprintf("must be %s, not a file", strings.Join(types, " or "))}}
}

// typesAt returns the types that the schema at a JSON pointer in a document allows; none
// if it allows all.
func typesAt(document any, pointer string) []string {
	for _, key := range jsonpointer.Split(pointer) {
		object, _ := document.(map[string]any)
		document = object[key]
	}
	schema, _ := document.(map[string]any)
	switch types := schema["type"].(type) {
	case string:
		return []string{types}
	case []any:
		names := make([]string, len(types))
		for i, name := range types {
			names[i], _ = name.(string)
		}
		return names
	}
	return nil
}

// notFile explains that a value should be a file.
func notFile(v any) string {
	got := "a number"
	switch v.(type) {
	case nil:
		got = "null"
	case bool:
		got = "a boolean"
	case string:
		got = "text"
	case []any:
		got = "a list"
	case map[string]any:
		got = "an object"
	}
	return "expected a file, got " + got
}
