package workflow

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/paging"
)

// Recent is the number of latest runs in the activity of a workflow.
const Recent = 20

// Activity summarizes what a workflow does and did recently.
type Activity struct {
	Triggers []TriggerRef
	// NextAt is the time of day at which the next schedule or poll fires; nil when there
	// is none.
	NextAt *time.Time
	// Runs are the latest runs, newest first.
	Runs []RecentRun
}

// TriggerRef identifies a trigger.
type TriggerRef struct {
	ID   string
	Type string
}

// RecentRun is a run as shown in a list of workflows.
type RecentRun struct {
	ID         string
	Status     string
	Draft      bool
	StartedAt  time.Time
	FinishedAt *time.Time
}

// SuccessRate returns the share of finished runs that succeeded, or nil when
// there are none. Cancelled runs and runs of drafts do not count.
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

// ActiveItem is a workflow in a list with its recent activity.
type ActiveItem struct {
	Item
	Activity Activity
}

// ListActive lists the workflows of a workspace like List, each with its
// activity.
func (s *Service) ListActive(ctx context.Context, actor auth.Actor, filter Filter, page paging.Request) (paging.Page[ActiveItem], error) {
	found, err := s.List(ctx, actor, filter, page)
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
