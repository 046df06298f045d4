package workflow

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	if step.Connection != "" && spec.Integration != "" {
		c.integrations[at+"/connection"] = needed{step.Connection, spec.Integration}
	}
	switch {
	case step.Connection != "" && !spec.Connects && spec.Name != "":
		c.report(at+"/connection", "", "%s does not use a connection", spec.Name)
	case step.Connection == "" && spec.Integration != "":
		c.report(at+"/connection", "name a connection of "+spec.Integration, "is required: %s needs a connection", spec.Name)
	case step.OnBrokenConnection != "" && step.Connection == "":
		c.report(at+"/on_broken_connection", "add connection", "has no effect without a connection")
	case step.OnBrokenConnection != "" && !slices.Contains([]OnBroken{WaitIfBroken, FailIfBroken}, step.OnBrokenConnection):
		c.report(at+"/on_broken_connection", "", "must be wait or fail")
	}
}

// Connection checks the connection of the trigger.
func (t *TriggerCompiler) Connection(pointer, name string) { t.c.checkConnection(t.at+pointer, name) }

// ConnectionOf checks the connection of a trigger that needs one of an integration.
func (t *TriggerCompiler) ConnectionOf(pointer, name, integration, of string) {
	if name == "" {
		t.Report(pointer, "name a connection of "+integration, "is required: %s needs a connection", of)
		return
	}
	t.c.checkConnection(t.at+pointer, name)
	t.c.integrations[t.at+pointer] = needed{name, integration}
}

// ConnectionSchema returns the JSON Schema of a member that names a connection.
func ConnectionSchema(description string) map[string]any {
	return node{"title": "Connection", "description": description, "type": "string", "pattern": connectionPattern.String()}
}

// checkConnections reports connections that do not exist.
func (c *compiler) checkConnections(known []ConnectionName) {
	names := make([]string, len(known))
	for i, one := range known {
		names[i] = one.Name
	}
	c.checkNames("connection", c.connections, names)
	for at, need := range c.integrations {
		for _, one := range known {
			if one.Name == need.connection && one.Integration != need.integration {
				c.report(at, "name a connection of "+need.integration, "%q is a connection of %s, but one of %s is needed", one.Name, cmp.Or(one.Integration, "another kind"), need.integration)
			}
		}
	}
}

// needed is a connection that has to belong to an integration.
type needed struct{ connection, integration string }

// checkAccess reports steps and triggers that are new or changed and use a connection
// that the caller may not use. Those that somebody else has saved stay as they are.
func (c *compiler) checkAccess(was, now Definition, known []ConnectionName) error {
	closed, present := map[string]bool{}, map[string]string{}
	for _, one := range known {
		present[one.Name] = one.Now
		if one.Closed {
			closed[one.Now] = true
		}
	}
	if !slices.ContainsFunc(c.connections, func(ref expr.Ref) bool { return closed[present[ref.Name]] }) {
		return nil
	}
	// The present name in place of an earlier one is not a change.
	diff, err := Compare(was.renameConnections(present), now.renameConnections(present))
	if err != nil {
		return err
	}
	at := now.connectionPointers()
	for _, step := range diff.Steps {
		if step.To != nil && closed[step.To.Connection] && (step.Edit == Added || slices.ContainsFunc(step.Fields, isOfStep)) {
			c.reportClosed(at.steps[step.ID])
		}
	}
	for _, trigger := range diff.Triggers {
		if trigger.To != nil && closed[trigger.To.Connection] {
			c.reportClosed(at.triggers[trigger.ID])
		}
	}
	return nil
}

// isOfStep reports whether a difference is one of the step itself, and not of its place
// among others or its id.
func isOfStep(f FieldDiff) bool {
	member, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
	return member != "needs" && member != "id"
}

func (c *compiler) reportClosed(at string) {
	c.report(at, "ask whoever created the connection, or an owner of the workspace, to open it", "this connection is not open to you")
}

// renameConnections returns the definition with other names for connections.
func (d Definition) renameConnections(names map[string]string) Definition {
	d.Triggers = slices.Clone(d.Triggers)
	for i := range d.Triggers {
		d.Triggers[i].Connection = cmp.Or(names[d.Triggers[i].Connection], d.Triggers[i].Connection)
	}
	d.Steps = renameStepConnections(d.Steps, names)
	return d
}

func renameStepConnections(steps []Step, names map[string]string) []Step {
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].Connection = cmp.Or(names[steps[i].Connection], steps[i].Connection)
		steps[i].Steps = renameStepConnections(steps[i].Steps, names)
	}
	return steps
}

// connectionPointers are the pointers of the connections of steps and triggers, by id.
type connectionPointers struct{ steps, triggers map[string]string }

func (d Definition) connectionPointers() connectionPointers {
	at := connectionPointers{map[string]string{}, map[string]string{}}
	for i, trigger := range d.Triggers {
		at.triggers[trigger.ID] = fmt.Sprintf("/triggers/%d/connection", i)
	}
	at.addSteps("/steps", d.Steps)
	return at
}

func (p connectionPointers) addSteps(at string, steps []Step) {
	for i, step := range steps {
		here := fmt.Sprintf("%s/%d", at, i)
		p.steps[step.ID] = here + "/connection"
		p.addSteps(here+"/steps", step.Steps)
	}
}
