package openapi

import (
	"errors"
	"slices"
)

// Limits on what one schema is made of. They end the reading of schemas that refer to each
// other in circles, or that combine others exponentially.
const (
	maxSchemaDepth = 24
	maxSchemaParts = 400
	maxMember      = 200 // bytes of a name
)

var errTooComplex = errors.New("is too complex: it combines too many schemas, or refers to itself")

// schema is what a schema of a document says, with the schemas that it refers to and
// combines.
type schema struct {
	types    []string // of JSON, without null
	format   string
	pattern  string
	title    string
	about    string
	encoding string // contentEncoding
	media    string // contentMediaType
	enum     []*node
	constant *node
	lowest   *float64
	highest  *float64
	shortest *float64 // text
	longest  *float64
	fewest   *float64 // items
	most     *float64
	items    *node
	members  []schemaMember
	required map[string]bool
	demanded []*node // the names that are required
	// further is what other members of an object are, nil if nothing is said about them.
	further    *node
	readOnly   bool
	deprecated bool
	standard   *node // the default
	example    *node
	// alternatives is set if values can have several forms, of which no single one is known.
	alternatives bool

	later bool // than OpenAPI 3.0
	parts int
	index map[string]int // of members
}

func newSchema(later bool) *schema {
	return &schema{later: later, required: map[string]bool{}, index: map[string]int{}}
}

// schemaMember is a member of an object. Several schemas can be about it.
type schemaMember struct {
	name    string
	schemas []*node
}

func (c *converter) readSchema(of []*node) (*schema, error) {
	s := newSchema(c.document.later)
	for _, n := range of {
		if err := c.collect(s, n, 0); err != nil {
			return nil, err
		}
	}
	s.inferType()
	s.addDemanded()
	return s, nil
}

// addDemanded adds members that are required, but not described.
func (s *schema) addDemanded() {
	if len(s.members) == 0 {
		return
	}
	for _, one := range s.demanded {
		if _, isKnown := s.index[one.string()]; !isKnown {
			s.addMember(&node{kind: kindObject, name: one.string(), parent: one.parent})
		}
	}
}

// collect adds what a schema says. What is closer to the value replaces what it refers to.
func (c *converter) collect(s *schema, n *node, depth int) error {
	if n == nil || n.kind != kindObject {
		return nil // true or false, or missing
	}
	s.parts++
	if err := c.step(1 + partsOf(n)); err != nil {
		return err
	}
	if depth > maxSchemaDepth || s.parts > maxSchemaParts {
		return errTooComplex
	}
	if ref := n.get("$ref"); ref != nil && ref.kind == kindText {
		target, problem := c.document.follow(n)
		if problem != "" {
			return errors.New(problem)
		}
		if err := c.collect(s, target, depth+1); err != nil || !s.later {
			return err
		}
	}
	for _, part := range n.get("allOf").list() {
		if err := c.collect(s, part, depth+1); err != nil {
			return err
		}
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if err := c.collectAlternatives(s, n.get(keyword).list(), depth); err != nil {
			return err
		}
	}
	s.add(n)
	return nil
}

func partsOf(n *node) int {
	parts := len(n.get("properties").members())
	for _, keyword := range []string{"required", "enum", "type", "allOf", "oneOf", "anyOf"} {
		parts += len(n.get(keyword).list())
	}
	return parts
}

// values returns the only values of the schema, nil if there are others.
func (s *schema) values() []*node {
	if s.constant != nil {
		return []*node{s.constant}
	}
	return s.enum
}

// add adds the keywords of a schema itself.
func (s *schema) add(n *node) {
	s.addType(n.get("type"))
	for into, keyword := range map[*string]string{
		&s.format: "format", &s.pattern: "pattern", &s.title: "title", &s.about: "description", &s.encoding: "contentEncoding", &s.media: "contentMediaType",
	} {
		if text := n.get(keyword).string(); text != "" {
			*into = text
		}
	}
	for into, keyword := range map[**float64]string{
		&s.lowest: "minimum", &s.highest: "maximum", &s.shortest: "minLength", &s.longest: "maxLength", &s.fewest: "minItems", &s.most: "maxItems",
	} {
		if number := n.get(keyword).number(); number != nil {
			*into = number
		}
	}
	s.addExclusive(n)
	for into, keyword := range map[**node]string{&s.items: "items", &s.further: "additionalProperties", &s.standard: "default", &s.example: "example", &s.constant: "const"} {
		if value := n.get(keyword); value != nil {
			*into = value
		}
	}
	if list := n.get("examples").list(); len(list) > 0 && s.example == nil {
		s.example = list[0]
	}
	if list := n.get("enum").list(); list != nil {
		s.enum = list
	}
	s.readOnly = s.readOnly || n.get("readOnly").isTrue()
	s.deprecated = s.deprecated || n.get("deprecated").isTrue()
	for _, one := range n.get("required").list() {
		if name := one.string(); len(name) <= maxMember && !s.required[name] {
			s.required[name] = true
			s.demanded = append(s.demanded, one)
		}
	}
	for _, member := range n.get("properties").members() {
		s.addMember(member)
	}
	if n.get("patternProperties") != nil {
		s.further = n.get("patternProperties")
	}
}

func (s *schema) addMember(member *node) {
	i, found := s.index[member.name]
	if !found {
		s.index[member.name] = len(s.members)
		s.members = append(s.members, schemaMember{member.name, []*node{member}})
		return
	}
	if !slices.Contains(s.members[i].schemas, member) {
		s.members[i].schemas = append(s.members[i].schemas, member)
	}
}

// addType adds types. A list of them is new in OpenAPI 3.1.
func (s *schema) addType(of *node) {
	types := []*node{of}
	if of != nil && of.kind == kindList {
		types = of.items
	}
	var out []string
	for _, one := range types {
		if text := one.string(); text != "" && text != "null" {
			out = append(out, text)
		}
	}
	if out != nil {
		s.types = out
	}
}

// addExclusive adds limits that are not values themselves: numbers in OpenAPI 3.1, and
// booleans beside the limit before. Of a number with a fraction, the limit counts as
// allowed, and the service decides.
func (s *schema) addExclusive(n *node) {
	for _, limit := range []struct {
		keyword string
		into    **float64
		by      float64
	}{{"exclusiveMinimum", &s.lowest, 1}, {"exclusiveMaximum", &s.highest, -1}} {
		given := n.get(limit.keyword)
		value := given.number()
		if given.isTrue() {
			value = *limit.into
		}
		if value == nil {
			continue
		}
		next := *value
		if slices.Contains(s.types, "integer") {
			next += limit.by
		}
		*limit.into = &next
	}
}

// inferType finds the type of a schema that does not say it.
func (s *schema) inferType() {
	if len(s.types) > 0 || s.alternatives {
		return
	}
	switch {
	case s.members != nil || s.further != nil && s.further.kind == kindObject:
		s.types = []string{"object"}
	case s.items != nil:
		s.types = []string{"array"}
	case s.pattern != "" || s.format == "date-time" || s.format == "binary":
		s.types = []string{"string"}
	}
	for _, value := range s.values() {
		if s.types != nil {
			break
		}
		switch value.kind {
		case kindText:
			s.types = []string{"string"}
		case kindBoolean:
			s.types = []string{"boolean"}
		case kindNumber:
			s.types = []string{"number"}
		}
	}
}
