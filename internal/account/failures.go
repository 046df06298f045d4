package account

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
)

const (
	// maxFailures is how many failed sign-ins of a user are recorded in
	// failureWindow, so that nobody can fill the audit log by guessing.
	maxFailures   = 10
	failureWindow = time.Hour
	// maxPendingFailures bounds the memory for failures that wait while the database is
	// unavailable.
	maxPendingFailures = 1000
	// maxFailureWorkspaces bounds in how many workspaces a failure is recorded.
	maxFailureWorkspaces = 50
)

type failure struct {
	userID string
	at     time.Time
	client ClientInfo
	// omittedUntil is set on the last failure that is recorded in its window.
	omittedUntil time.Time
}

// window counts the failures of a user since its start.
type window struct {
	start time.Time
	count int
}

// failures collects failed sign-ins until they are written. They are not written
// at once, because the response would then take longer if there is such a user.
type failures struct {
	mu      sync.Mutex
	windows map[string]window // by user
	pending []failure
}

func newFailures() *failures { return &failures{windows: map[string]window{}} }

// add records a failed sign-in unless the user has had too many.
func (f *failures) add(userID string, client ClientInfo, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.windows[userID]
	if now.Sub(w.start) >= failureWindow {
		w = window{start: now}
	}
	if w.count == maxFailures || len(f.pending) >= maxPendingFailures {
		return
	}
	w.count++
	f.windows[userID] = w
	failed := failure{userID: userID, at: now, client: client}
	if w.count == maxFailures {
		failed.omittedUntil = w.start.Add(failureWindow)
	}
	f.pending = append(f.pending, failed)
}

// take returns the pending failures and forgets windows that are over.
func (f *failures) take(now time.Time) []failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.windows, func(_ string, w window) bool { return now.Sub(w.start) >= failureWindow })
	pending := f.pending
	f.pending = nil
	return pending
}

// restore puts back failures that could not be written.
func (f *failures) restore(rest []failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(rest, f.pending...)
}

// FlushFailures writes an audit entry for each recent failed sign-in of a user,
// in the workspaces of that user. After an error, the next call writes the rest.
func (s *Service) FlushFailures(ctx context.Context) error {
	pending := s.failures.take(clock.Now())
	for i, failed := range pending {
		if err := s.recordFailure(ctx, failed); err != nil {
			s.failures.restore(pending[i:])
			return err
		}
	}
	return nil
}

func (s *Service) recordFailure(ctx context.Context, failed failure) error {
	memberships, err := s.store.Memberships(ctx, failed.userID)
	if err != nil {
		return err
	}
	details := map[string]any{"address": failed.client.Address}
	if !failed.omittedUntil.IsZero() {
		details["omitted_until"] = clock.Format(failed.omittedUntil)
	}
	var entries []audit.Entry
	for _, m := range memberships[:min(len(memberships), maxFailureWorkspaces)] {
		actor := auth.Actor{Workspace: m.Workspace, Type: audit.ActorSystem, RequestID: failed.client.RequestID}
		entry := actor.AuditEntry("session.failed", "user", failed.userID, details)
		entry.At = failed.at
		entries = append(entries, entry)
	}
	return s.store.RecordAudit(ctx, entries...)
}
