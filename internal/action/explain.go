package action

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// explain converts a schema validation error to readable problems, one per
// location. It skips deferred values.
func explain(err error, deferred func(pointer string) bool) []Problem {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		if err != nil {
			return []Problem{{Message: err.Error()}}
		}
		return nil
	}
	if len(invalid.Causes) > 0 {
		var out []Problem
		for _, cause := range invalid.Causes {
			out = append(out, explain(cause, deferred)...)
		}
		return out
	}
	if deferred(jsonpointer.Of(invalid.InstanceLocation...)) {
		return nil
	}
	return explainLeaf(invalid)
}

func explainLeaf(e *jsonschema.ValidationError) []Problem {
	at := jsonpointer.Of(e.InstanceLocation...)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		var out []Problem
		for _, name := range k.Missing {
			out = append(out, Problem{Pointer: at + jsonpointer.Of(name), Message: "is required"})
		}
		return out
	case *kind.AdditionalProperties:
		var out []Problem
		for _, name := range k.Properties {
			out = append(out, Problem{Pointer: at + jsonpointer.Of(name), Message: fmt.Sprintf("unknown field %q", name)})
		}
		return out
	case *kind.Type:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("must be %s, not %s", strings.Join(k.Want, " or "), k.Got)}}
	case *kind.Enum:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("must be one of %v", k.Want)}}
	default:
		return []Problem{{Pointer: at, Message: e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}}
	}
}
