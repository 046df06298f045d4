package action

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// explain converts a schema validation error to readable problems, one per
// location. It skips deferred values.
func (c *checked) explain(err error, deferred func(pointer string) bool) []Problem {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		if err != nil {
			return []Problem{{Message: err.Error()}}
		}
		return nil
	}
	if len(invalid.Causes) > 0 {
		var out []Problem
		// The validator visits the members of objects in random order.
		causes := slices.Clone(invalid.Causes)
		slices.SortStableFunc(causes, func(a, b *jsonschema.ValidationError) int {
			return slices.Compare(a.InstanceLocation, b.InstanceLocation)
		})
		for _, cause := range causes {
			out = append(out, c.explain(cause, deferred)...)
		}
		return out
	}
	if deferred(jsonpointer.Of(invalid.InstanceLocation...)) {
		return nil
	}
	return c.explainLeaf(invalid)
}

func (c *checked) explainLeaf(e *jsonschema.ValidationError) []Problem {
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
		for _, name := range slices.Sorted(slices.Values(k.Properties)) {
			out = append(out, Problem{Pointer: at + jsonpointer.Of(name), Message: fmt.Sprintf("unknown field %q", name)})
		}
		return out
	case *kind.Type:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("must be %s, not %s", strings.Join(k.Want, " or "), k.Got)}}
	case *kind.InvalidJsonValue:
		if _, isFile := k.Value.(*expr.File); isFile {
			return c.explainFile(at, e.SchemaURL)
		}
		return []Problem{{Pointer: at, Message: "is not JSON"}}
	case *kind.Format:
		if k.Want != FileFormat {
			return []Problem{{Pointer: at, Message: "must be a time with its offset, such as 2026-11-19T09:00:00+01:00"}}
		}
		return []Problem{{Pointer: at, Message: notFile(k.Got)}}
	case *kind.MinItems:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("needs at least %d, not %d", k.Want, k.Got)}}
	case *kind.MaxItems:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("can have at most %d, not %d", k.Want, k.Got)}}
	case *kind.MinLength:
		if k.Want == 1 {
			return []Problem{{Pointer: at, Message: "must not be empty"}}
		}
		return []Problem{{Pointer: at, Message: fmt.Sprintf("must have at least %d characters, not %d", k.Want, k.Got)}}
	case *kind.MaxLength:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("must have at most %d characters, not %d", k.Want, k.Got)}}
	case *kind.Minimum:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("must be at least %s", decimalText(k.Want))}}
	case *kind.Maximum:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("must be at most %s", decimalText(k.Want))}}
	case *kind.Enum:
		return []Problem{{Pointer: at, Message: fmt.Sprintf("must be one of %v", k.Want)}}
	default:
		return []Problem{{Pointer: at, Message: e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}}
	}
}

func decimalText(r *big.Rat) string {
	value, _ := r.Float64()
	return strconv.FormatFloat(value, 'f', -1, 64)
}
