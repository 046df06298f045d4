// Package usage owns the usage statistics of workspaces: requests and runs per
// day, and the number of objects they have. Daily counts are collected in memory
// and written in batches. They are informational: no limit depends on them, and a
// crash may lose those of the last seconds.
package usage

import (
	"context"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
)

// Day is the usage of a workspace on one day, in UTC.
type Day struct {
	Date          string // YYYY-MM-DD
	Requests      int64
	RunsStarted   int64
	RunsSucceeded int64
	RunsFailed    int64
	RunsCancelled int64
}

// Current holds the current object counts of a workspace.
type Current struct {
	Workflows     int
	Webhooks      int
	APIKeys       int
	Secrets       int
	Variables     int
	VariableBytes int
	Connections   int
	RunningRuns   int
	Tables        int
	TableRows     int
	StateKeys     int
	StoredBytes   int // of all rows and keys
	Files         int64
	// StoredFileBytes is the size of all files. Equal files count once, and resumable
	// uploads with the size that they announced.
	StoredFileBytes int64
}

// Key identifies the counts of one workspace on one day.
type Key struct{ WorkspaceID, Date string }

// Store persists counts.
type Store interface {
	AddUsage(ctx context.Context, counts map[Key]Day) error
	UsageDays(ctx context.Context, workspaceID, since string) ([]Day, error)
	UsageCurrent(ctx context.Context, workspaceID string) (Current, error)
}

// Service counts usage and reports it.
type Service struct {
	store Store

	mu     sync.Mutex
	counts map[Key]Day
}

// NewService returns a service that uses the given store.
func NewService(store Store) *Service { return &Service{store: store, counts: map[Key]Day{}} }

// Count calls add with the counts of today.
func (s *Service) Count(workspaceID string, add func(*Day)) {
	key := Key{WorkspaceID: workspaceID, Date: clock.Now().Format(time.DateOnly)}
	s.mu.Lock()
	defer s.mu.Unlock()
	day := s.counts[key]
	add(&day)
	s.counts[key] = day
}

// Flush writes the counts collected since the last call. After an error, the next
// call writes them.
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

// Report returns the usage of the last days, newest first, and the current counts.
// It flushes first, so that it includes the latest counts.
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
