package database

// Lock identifies a resource that only one of several concurrent transactions may
// use at a time. A transaction acquires its locks in the order of the constants
// below, that of a workspace last, so that two transactions never deadlock.
type Lock struct {
	Kind LockKind
	Key  string
	// Shared admits other holders that share it too.
	Shared bool
}

// LockKind identifies the kind of resource.
type LockKind string

const (
	// LockIdempotencyKey guards a request with an idempotency key.
	LockIdempotencyKey LockKind = "idempotency_key"
	// LockMembers guards the members and invitations of a workspace. It comes
	// before the row of a user, which every change to the user touches first.
	LockMembers LockKind = "members"
	// LockWorkflow is shared by starts, and exclusive for a change or a deletion of
	// the workflow. A deletion sees every run, and no run that started before a
	// pause becomes visible after it.
	LockWorkflow LockKind = "workflow"
	// LockConnection is shared by changes that make an active workflow use a
	// connection, and exclusive for its deletion: an active workflow never loses its
	// connection. A transaction acquires several of them in the order of their keys.
	LockConnection LockKind = "connection"
	// LockConcurrency guards the slots of a concurrency key.
	LockConcurrency LockKind = "concurrency"
	// LockWorkspace guards the order of a workspace's events and its
	// workspace-wide state: its set of webhooks and its number of runs in flight.
	// It is acquired at the end of a transaction. Only the row of the workspace's
	// audit chain comes after it.
	LockWorkspace LockKind = "workspace"
)

// WorkspaceLock returns the lock of a workspace.
func WorkspaceLock(workspaceID string) Lock { return Lock{Kind: LockWorkspace, Key: workspaceID} }
