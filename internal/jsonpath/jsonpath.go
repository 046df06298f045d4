// Package jsonpath has paths that select values inside of JSON.
package jsonpath

import (
	"fmt"
	"strings"
)

// Path is a path to values inside of JSON: names of members, and [EachItem] for all items of
// a list. As text it is data[].image.
type Path []string

// EachItem is the step from a list to its items.
const EachItem = "[]"

// Parse reads a path.
func Parse(text string) (Path, error) {
	var out Path
	for part := range strings.SplitSeq(text, ".") {
		name := strings.TrimRight(part, EachItem)
		lists := part[len(name):]
		isPath := lists == strings.Repeat(EachItem, len(lists)/len(EachItem)) && !strings.ContainsAny(name, EachItem)
		if !isPath || name == "" && (lists == "" || out != nil) {
			return nil, fmt.Errorf("%q is not a path such as data or items[].image", text)
		}
		if name != "" {
			out = append(out, name)
		}
		for range len(lists) / len(EachItem) {
			out = append(out, EachItem)
		}
	}
	return out, nil
}

// Replace replaces the values that the path selects inside of a value. It returns that value,
// or what replaces it.
func (p Path) Replace(value any, with func(any) any) any {
	if len(p) == 0 {
		return with(value)
	}
	switch v := value.(type) {
	case map[string]any:
		if member, ok := v[p[0]]; ok {
			v[p[0]] = p[1:].Replace(member, with)
		}
	case []any:
		if p[0] != EachItem {
			break
		}
		for i, item := range v {
			v[i] = p[1:].Replace(item, with)
		}
	}
	return value
}
