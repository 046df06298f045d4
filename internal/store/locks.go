package store

// Lock names something that units of work on one at a time, where they run side
// by side. A unit that takes several takes them in the order of this list, and
// the one of a workspace last of all: two units never wait for each other.
type Lock struct {
	Kind LockKind
	Key  string
	// Shared lets in others that share it too.
	Shared bool
}

// LockKind says what a lock is about.
type LockKind string

const (
	// lockOnce: the request with an idempotency key.
	lockOnce LockKind = "once"
	// lockWorkflow: held by a start, shared, and by a deletion: no run of a
	// workflow appears that its deletion did not see.
	lockWorkflow LockKind = "workflow"
	// lockShare: the places that runs with one key share.
	lockShare LockKind = "share"
	// LockWorkspace: what is in order in a workspace, which is its events by
	// their numbers, and what belongs to all of it: the set of its webhooks, the
	// number of its runs under way. It is taken at the end of a unit.
	LockWorkspace LockKind = "workspace"
)
