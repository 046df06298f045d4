package openapi

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
)

// Limits on the inputs of an operation.
const (
	maxDepth   = 5   // of objects and lists in each other
	maxInputs  = 200 // with the members of objects
	maxEnum    = 200
	maxPattern = 500
)

// patternSteps is the cost of a pattern beside that of other parts of a schema: it is
// compiled for each value that it is compared with.
const patternSteps = 200

// memberName is the name of a member that an object in an input can have.
var memberName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// input returns the input for a value, without a name. The files of forms are inputs of the
// type file; elsewhere, bytes are text.
func (c *converter) input(of []*node, depth int, files bool) (integration.Input, *schema, error) {
	s, err := c.readSchema(of)
	if err != nil {
		return integration.Input{}, nil, err
	}
	out := integration.Input{Type: s.inputType(), Help: plain(s.about, map[bool]int{true: maxHelp, false: maxInnerHelp}[depth == 0])}
	c.count++
	switch {
	case files && s.isFile():
		out.Type = "file"
		return out, s, nil
	case s.alternatives:
		c.note(of[0], "a value can have several forms: its input takes any "+map[bool]string{true: "object", false: "value"}[out.Type == "object"])
	case out.Type == "list":
		if err := c.setItems(&out, s, depth, files); err != nil {
			return out, nil, err
		}
	case out.Type == "object":
		if err := c.setProperties(&out, of[0], s, depth); err != nil {
			return out, nil, err
		}
	}
	if err := c.setLimits(&out, of[0], s); err != nil {
		return out, nil, err
	}
	if out.Type == "any" {
		out.Help = strings.TrimSpace(out.Help + " " + s.forms())
	}
	c.setEnum(&out, of[0], s)
	return out, s, nil
}

// isFile reports whether a text is the bytes of a file.
func (s *schema) isFile() bool {
	isBytes := s.format == "binary" || s.media != "" && s.encoding == "" && !strings.HasPrefix(s.media, "text/") && !isJSON(s.media)
	return isBytes && (len(s.types) == 0 || slices.Equal(s.types, []string{"string"}))
}

func (s *schema) inputType() string {
	types := slices.Clone(s.types)
	slices.Sort(types)
	switch types = slices.Compact(types); {
	case slices.Equal(types, []string{"integer", "number"}):
		return "number"
	case len(types) != 1:
		return "any"
	case s.alternatives && types[0] != "object":
		return "any"
	}
	switch types[0] {
	case "array":
		return "list"
	case "string":
		if s.format == "date-time" && s.values() == nil {
			return "time"
		}
		return "string"
	case "integer", "number", "boolean", "object":
		return types[0]
	}
	return "any"
}

func (c *converter) setItems(out *integration.Input, s *schema, depth int, files bool) error {
	items := integration.Input{Type: "any"}
	if depth <= maxDepth && s.items != nil && c.count < maxInputs {
		var err error
		if items, _, err = c.input([]*node{s.items}, depth+1, files); err != nil {
			return err
		}
		items.Help = ""
	}
	out.Items, out.Min, out.Max = &items, s.fewest, s.most
	return nil
}

// setProperties adds the members of an object, unless the input takes any object.
func (c *converter) setProperties(out *integration.Input, at *node, s *schema, depth int) error {
	switch {
	case len(s.members) == 0:
		return nil
	case depth >= maxDepth || c.count+len(s.members) > maxInputs:
		c.note(at, "has too many members, or too deep ones, for a form: its input takes any object")
		return nil
	}
	var members []integration.Input
	for _, member := range s.members {
		if !memberName.MatchString(member.name) {
			c.note(member.schemas[0], "inputs cannot have a member of this name: the input takes any object")
			return nil
		}
		in, inner, err := c.input(member.schemas, depth+1, false)
		if err != nil {
			return err
		}
		if inner.readOnly {
			continue
		}
		in.Name, in.Title = member.name, cmp.Or(title(member.name), member.name)
		in.Required = s.required[member.name]
		c.setSamples(&in, member.schemas[0], inner)
		members = append(members, in)
	}
	if s.further != nil && (s.further.kind == kindObject || s.further.isTrue()) {
		c.note(at, "an object can have further members, which its input does not offer")
	}
	out.Properties = members
	return nil
}

func (c *converter) setLimits(out *integration.Input, at *node, s *schema) error {
	switch out.Type {
	case "integer", "number":
		out.Min, out.Max = s.lowest, s.highest
	case "string":
		if s.values() == nil && s.pattern != "" {
			if err := c.step(patternSteps); err != nil {
				return err
			}
			out.Pattern = c.usablePattern(at, s.pattern)
		}
		out.Help = strings.TrimSpace(out.Help + " " + s.length())
		out.Format = map[string]string{"email": "email", "uri": "url", "url": "url", "html": "html", "markdown": "markdown"}[s.format]
	}
	return nil
}

// forms says what a value can be that has several forms.
func (s *schema) forms() string {
	nouns := map[string]string{
		"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false", "object": "an object", "array": "a list",
	}
	var out []string
	for _, one := range s.types {
		if noun := nouns[one]; noun != "" && !slices.Contains(out, noun) {
			out = append(out, noun)
		}
	}
	if len(out) < 2 {
		return ""
	}
	text := strings.Join(out[:len(out)-1], ", ") + " or " + out[len(out)-1] + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// length says in words how long a text is, because inputs have no limits for it.
func (s *schema) length() string {
	switch {
	case s.shortest == nil && s.longest == nil, s.values() != nil:
		return ""
	case s.longest == nil && *s.shortest > 1:
		return fmt.Sprintf("At least %.0f characters.", *s.shortest)
	case s.longest != nil && (s.shortest == nil || *s.shortest <= 1):
		return fmt.Sprintf("At most %.0f characters.", *s.longest)
	case s.longest != nil:
		return fmt.Sprintf("%.0f to %.0f characters.", *s.shortest, *s.longest)
	}
	return ""
}

// usablePattern returns a regular expression, or "" if Go does not have one like it.
func (c *converter) usablePattern(at *node, pattern string) string {
	usable := len(pattern) <= maxPattern && !isExpression(pattern) && isClean(pattern)
	if usable {
		_, err := regexp.Compile(pattern)
		usable = err == nil
	}
	if !usable {
		c.note(at, "the pattern is left out: it is too long, or has something that regular expressions of manifests do not have")
		return ""
	}
	return pattern
}

func (c *converter) setEnum(out *integration.Input, at *node, s *schema) {
	var values []any
	if given := len(s.values()); given > maxEnum {
		c.note(at, fmt.Sprintf("the %d values to choose from are left out: they are too many", given))
		return
	}
	for _, one := range s.values() {
		if one.isLarge() {
			c.note(at, "the values to choose from are left out: one of them is too long")
			return
		}
		value := one.json()
		switch {
		case one.kind == kindNull:
			continue
		case one.hasExpression() || one.kind == kindText && !isClean(one.text):
			c.note(at, "the values to choose from are left out: one of them has ${{ or a control character")
			return
		case slices.ContainsFunc(values, func(other any) bool { return reflect.DeepEqual(value, other) }):
			continue
		case out.Problem(value) != "":
			c.note(at, fmt.Sprintf("the values to choose from are left out: one of them does not fit: it %s", clip(out.Problem(value), 100)))
			return
		}
		values = append(values, value)
	}
	out.Enum = values
}

// setSamples sets the example of an input, and says in its help what the service assumes
// without it. A default that the manifest had would always be sent, also beside another
// parameter that excludes this one, so only required inputs have theirs.
func (c *converter) setSamples(out *integration.Input, at *node, s *schema) {
	if s.deprecated {
		out.Advanced = true
	}
	if value, ok := c.sample(out, at, s.standard); ok {
		if out.Required {
			out.Required, out.Default = false, value
		} else if text := plain(fmt.Sprint(value), 40); s.standard.kind < kindList && text != "" {
			out.Help = strings.TrimSpace(out.Help + " Default: " + text + ".")
		}
	}
	if value, ok := c.sample(out, at, s.example); ok && out.Enum == nil && s.example.kind != kindObject {
		out.Example = value
	}
	if out.Type == "string" && out.Example == nil && s.format == "date" && out.Problem("2026-01-31") == "" {
		out.Example = "2026-01-31"
	}
}

// maxSample is the longest default, example or value to choose, in bytes.
const maxSample = 300

func (c *converter) sample(of *integration.Input, at, given *node) (any, bool) {
	if given == nil || given.kind == kindNull || of.Type == "file" {
		return nil, false
	}
	var value any
	isLarge := given.isLarge()
	if !isLarge {
		value = given.json()
	}
	if isLarge || given.hasExpression() || given.kind == kindText && !isClean(given.text) || of.Problem(value) != "" {
		if given == at.get("default") {
			c.note(given, "the default is left out: it does not fit, is too long, or has ${{ or a control character")
		}
		return nil, false
	}
	return value, true
}
