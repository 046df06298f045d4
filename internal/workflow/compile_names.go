package workflow

import (
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
)

// checkInput checks what the input of a step refers to.
func (c *compiler) checkInput(at string, planned *PlannedStep, refs expr.Refs, lv level) {
	if spec := planned.Action.Spec; spec.Stores {
		var secrets, links []expr.Ref
		refs.Secrets, secrets = guard(refs.Secrets, spec.Guarded)
		refs.Links, links = guard(refs.Links, spec.Guarded)
		c.refuse(at, "secret", secrets, spec.Name+" keeps its input in the open")
		c.refuse(at, "link", links, spec.Name+" keeps its input in the open")
	}
	planned.Secrets, planned.Links = union(planned.Secrets, refs.Secrets), union(nil, refs.Links)
	c.links = c.links || len(refs.Links) > 0
	c.checkLinks(at, refs.Links, lv)
	refs.Links = nil
	c.checkRefs(at, refs, lv)
}

// refuseSecrets reports every secret and returns the rest of the references.
func (c *compiler) refuseSecrets(at string, refs expr.Refs, why string) expr.Refs {
	c.refuse(at, "secret", refs.Secrets, why)
	refs.Secrets = nil
	return refs
}

func (c *compiler) refuse(at, kind string, refs []expr.Ref, why string) {
	for _, ref := range refs {
		c.report(at+ref.Pointer, "refer to the "+kind+" in the step that needs it", "a %s cannot be used here: %s", kind, why)
	}
}

// guard tells the references inside some fields of an input from the others.
func guard(refs []expr.Ref, fields []string) (inside, others []expr.Ref) {
	for _, ref := range refs {
		field, _, _ := strings.Cut(strings.TrimPrefix(ref.Pointer, "/"), "/")
		if slices.Contains(fields, field) {
			inside = append(inside, ref)
		} else {
			others = append(others, ref)
		}
	}
	return inside, others
}

// checkNames reports references to what does not exist.
func (c *compiler) checkNames(kind string, refs []expr.Ref, known []string) {
	for _, ref := range refs {
		if !slices.Contains(known, ref.Name) {
			c.report(ref.Pointer, didYouMean(ref.Name, known), "there is no %s %q", kind, ref.Name)
		}
	}
}

// below returns the references with pointers from the top.
func below(at string, refs []expr.Ref) []expr.Ref {
	out := slices.Clone(refs)
	for i := range out {
		out[i].Pointer = at + out[i].Pointer
	}
	return out
}

// union adds the names in references to a list of names: sorted, each once.
func union(names []string, refs []expr.Ref) []string {
	names = slices.Clone(names)
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
