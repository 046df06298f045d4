package openapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/suggest"
)

func (b *builder) addAnswer() {
	if b.operation.Method == http.MethodHead {
		b.response = integration.ResponseNone
		return
	}
	content := b.answerContent()
	if len(content) == 0 {
		if b.operation.Method == http.MethodGet {
			b.note(b.operation.at, "the document does not describe the answer, so its body is not read: set response if it has one")
		}
		b.response = integration.ResponseNone
		return
	}
	for _, media := range content {
		if isJSON(media.name) || strings.Contains(media.name, "*") && b.isJSONAnswer(media) {
			if base := baseType(media.name); base != "application/json" && isExact(media.name) {
				b.accept(base)
			}
			return
		}
	}
	first := content[0]
	base := baseType(first.name)
	switch {
	case strings.HasSuffix(base, "/xml") || strings.HasSuffix(base, "+xml") && base != "image/svg+xml":
		b.response = integration.ResponseXML
	case strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "json") || strings.HasSuffix(base, "yaml"):
		b.response = integration.ResponseText
	default:
		b.response = integration.ResponseFile
	}
	if isExact(first.name) {
		b.accept(base)
	}
}

func (b *builder) accept(media string) {
	if !slices.ContainsFunc(b.headers, func(m member) bool { return strings.EqualFold(m.name, "Accept") }) {
		b.headers.set("Accept", media)
	}
}

// isJSONAnswer reports whether an answer of any media type is described as something other
// than the bytes of a file.
func (b *builder) isJSONAnswer(media *node) bool {
	s, err := b.readSchema([]*node{media.get("schema")})
	return err == nil && len(s.types) > 0 && s.inputType() != "string"
}

func (b *builder) answerContent() []*node {
	var best *node
	for _, one := range b.operation.at.get("responses").members() {
		if strings.HasPrefix(one.name, "2") && (best == nil || one.name < best.name) {
			best = one
		}
	}
	if best == nil {
		best = b.operation.at.get("responses").get("default")
	}
	return firstOf(b.document.resolve(best).get("content").members())
}

// obviousTests are the last segments of paths that return who has authenticated.
func obviousTests() []string {
	return []string{"me", "whoami", "self", "current_user", "currentuser", "user", "account", "profile"}
}

// test returns the request that tests connections: an operation that the options name or
// that is obvious, or else one that only looks whether the service rejects the credential.
func (c *converter) test() (object, error) {
	if name := c.options.Test; name != "" {
		i := slices.IndexFunc(c.operations, func(o converted) bool { return o.Name == name || o.ID == name })
		switch {
		case i < 0:
			var known []string
			for _, o := range c.operations {
				known = append(known, o.Name)
			}
			return nil, &OptionError{"test", fmt.Sprintf("the manifest has no operation %q%s", name, suggest.Hint(name, known))}
		case !c.operations[i].plain:
			return nil, &OptionError{"test", fmt.Sprintf("%s cannot test connections: it must be a GET that returns JSON and needs no input", c.operations[i].Name)}
		}
		return object{{"path", c.operations[i].path}}, nil
	}
	for _, o := range c.operations {
		segments := strings.Split(strings.Trim(o.path, "/"), "/")
		last := strings.ReplaceAll(strings.ToLower(segments[len(segments)-1]), "-", "_")
		if o.plain && slices.Contains(obviousTests(), last) && len(c.security(o.Operation)) > 0 {
			c.note(o.at, "connections are tested with this operation: name another one as the test if it does not require the credential")
			return object{{"path", o.path}}, nil
		}
	}
	c.note(c.document.root, "no operation obviously tests a connection, so the test only checks that the service does not reject the credential at its base URL (401 or 403): name an operation as the test, a GET that needs no input")
	return object{
		{"path", "/"},
		{"errors", []any{object{{"when", "status != 401 && status != 403 && status != 429 && status < 500"}, {"kind", integration.NoError}}}},
	}, nil
}
