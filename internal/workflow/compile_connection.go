package workflow

import (
	"regexp"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

var connectionPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

const connectionRule = "must be the name of a connection: a letter a-z followed by a-z, 0-9, _ and -, at most 63 characters"

// checkConnection checks the connection of a step or a trigger. Whether it exists is
// checked when the workflow is saved.
func (c *compiler) checkConnection(at, name string) {
	if name == "" {
		return
	}
	if !connectionPattern.MatchString(name) {
		c.report(at, "", connectionRule)
		return
	}
	c.connections = append(c.connections, expr.Ref{Name: name, Pointer: at})
}

// checkStepConnection checks whether the action of a step can use a connection.
func (c *compiler) checkStepConnection(at string, step Step, spec action.Spec) {
	c.checkConnection(at+"/connection", step.Connection)
	switch {
	case step.Connection != "" && !spec.Connects && spec.Name != "":
		c.report(at+"/connection", "", "%s does not use a connection", spec.Name)
	case step.OnBrokenConnection != "" && step.Connection == "":
		c.report(at+"/on_broken_connection", "add connection", "has no effect without a connection")
	case step.OnBrokenConnection != "" && !slices.Contains([]OnBroken{WaitIfBroken, FailIfBroken}, step.OnBrokenConnection):
		c.report(at+"/on_broken_connection", "", "must be wait or fail")
	}
}

// Connection checks the connection of the trigger.
func (t *TriggerCompiler) Connection(pointer, name string) { t.c.checkConnection(t.at+pointer, name) }

// ConnectionSchema returns the JSON Schema of a member that names a connection.
func ConnectionSchema(description string) map[string]any {
	return node{"title": "Connection", "description": description, "type": "string", "pattern": connectionPattern.String()}
}
