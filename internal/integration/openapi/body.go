package openapi

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
)

func isJSON(media string) bool {
	base := baseType(media)
	return base == "application/json" || base == "text/json" || strings.HasPrefix(base, "application/") && strings.HasSuffix(base, "+json")
}

// baseType returns a media type without its parameters.
func baseType(media string) string {
	base, _, err := mime.ParseMediaType(media)
	if err != nil {
		base, _, _ = strings.Cut(strings.ToLower(media), ";")
	}
	return strings.TrimSpace(base)
}

// isExact reports whether a media type is one that a header can have, and no range.
func isExact(media string) bool {
	base := baseType(media)
	kind, sub, found := strings.Cut(base, "/")
	return found && kind != "" && sub != "" && !strings.ContainsAny(base, "*${} ") && isClean(base) && len(base) <= 100
}

// bodyRank orders the media types of a body: what has a form of its own comes first.
func bodyRank(media string) int {
	switch base := baseType(media); {
	case base == "application/json":
		return 0
	case isJSON(base):
		return 1
	case base == "multipart/form-data":
		return 2
	case base == "application/x-www-form-urlencoded":
		return 3
	case strings.HasPrefix(base, "multipart/"):
		return 9
	}
	return 5
}

func (b *builder) addBody() error {
	body := b.document.resolve(b.operation.at.get("requestBody"))
	content := slices.Clone(firstOf(body.get("content").members()))
	if len(content) == 0 {
		return nil
	}
	required := body.get("required").isTrue()
	if b.operation.Method == http.MethodGet || b.operation.Method == http.MethodHead {
		if required {
			return leftOut{body, "it needs a body, which " + b.operation.Method + " does not have"}
		}
		b.note(body, "the body is left out: "+b.operation.Method+" has none")
		return nil
	}
	slices.SortStableFunc(content, func(x, y *node) int { return bodyRank(x.name) - bodyRank(y.name) })
	media := b.document.resolve(content[0])
	switch kind := content[0].name; bodyRank(kind) {
	case 0, 1:
		return b.addObjectBody("json", kind, media, required)
	case 2:
		return b.addObjectBody("multipart", kind, media, required)
	case 3:
		return b.addObjectBody("form", kind, media, required)
	case 9:
		return leftOut{content[0], "a body cannot have the type " + clip(plain(kind, 100), 60)}
	default:
		return b.addRawBody(kind, media, required, len(content))
	}
}

// addRawBody adds a body that is a file or text.
func (b *builder) addRawBody(kind string, media *node, required bool, kinds int) error {
	s, err := b.readSchema([]*node{media.get("schema")})
	if err != nil {
		return err
	}
	base := baseType(kind)
	isText := strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "/xml") || strings.HasSuffix(base, "+xml") || strings.HasSuffix(base, "yaml")
	in := integration.Input{Type: "file", Required: required, Help: plain(s.about, maxHelp)}
	name := "file"
	switch {
	case strings.Contains(base, "*") && len(s.types) > 0 && !s.isFile() && s.inputType() != "string":
		return b.addObjectBody("json", "application/json", media, required)
	case isText && !s.isFile():
		in.Type, in.Format, name = "string", "multiline", "body"
		b.note(media, "the body is one text: its parts are not described by inputs of their own")
	}
	if kinds == 1 && isExact(kind) {
		b.headers.set("Content-Type", base)
	}
	b.body = object{{"raw", "${{ input." + b.addInput(in, name, "body") + " }}"}}
	return nil
}

// addObjectBody adds a body with an input for each of its members, or for the whole.
func (b *builder) addObjectBody(how, kind string, media *node, required bool) error {
	if how == "json" && baseType(kind) != "application/json" {
		if !isExact(kind) {
			return leftOut{media, "its media type is not valid"}
		}
		b.headers.set("Content-Type", baseType(kind))
	}
	schemaAt := media.get("schema")
	s, err := b.readSchema([]*node{schemaAt})
	if err != nil {
		return err
	}
	unusable := slices.ContainsFunc(s.members, func(m schemaMember) bool {
		return m.name == "" || len(m.name) > maxMember || isDirective(m.name) || isExpression(m.name) || !isClean(m.name)
	})
	switch {
	case s.alternatives, s.inputType() != "object", len(s.members) == 0, unusable, len(s.members)+b.count > maxInputs:
		return b.addWholeBody(how, media, s, required)
	}
	if s.further != nil && (s.further.kind == kindObject || s.further.isTrue()) {
		b.note(media, "the body can have further members, for which there are no inputs")
	}
	var members object
	for _, m := range s.members {
		if err := b.addMember(&members, m, how, media, s); err != nil {
			return err
		}
	}
	if len(members) > 0 {
		b.body = object{{how, members}}
	}
	return nil
}

func (b *builder) addMember(members *object, m schemaMember, how string, media *node, of *schema) error {
	in, s, err := b.converter.input(m.schemas, 0, how == "multipart")
	if err != nil || s.readOnly {
		return err
	}
	in.Required = of.required[m.name]
	if value := s.constant; value != nil && in.Required && value.kind < kindList && value.kind != kindNull && in.Enum != nil {
		*members = append(*members, member{m.name, value.json()}) // also false and ""
		return nil
	}
	b.setSamples(&in, m.schemas[0], s)
	input := "input." + b.addInput(in, m.name, "body")
	members.set(m.name, "${{ "+field(input, in, how, media.get("encoding").get(m.name))+" }}")
	return nil
}

func field(input string, in integration.Input, how string, encoding *node) string {
	switch how {
	case "form":
		style := encoding.get("style").string()
		explode := true
		if given := encoding.get("explode"); given != nil {
			explode = given.isTrue()
		}
		return expression(input, in, style, explode, isJSON(encoding.get("contentType").string()))
	case "multipart":
		if in.Type == "object" || in.Type == "any" {
			return optional(input, `{"value": `+input+`, "type": "application/json"}`)
		}
		if in.Type == "list" && slices.Contains([]string{"object", "list", "any"}, in.Items.Type) {
			return optional(input, "map("+input+`, {"value": #, "type": "application/json"})`)
		}
	}
	return input
}

func (b *builder) addWholeBody(how string, media *node, s *schema, required bool) error {
	schemaAt := media.get("schema")
	in := integration.Input{Type: "any"}
	if schemaAt != nil {
		var err error
		if in, _, err = b.converter.input([]*node{schemaAt}, 0, false); err != nil {
			return err
		}
	}
	if how != "json" {
		in = integration.Input{Type: "object", Help: in.Help}
		b.note(media, fmt.Sprintf("the fields of the form have no inputs of their own: the input takes an object (%s)", how))
	}
	in.Required = required || len(s.required) > 0
	b.setSamples(&in, media, s)
	b.body = object{{how, "${{ input." + b.addInput(in, "body", "body") + " }}"}}
	return nil
}
