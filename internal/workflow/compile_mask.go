package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/mask"
)

// maxMasks is the maximum number of paths in the mask of a step.
const maxMasks = 20

// compileMask compiles the paths whose values are masked.
func (c *compiler) compileMask(at string, compiled *CompiledStep) {
	if len(compiled.Mask) > maxMasks {
		c.report(at+"/mask", "", "must have at most %d paths", maxMasks)
	}
	members := outputMembers(compiled.Action.Spec.Output)
	for i, text := range compiled.Mask {
		place := fmt.Sprintf("%s/mask/%d", at, i)
		path, err := mask.ParsePath(text)
		switch {
		case err != nil:
			c.report(place, "", "%s", err)
		case members != nil && !slices.Contains(members, path[0]):
			c.report(place, didYouMean(path[0], members), "the output of %s has no %q", compiled.Uses, path[0])
		default:
			compiled.Masked = append(compiled.Masked, path)
		}
	}
	if compiled.Masked != nil {
		c.masks[compiled.ID] = compiled.Masked
	}
}

// outputMembers returns the members that the schema of an output names, or nil if the
// output can have any.
func outputMembers(schema string) []string {
	var output struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal([]byte(schema), &output) != nil || output.Properties == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(output.Properties))
}
