// Package usage owns how much a workspace does: requests and runs by day,
// counted in memory and written in small batches, and how much it holds. The
// counts are for people to look at; nothing is decided by them, and a crash may
// lose those of the last seconds.
package usage

import (
	"context"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
)

// Day is what a workspace did on one day, in UTC.
type Day struct {
	Date          string // YYYY-MM-DD
	Requests      int64
	RunsStarted   int64
	RunsSucceeded int64
	RunsFailed    int64
	RunsCancelled int64
}

// Current is what a workspace holds now.
type Current struct {
	Workflows     int
	Webhooks      int
	APIKeys       int
	Secrets       int
	Variables     int
	VariableBytes int
	RunningRuns   int
}

// Key names the counts of one workspace and day.
type Key struct{ WorkspaceID, Date string }

// Store keeps counts.
type Store interface {
	AddUsage(ctx context.Context, counts map[Key]Day) error
	UsageDays(ctx context.Context, workspaceID, since string) ([]Day, error)
	UsageCurrent(ctx context.Context, workspaceID string) (Current, error)
}

// Service counts and reports.
type Service struct {
	store Store

	mu     sync.Mutex
	counts map[Key]Day
}

// NewService makes a service on a store.
func NewService(store Store) *Service { return &Service{store: store, counts: map[Key]Day{}} }

// Count adds to the counts of today.
func (s *Service) Count(workspaceID string, add func(*Day)) {
	key := Key{WorkspaceID: workspaceID, Date: clock.Now().Format(time.DateOnly)}
	s.mu.Lock()
	defer s.mu.Unlock()
	day := s.counts[key]
	add(&day)
	s.counts[key] = day
}

// Flush writes what was counted since the last time. What cannot be written
// is kept for the next time.
func (s *Service) Flush(ctx context.Context) error {
	s.mu.Lock()
	counts := s.counts
	s.counts = map[Key]Day{}
	s.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	err := s.store.AddUsage(ctx, counts)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key, day := range counts {
			s.counts[key] = s.counts[key].plus(day)
		}
	}
	return err
}

func (d Day) plus(o Day) Day {
	return Day{
		Date: d.Date, Requests: d.Requests + o.Requests, RunsStarted: d.RunsStarted + o.RunsStarted,
		RunsSucceeded: d.RunsSucceeded + o.RunsSucceeded, RunsFailed: d.RunsFailed + o.RunsFailed,
		RunsCancelled: d.RunsCancelled + o.RunsCancelled,
	}
}

// Report is the usage of a workspace.
type Report struct {
	Current Current
	Days    []Day
}

// Report reads the last days, newest first, and what the workspace holds. What
// was counted but not written yet is part of it.
func (s *Service) Report(ctx context.Context, actor auth.Actor, days int) (Report, error) {
	if err := s.Flush(ctx); err != nil {
		return Report{}, err
	}
	since := clock.Now().AddDate(0, 0, 1-days).Format(time.DateOnly)
	list, err := s.store.UsageDays(ctx, actor.Workspace.ID, since)
	if err != nil {
		return Report{}, err
	}
	current, err := s.store.UsageCurrent(ctx, actor.Workspace.ID)
	return Report{Current: current, Days: list}, err
}
