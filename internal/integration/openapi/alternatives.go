package openapi

import "slices"

// collectAlternatives adds what several forms of a value have in common.
func (c *converter) collectAlternatives(s *schema, list []*node, depth int) error {
	list = slices.DeleteFunc(slices.Clone(list), func(n *node) bool {
		combines := onlyRequires(n)
		if combines {
			c.note(n.parent.parent, "only some combinations of the members are valid, which the inputs do not say: the service decides")
		}
		return n.get("type").string() == "null" || combines
	})
	if len(list) == 1 {
		return c.collect(s, list[0], depth+1)
	}
	var kinds []string
	var values []*node
	closed := true // every form lists its values
	for _, n := range list {
		one := newSchema(s.later)
		one.parts = s.parts
		if err := c.collect(one, n, depth+1); err != nil {
			return err
		}
		s.parts = one.parts
		one.inferType()
		kinds = append(kinds, one.types...)
		if len(one.types) == 0 {
			kinds = append(kinds, "string", "object") // anything
		}
		values = append(values, one.values()...)
		closed = closed && one.values() != nil && len(values) <= maxEnum
	}
	if len(list) == 0 {
		return nil
	}
	slices.Sort(kinds)
	if kinds = slices.Compact(kinds); s.types == nil {
		s.types = kinds
	}
	switch scalars := []string{"boolean", "integer", "number", "string"}; {
	case closed:
		s.enum = values
	case len(kinds) == 1 && slices.Contains(scalars, kinds[0]): // such as text in several formats
	default:
		s.alternatives = true
	}
	return nil
}

// onlyRequires reports whether one of several forms only says which members must be there.
func onlyRequires(n *node) bool {
	for _, keyword := range n.members() {
		if keyword.name != "required" && keyword.name != "title" && keyword.name != "description" {
			return false
		}
	}
	return n.get("required") != nil
}
