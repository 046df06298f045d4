package workflow

import (
	"slices"

	"github.com/stepmill/stepmill/internal/expr"
)

// checkInput checks what the input of a step refers to.
func (c *compiler) checkInput(at string, planned *PlannedStep, refs expr.Refs, lv level) {
	if spec := planned.Action.Spec; spec.Stores {
		refs = c.refuseSecrets(at, refs, spec.Name+" keeps its input in the open")
	}
	planned.Secrets = union(planned.Secrets, refs.Secrets)
	c.checkRefs(at, refs, lv)
}

// refuseSecrets reports every secret and returns the rest of the references.
func (c *compiler) refuseSecrets(at string, refs expr.Refs, why string) expr.Refs {
	for _, ref := range refs.Secrets {
		c.report(at+ref.Pointer, "refer to the secret in the step that needs it", "a secret cannot be used here: %s", why)
	}
	refs.Secrets = nil
	return refs
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
