package workflow

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/paging"
)

// Recent is how many of its latest runs the activity of a workflow has.
const Recent = 20

// Activity is a workflow at a glance.
type Activity struct {
	Triggers []TriggerHead
	// NextAt is when the first of the triggers that go by time fires; nil when none
	// does.
	NextAt *time.Time
	// Runs are the latest, newest first.
	Runs []RecentRun
}

// TriggerHead tells triggers apart.
type TriggerHead struct {
	ID   string
	Type string
}

// RecentRun is a run as a list of workflows shows it.
type RecentRun struct {
	ID         string
	Status     string
	Draft      bool
	StartedAt  time.Time
	FinishedAt *time.Time
}

// SuccessRate is the share of the runs that succeeded among the finished ones;
// nil when there are none. Cancelled runs and those of drafts do not count.
func (a Activity) SuccessRate() *float64 {
	finished, succeeded := 0, 0
	for _, r := range a.Runs {
		switch {
		case r.Draft:
		case r.Status == "succeeded":
			finished++
			succeeded++
		case r.Status == "failed":
			finished++
		}
	}
	if finished == 0 {
		return nil
	}
	rate := float64(succeeded) / float64(finished)
	return &rate
}

// ActiveItem is a workflow in a list together with what it did lately.
type ActiveItem struct {
	Item
	Activity Activity
}

// ListActive lists the workflows of a workspace like List, each with its
// activity.
func (s *Service) ListActive(ctx context.Context, actor auth.Actor, state State, page paging.Request) (paging.Page[ActiveItem], error) {
	found, err := s.List(ctx, actor, state, page)
	if err != nil {
		return paging.Page[ActiveItem]{}, err
	}
	ids := make([]string, len(found.Items))
	for i, item := range found.Items {
		ids[i] = item.ID
	}
	activities, err := s.store.Activities(ctx, actor.Workspace.ID, ids)
	out := paging.Page[ActiveItem]{Items: make([]ActiveItem, len(ids)), Next: found.Next}
	for i, item := range found.Items {
		out.Items[i] = ActiveItem{Item: item, Activity: activities[item.ID]}
	}
	return out, err
}
