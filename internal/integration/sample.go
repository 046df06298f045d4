package integration

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkSamples checks the values that a manifest gives for an input: its default and its
// example, and the type of those to choose from.
func (p *parser) checkSamples(pointer string, in *Input) {
	for name, value := range map[string]any{"default": in.Default, "example": in.Example} {
		if value == nil {
			continue
		}
		if problem := in.Problem(value); problem != "" {
			p.failf(at(pointer, name), "does not fit its own input: it %s", problem)
		}
	}
	for i, value := range in.Enum {
		if problem := in.typeProblem(value); problem != "" {
			p.failf(at(pointer, "enum", strconv.Itoa(i)), "does not fit its own input: it %s", problem)
		}
	}
}

// Problem returns why a value does not fit the input, in words that follow its name, or "".
func (in *Input) Problem(value any) string {
	if problem := in.typeProblem(value); problem != "" {
		return problem
	}
	if in.Enum != nil && !slices.ContainsFunc(in.Enum, func(one any) bool { return reflect.DeepEqual(one, value) }) {
		return "must be one of " + strings.Join(texts(in.Enum), ", ")
	}
	number, isNumber := toFloat(value)
	text, isText := value.(string)
	pattern, err := regexp.Compile(in.Pattern)
	switch {
	case isNumber && in.Min != nil && number < *in.Min:
		return fmt.Sprintf("must be at least %v", *in.Min)
	case isNumber && in.Max != nil && number > *in.Max:
		return fmt.Sprintf("must be at most %v", *in.Max)
	case isText && err == nil && !pattern.MatchString(text):
		return "must match " + in.Pattern
	}
	return in.innerProblem(value)
}

// typeProblem returns why a value does not have the type of the input, or "". Any value
// fits a type that does not exist, which is reported elsewhere.
func (in *Input) typeProblem(value any) string {
	fits, noun := true, ""
	switch in.Type {
	case "string":
		_, fits = value.(string)
		noun = "text"
	case "integer":
		_, fits = value.(int)
		noun = "a whole number"
	case "number":
		_, fits = toFloat(value)
		noun = "a number"
	case "boolean":
		_, fits = value.(bool)
		noun = "true or false"
	case "time":
		text, _ := value.(string)
		_, err := time.Parse(time.RFC3339, text)
		fits, noun = err == nil, "a time such as 2026-01-31T09:00:00Z"
	case "object":
		_, fits = value.(map[string]any)
		noun = "an object"
	case "list":
		_, fits = value.([]any)
		noun = "a list"
	case "file":
		fits, noun = value == nil, "left out: a manifest has no files"
	}
	if fits {
		return ""
	}
	return "must be " + noun
}

// innerProblem returns why an element or a member does not fit, or "".
func (in *Input) innerProblem(value any) string {
	list, _ := value.([]any)
	for i, item := range list {
		if in.Items == nil {
			break
		}
		if problem := in.Items.Problem(item); problem != "" {
			return fmt.Sprintf("has an element %d that %s", i+1, problem)
		}
	}
	object, _ := value.(map[string]any)
	if in.Properties == nil {
		return ""
	}
	for _, member := range in.Properties {
		given, ok := object[member.Name]
		switch problem := member.Problem(given); {
		case !ok && member.Required && object != nil:
			return "lacks " + member.Name
		case ok && problem != "":
			return fmt.Sprintf("has a member %s that %s", member.Name, problem)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.ContainsFunc(in.Properties, func(p Input) bool { return p.Name == name }) {
			return "has the member " + name + ", which the input does not have"
		}
	}
	return ""
}

func toFloat(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func texts(values []any) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = fmt.Sprint(value)
	}
	return out
}
