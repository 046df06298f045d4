package workflow

import (
	"github.com/stepmill/stepmill/internal/auth"
)

// recordEdits adds audit entries for what people see of a workflow, apart from its state. A
// change of the layout alone is not recorded: it moves boxes on a canvas.
func (c *Change) recordEdits(actor auth.Actor, was Workflow) {
	w := c.Workflow
	if w.Name != was.Name {
		c.Entries = append(c.Entries, actor.AuditEntry("workflow.renamed", "workflow", w.ID, map[string]any{"name": w.Name, "previous_name": was.Name}))
	}
	details := map[string]any{"name": w.Name}
	var changed []string
	if c.NewVersion != nil {
		changed, details["version"] = append(changed, "definition"), w.Version
	} else if !sameText(w.Source, was.Source) {
		changed = append(changed, "text")
	}
	if !sameText(w.Description, was.Description) {
		changed = append(changed, "description")
	}
	if !samePins(w.Pinned, was.Pinned) {
		changed = append(changed, "pinned")
	}
	if changed == nil {
		return
	}
	details["changed"] = changed
	c.Entries = append(c.Entries, actor.AuditEntry("workflow.updated", "workflow", w.ID, details))
}

// recordRestore makes the entry of a new version say which one it restores.
func (c *Change) recordRestore(version int) {
	for i := range c.Entries {
		if e := &c.Entries[i]; e.Action == "workflow.updated" {
			e.Action, e.Details["restored_version"] = "workflow.restored", version
		}
	}
}
