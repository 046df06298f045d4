package openapi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// object is an object of a manifest. Its members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// set adds a member, unless its value is empty.
func (o *object) set(name string, value any) {
	switch v := value.(type) {
	case nil:
		return
	case string:
		if v == "" {
			return
		}
	case bool:
		if !v {
			return
		}
	case *float64:
		if v == nil {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	case object:
		if len(v) == 0 {
			return
		}
	}
	*o = append(*o, member{name, value})
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) { return o.encode() }

func (o object) encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := strictjson.Encode(m.name)
		if err != nil {
			return nil, err
		}
		value, err := strictjson.Encode(m.value)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", m.name, err)
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func inputObject(in *integration.Input) object {
	out := object{{"type", in.Type}}
	out.set("title", in.Title)
	out.set("help", in.Help)
	out.set("required", in.Required)
	out.set("advanced", in.Advanced)
	out.set("default", in.Default)
	out.set("example", in.Example)
	out.set("enum", in.Enum)
	out.set("pattern", in.Pattern)
	out.set("format", in.Format)
	out.set("min", in.Min)
	out.set("max", in.Max)
	if in.Items != nil {
		out.set("items", inputObject(in.Items))
	}
	var properties object
	for i := range in.Properties {
		properties.set(in.Properties[i].Name, inputObject(&in.Properties[i]))
	}
	out.set("properties", properties)
	return out
}

// write returns the manifest, which package integration accepts.
func (c *converter) write() ([]byte, error) {
	connection := object{}
	connection.set("fields", c.base.fields)
	connection.set("auth", c.auth)
	connection.set("hosts", []string{c.base.host})
	test, err := c.test()
	if err != nil {
		return nil, err
	}
	connection.set("test", test)
	connection.set("learn", object{{"label", c.base.label(c.name)}})
	var operations object
	for _, o := range c.operations {
		operations.set(o.Name, o.manifest)
	}
	out := object{
		{"id", c.id}, {"name", c.name}, {"category", cmp.Or(c.options.Category, "development")},
		{"docs", c.docs()}, {"base_url", c.base.text}, {"connection", connection}, {"operations", operations},
	}
	encoded, err := out.encode()
	if err != nil {
		return nil, err
	}
	text, err := strictyaml.Encode(encoded)
	if err != nil {
		return nil, err
	}
	if len(text) > integration.MaxManifest {
		return nil, tooLarge(len(c.operations))
	}
	if _, err := integration.Parse(text, func(string) (*integration.Integration, bool) { return nil, false }); err != nil {
		if problems := integration.AsErrors(err); len(problems) > 0 {
			problems[0].Line, problems[0].Column = 0, 0 // of the manifest, which nobody sees
			return nil, c.document.errorf(c.document.root, "the manifest of this document is not valid: %s", problems[0])
		}
		return nil, errors.New("the manifest is not valid")
	}
	return text, nil
}

func (c *converter) docs() string {
	root := c.document.root
	for _, at := range []*node{
		root.get("externalDocs").get("url"), root.get("info").get("contact").get("url"), root.get("info").get("termsOfService"),
	} {
		text := at.string()
		u, err := url.Parse(text)
		if err == nil && u.Scheme == "https" && u.User == nil && u.Fragment == "" && u.RawQuery == "" && isHostName(u.Host) && isClean(text) && !isExpression(text) {
			return text
		}
	}
	return "https://" + c.base.example
}
