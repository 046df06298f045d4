package run

import (
	"context"
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// Change is a step as a commit wrote it, or a log line.
type Change struct {
	Step     *Step     // without input and output
	Attempts []Attempt // earlier attempts of the step
	Line     *LogLine
	// After is the position after the change. Complete reports whether a client can
	// resume from it: a commit is only divisible between its log lines.
	After    Position
	Complete bool
}

// Changes are the changes of a run since a position, in order.
type Changes struct {
	// Detail is the current state of the run, without payload and steps.
	Detail
	List []Change
	// More reports whether the list was cut at its limit.
	More bool
}

// changesAtOnce is the number of changes that are read at a time.
const changesAtOnce = 1000

// End is the position of a client that has seen the end of a run.
const End = "end"

// Feed follows one run. It is not safe for concurrent use.
type Feed struct {
	service *Service
	actor   auth.Actor
	runID   string
	at      Position
	open    map[string]Step // open steps by path
	seenEnd bool
	// Changes receives a value when the run has changed since the last one was
	// received.
	Changes <-chan struct{}
}

// Follow follows a run until the context ends. lastSeen is the position to resume
// from: a Position, End, or empty for the beginning.
func (s *Service) Follow(ctx context.Context, actor auth.Actor, runID, lastSeen string) (*Feed, error) {
	if !uid.Valid(uid.Run, runID) {
		return nil, notFound(runID)
	}
	f := &Feed{service: s, actor: actor, runID: runID, at: Beginning(), open: map[string]Step{}}
	heard, stop := s.changes.Subscribe(runID)
	context.AfterFunc(ctx, stop)
	f.Changes = heard
	found, err := s.store.RunProgress(ctx, actor.Workspace.ID, runID)
	progress, err := fault.Found(found, err, notFound, runID)
	if err != nil {
		return nil, err
	}
	switch at, ok := ParsePosition(lastSeen); {
	case lastSeen == "":
	case lastSeen == End && progress.Status != Running:
		f.seenEnd = true
	case !ok && lastSeen != End:
		return nil, fault.New(fault.InvalidRequest, "Last-Event-ID: is not an id that the event stream of a run has sent")
	case ok && at.Rev <= progress.Rev:
		f.at = at
	default:
		// The run has fewer commits than before, because a backup was restored. Send
		// everything again.
	}
	for _, step := range progress.Open {
		f.open[step.Path] = step
	}
	return f, nil
}

// SeenEnd reports whether there is nothing left to follow.
func (f *Feed) SeenEnd() bool { return f.seenEnd }

// Next reads the changes since the last call, together with the open steps of the
// run. It returns nil if the run was deleted with its workflow.
func (f *Feed) Next(ctx context.Context) (*Changes, error) {
	changes, err := f.service.store.RunChanges(ctx, f.actor.Workspace.ID, f.runID, f.at, changesAtOnce)
	if err != nil || changes == nil {
		return nil, err
	}
	for _, change := range changes.List {
		f.at = change.After
		switch {
		case change.Step == nil:
		case change.Step.Status.Settled():
			delete(f.open, change.Step.Path)
		default:
			f.open[change.Step.Path] = *change.Step
		}
	}
	if changes.Status == Running {
		changes.Queued = changes.Queued || f.service.queued(f.runID)
		changes.Steps = slices.SortedFunc(maps.Values(f.open), func(a, b Step) int { return a.Seq - b.Seq })
	}
	return changes, nil
}

// Progress is the progress of a run.
type Progress struct {
	Status Status
	Rev    int    // last commit that wrote a step, -1 before the first
	Open   []Step // open steps, without input
}

// Merge merges sorted log lines and sorted steps into the order of changes, and
// returns at most limit of them. Each list must be complete or longer than the
// limit.
func Merge(lines, steps []Change, limit int) (merged []Change, more bool) {
	for len(lines)+len(steps) > 0 && len(merged) <= limit {
		from := &steps
		if len(steps) == 0 || len(lines) > 0 && lines[0].After.Rev <= steps[0].After.Rev {
			from = &lines
		}
		merged = append(merged, (*from)[0])
		*from = (*from)[1:]
	}
	for i := range merged {
		last := i == len(merged)-1 || merged[i+1].After.Rev != merged[i].After.Rev
		merged[i].Complete = last || merged[i].Line != nil
		if last && merged[i].Step != nil {
			merged[i].After = AfterCommit(merged[i].After.Rev)
		}
	}
	if more = len(merged) > limit; more {
		merged = merged[:limit]
	}
	return merged, more
}

// ChangedStep returns a step as a change.
func ChangedStep(step Step, attempts []Attempt) Change {
	return Change{Step: &step, Attempts: attempts, After: afterStep(step.Rev, step.Seq)}
}

// WrittenLine returns a log line, the nth of its commit, as a change.
func WrittenLine(line LogLine, rev, n int) Change {
	return Change{Line: &line, After: AfterLine(rev, n)}
}
