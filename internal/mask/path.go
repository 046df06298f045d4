package mask

import (
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Path selects values inside a JSON value: the names of members, from the outside in.
// A list is passed through: the names after it apply to each of its elements.
type Path []string

const maxPath = 200

// ParsePath parses a path such as body.access_token.
func ParsePath(text string) (Path, error) {
	if len(text) > maxPath {
		return nil, fmt.Errorf("must have at most %d characters", maxPath)
	}
	path := Path(strings.Split(text, "."))
	for _, name := range path {
		if name == "" || strings.TrimSpace(name) != name || strings.ContainsAny(name, "[]{}$") {
			return nil, fmt.Errorf("must be names separated by dots, such as body.access_token")
		}
	}
	return path, nil
}

// Values returns the texts, numbers and booleans that the paths select, also those
// inside of lists and objects.
func Values(value any, paths []Path) []string {
	var out []string
	for _, path := range paths {
		path.visit(value, func(selected any) any {
			out = appendLeaves(out, selected)
			return selected
		})
	}
	return out
}

// Hide returns a copy of a value in which everything that the paths select is replaced,
// whatever its length. Null stays null.
func Hide(value any, paths []Path) any {
	for _, path := range paths {
		value = path.visit(value, func(selected any) any {
			if selected == nil {
				return nil
			}
			return Replacement
		})
	}
	return value
}

// visit returns a copy of a value in which the selected ones are replaced.
func (p Path) visit(value any, replace func(any) any) any {
	switch v := value.(type) {
	case []any:
		if len(p) == 0 {
			break
		}
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = p.visit(element, replace)
		}
		return out
	case map[string]any:
		if len(p) == 0 {
			break
		}
		out := make(map[string]any, len(v))
		for name, member := range v {
			if out[name] = member; name == p[0] {
				out[name] = p[1:].visit(member, replace)
			}
		}
		return out
	}
	if len(p) > 0 {
		return value
	}
	return replace(value)
}

func appendLeaves(out []string, value any) []string {
	switch v := value.(type) {
	case nil:
		return out
	case string:
		return append(out, v)
	case []any:
		for _, element := range v {
			out = appendLeaves(out, element)
		}
		return out
	case map[string]any:
		for _, member := range v {
			out = appendLeaves(out, member)
		}
		return out
	}
	text, err := strictjson.Encode(value)
	if err != nil {
		return out
	}
	return append(out, string(text))
}
