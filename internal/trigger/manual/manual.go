// Package manual declares the trigger type manual: runs start with a request to the
// API, which is possible for any workflow.
package manual

import (
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Type declares the type. Nothing fires it.
func Type() trigger.Type {
	return trigger.Type{
		Format:     workflow.TriggerType{Name: workflow.ManualTrigger, Summary: "A request to the API."},
		NeverFires: true,
	}
}
