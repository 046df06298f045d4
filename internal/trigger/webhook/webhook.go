// Package webhook declares the trigger type webhook, which fires when its URL is
// called. It owns how calls are verified, read, recorded and answered.
package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

const (
	// defaultRate is how many calls per minute are accepted unless the trigger sets
	// rate.
	defaultRate = 6_000
	maxRate     = 1_000_000
)

// Type declares the type. Calls come in through Hooks.
func Type() trigger.Type {
	return trigger.Type{
		Format: workflow.TriggerType{
			Name: workflow.WebhookTrigger, Summary: "A call to the trigger's own URL.",
			Members: members, Definitions: schema{"verify": verifySchema()}, Compile: compile,
		},
		HasURL: true,
	}
}

// Config is a compiled webhook trigger.
type Config struct {
	Methods      []string
	Verification *Verification  // nil: calls are not verified
	DedupeKey    *expr.Template // nil: every call starts a run
	Respond      workflow.Respond
	PerMinute    int
}

func methods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

func compile(c *workflow.TriggerCompiler, t workflow.Trigger) any {
	config := &Config{Methods: t.Methods, Respond: t.Respond, PerMinute: int(t.Rate)}
	if t.Methods != nil && len(t.Methods) == 0 {
		c.Report("/methods", "omit it to accept POST", "must name at least one method")
	}
	c.CheckUnique("/methods", t.Methods)
	for i, method := range t.Methods {
		if !slices.Contains(methods(), method) {
			c.Report(fmt.Sprintf("/methods/%d", i), "", "must be one of %s", strings.Join(methods(), ", "))
		}
	}
	if t.Methods == nil {
		config.Methods = []string{http.MethodPost}
	}
	if t.Respond != "" && t.Respond != workflow.RespondNow && t.Respond != workflow.RespondResult {
		c.Report("/respond", "", "must be now or result")
	}
	if t.Rate == 0 {
		config.PerMinute = defaultRate
	}
	if t.Rate > maxRate {
		c.Report("/rate", "", "must be at most %d", maxRate)
	}
	if t.Dedupe != "" {
		config.DedupeKey = c.StoredTemplate("/dedupe", t.Dedupe)
	}
	if t.Verify != nil {
		config.Verification = compileVerify(c, *t.Verify)
	}
	return config
}

type schema = map[string]any

func members(*action.Catalog) schema {
	return schema{
		"methods": schema{
			"title": "Methods", "description": "The HTTP methods that the URL accepts. Default POST.",
			"type": "array", "minItems": 1, "uniqueItems": true, "items": schema{"type": "string", "enum": methods()},
		},
		"verify": schema{"$ref": "#/$defs/verify"},
		"dedupe": schema{
			"title": "Dedupe", "description": "Text with expressions that read trigger. A call with a key that was already seen in the last 24 hours starts no run.",
			"type": "string", "minLength": 1,
		},
		"respond": schema{
			"title": "Respond", "description": "When the caller gets the response.",
			"type": "string", "enum": []workflow.Respond{workflow.RespondNow, workflow.RespondResult}, "default": workflow.RespondNow,
			"enumDescriptions": []string{"Once the run has started, with its id.", "Once the run has ended, with the result of the workflow."},
		},
		"rate": schema{
			"title": "Rate", "description": "How many calls are accepted per minute.",
			"type": "integer", "minimum": 1, "maximum": maxRate, "default": defaultRate,
		},
	}
}
