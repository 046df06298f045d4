package run

import (
	"context"
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// Change is a step as a commit left it, or a line that a step wrote to its log.
type Change struct {
	Step     *Step     // without what went in and came out
	Attempts []Attempt // of the step, earlier ones
	Line     *LogLine
	// After is the position after the change. Complete says that it is one to go
	// on from: a commit is not cut in two, save between the lines of its logs.
	After    Position
	Complete bool
}

// Changes are what happened to a run since a position, in order.
type Changes struct {
	// Detail is the run as it is now, without its payload and its steps.
	Detail
	List []Change
	// More says that the list was cut at its limit.
	More bool
}

// changesAtOnce is how many changes are read at a time.
const changesAtOnce = 1000

// End is what somebody has seen last who has seen the end of a run.
const End = "end"

// Feed follows one run. Its methods are for one goroutine.
type Feed struct {
	service *Service
	actor   auth.Actor
	runID   string
	at      Position
	open    map[string]Step // the steps that are open, by their paths
	seenEnd bool
	// News has an element when the run has changed since the last one was taken.
	News <-chan struct{}
}

// Follow begins to follow a run, for as long as the context lasts. The last
// thing seen before is a position, End, or empty for nothing.
func (s *Service) Follow(ctx context.Context, actor auth.Actor, runID, lastSeen string) (*Feed, error) {
	if !uid.Valid(uid.Run, runID) {
		return nil, notFound(runID)
	}
	f := &Feed{service: s, actor: actor, runID: runID, at: Beginning(), open: map[string]Step{}}
	heard, stop := s.news.Wait(runID)
	context.AfterFunc(ctx, stop)
	f.News = heard
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
		return nil, fault.New(fault.InvalidRequest, "Last-Event-ID: is not one that the stream of a run has sent")
	case ok && at.Rev <= progress.Rev:
		f.at = at
	default:
		// The run is not as far as it was: it was restored from a backup. It is
		// told from the beginning.
	}
	for _, step := range progress.Open {
		f.open[step.Path] = step
	}
	return f, nil
}

// SeenEnd tells that there is nothing left to follow.
func (f *Feed) SeenEnd() bool { return f.seenEnd }

// Next reads what happened since the last time. The run comes with the steps
// that are open. It answers nil when the run is gone, because its workflow was
// deleted.
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
		changes.Queued = changes.Queued || f.service.queue.Queued(f.runID)
		changes.Steps = slices.SortedFunc(maps.Values(f.open), func(a, b Step) int { return a.Seq - b.Seq })
	}
	return changes, nil
}

// Progress is how far a run has come.
type Progress struct {
	Status Status
	Rev    int    // of its last commit that wrote a step, -1 before the first
	Open   []Step // those that are open, without what went in
}

// Merge brings log lines and steps, each in their order, into the order of
// changes, at most limit of them. The lists must be complete, or longer than
// the limit.
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

// ChangedStep is the change that a step is.
func ChangedStep(step Step, attempts []Attempt) Change {
	return Change{Step: &step, Attempts: attempts, After: afterStep(step.Rev, step.Seq)}
}

// WrittenLine is the change that a line is; it is the nth of its commit.
func WrittenLine(line LogLine, rev, n int) Change {
	return Change{Line: &line, After: AfterLine(rev, n)}
}
