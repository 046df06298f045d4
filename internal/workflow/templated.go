package workflow

import (
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// templated returns a function that reports whether the value at a pointer, or an
// enclosing value, is an expression and therefore known only at run time.
func templated(input map[string]any) func(pointer string) bool {
	found := map[string]bool{}
	markTemplates(input, "", found)
	return func(pointer string) bool {
		for {
			if found[pointer] {
				return true
			}
			cut := strings.LastIndexByte(pointer, '/')
			if cut < 0 {
				return false
			}
			pointer = pointer[:cut]
		}
	}
}

func markTemplates(value any, at string, found map[string]bool) {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "${{") {
			found[at] = true
		}
	case []any:
		for i, item := range v {
			markTemplates(item, fmt.Sprintf("%s/%d", at, i), found)
		}
	case map[string]any:
		for key, item := range v {
			markTemplates(item, at+jsonpointer.Of(key), found)
		}
	}
}
