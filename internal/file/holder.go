package file

import "strconv"

// Holder names what refers to a file: the file exists as long as it has a holder. What
// belongs to something larger begins with its id and a slash.
type Holder string

// HeldByRun is a run: its payload and the values of its steps.
func HeldByRun(runID string) Holder { return Holder(runID) }

// HeldByVersion is the definition of a version of a workflow.
func HeldByVersion(workflowID string, version int) Holder {
	return Holder(workflowID + "/" + strconv.Itoa(version))
}

// HeldByPins are the pinned outputs of a workflow.
func HeldByPins(workflowID string) Holder { return Holder(workflowID + "/pinned") }

// HeldByRequest is a recorded call of a webhook trigger.
func HeldByRequest(workflowID, triggerID, requestID string) Holder {
	return Holder(workflowID + "/" + triggerID + "/" + requestID)
}

// HeldByRow is a row of a table.
func HeldByRow(tableID, rowID string) Holder { return Holder(tableID + "/" + rowID) }

// HeldByKey is a key of a workflow or, without one, of the workspace.
func HeldByKey(workspaceID, workflowID, name string) Holder {
	return Holder(workspaceID + "/" + workflowID + "/" + name)
}

// HoldersOf returns the range of the holders that belong to a workflow or a table: from
// the first one up to, and without, the end.
func HoldersOf(owner string) (first, end string) { return owner + "/", owner + "0" }
