package store

import "github.com/stepmill/stepmill/internal/run"

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
	// lockMembers: who is in a workspace, and who is invited. Then come the rows of
	// users, which whatever is done to a user touches before all else.
	lockMembers LockKind = "members"
	// lockWorkflow: held by a start, shared, and by a change and a deletion: no run
	// of a workflow appears that its deletion did not see, nor one that began
	// before it was paused and is seen after.
	lockWorkflow LockKind = "workflow"
	// lockShare: the places that runs with one key share.
	lockShare LockKind = "share"
	// LockWorkspace is about what is in order in a workspace, which is its events
	// by their numbers, and what belongs to all of it: the set of its webhooks, the
	// number of its runs under way. It is taken at the end of a unit.
	LockWorkspace LockKind = "workspace"
)

// hold keeps every other unit away from a run until this one has ended, and
// answers false when the run is not under way any more. Who writes about a run
// holds it, or has its lease. Of a family the runs above are held first.
func hold(u *unit, runID string) (bool, error) {
	n, err := u.Exec(`UPDATE run_queue SET epoch = epoch WHERE run_id = $1`, runID)
	return n == 1, err
}

// holdAbove holds the run whose step waits for the end of this one, and the
// places that it shares, in the order in which all do: the end of a run reaches
// both.
func holdAbove(u *unit, of run.Run) error {
	if of.Parent != nil && of.Parent.Waits {
		if _, err := hold(u, of.Parent.RunID); err != nil {
			return err
		}
	}
	return lockPlaces(u, of)
}

// lockPlaces lets one unit at a time give away the places that runs share.
func lockPlaces(u *unit, of run.Run) error {
	if of.ShareKey == "" {
		return nil
	}
	return u.Lock(Lock{Kind: lockShare, Key: of.WorkflowID + "/" + of.ShareKey})
}

// lockWorkspace lets one unit at a time end with something about the workspace:
// events are numbered in the order of their commits, and find the webhooks of
// that moment.
func lockWorkspace(u *unit, workspaceID string) error {
	return u.Lock(Lock{Kind: LockWorkspace, Key: workspaceID})
}
