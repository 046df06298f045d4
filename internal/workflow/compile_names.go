package workflow

import (
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
)

// checkInput checks the references in the input of a step.
func (c *compiler) checkInput(at string, compiled *CompiledStep, refs expr.Refs, sc scope) {
	if spec := compiled.Action.Spec; spec.Stores {
		var secrets, links []expr.Ref
		refs.Secrets, secrets = splitGuarded(refs.Secrets, spec.Guarded)
		refs.Links, links = splitGuarded(refs.Links, spec.Guarded)
		c.rejectRefs(at, "secret", secrets, spec.Name+" stores its input in plain text")
		c.rejectRefs(at, "link", links, spec.Name+" stores its input in plain text")
	}
	compiled.Secrets, compiled.Links = mergeNames(compiled.Secrets, refs.Secrets), mergeNames(nil, refs.Links)
	c.links = c.links || len(refs.Links) > 0
	c.checkLinks(at, refs.Links, sc)
	refs.Links = nil
	c.checkRefs(at, refs, sc)
}

// rejectSecrets reports every secret and returns the other references.
func (c *compiler) rejectSecrets(at string, refs expr.Refs, why string) expr.Refs {
	c.rejectRefs(at, "secret", refs.Secrets, why)
	refs.Secrets = nil
	return refs
}

func (c *compiler) rejectRefs(at, kind string, refs []expr.Ref, why string) {
	for _, ref := range refs {
		c.report(at+ref.Pointer, "use the "+kind+" in the step that needs it", "a %s cannot be used here: %s", kind, why)
	}
}

// splitGuarded separates the references inside the given fields from the others.
func splitGuarded(refs []expr.Ref, fields []string) (inside, others []expr.Ref) {
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

// checkNames reports references to names that are not known.
func (c *compiler) checkNames(kind string, refs []expr.Ref, known []string) {
	for _, ref := range refs {
		if !slices.Contains(known, ref.Name) {
			c.report(ref.Pointer, didYouMean(ref.Name, known), "there is no %s %q", kind, ref.Name)
		}
	}
}

// prefixPointers returns the references with pointers from the document root.
func prefixPointers(at string, refs []expr.Ref) []expr.Ref {
	out := slices.Clone(refs)
	for i := range out {
		out[i].Pointer = at + out[i].Pointer
	}
	return out
}

// mergeNames adds the names of the references and returns them sorted and unique.
func mergeNames(names []string, refs []expr.Ref) []string {
	names = slices.Clone(names)
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
