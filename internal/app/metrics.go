package app

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/telemetry"
)

type runCounts struct {
	started atomic.Int64
	ended   *counter.Set
}

func (s *Server) metricSources() []telemetry.Source {
	return []telemetry.Source{s.collectNode, s.collectAPI, s.collectRuns, s.collectOutgoing, s.collectStore, s.collectFiles}
}

func (s *Server) collectNode(ctx context.Context, m *telemetry.Scrape) {
	m.Set(telemetry.BuildInfo, 1, config.VersionText(), runtime.Version())
	m.Set(telemetry.NodeInfo, 1, s.node, s.role)
	ready := 1.0
	if s.ready(ctx) != nil {
		ready = 0
	}
	m.Set(telemetry.Ready, ready)
	s.topology.Collect(m)
}

func (s *Server) collectAPI(_ context.Context, m *telemetry.Scrape) {
	if s.front.listener == nil {
		return // a worker
	}
	stats := s.front.api.Stats()
	for _, route := range stats.Routes {
		method, path := route.Method, route.Path
		if path == "" {
			method, path = "any", "unmatched"
		}
		for class, n := range route.Classes {
			m.Set(telemetry.HTTPRequests, float64(n), method, path, strconv.Itoa(class)+"xx")
		}
		m.SetHistogram(telemetry.HTTPDuration, route.Duration, method, path)
	}
	m.SetAll(telemetry.HTTPErrors, stats.Errors)
	m.Set(telemetry.HTTPStreams, float64(stats.Streams))
	m.Set(telemetry.HTTPConnections, float64(s.front.listener.Open()))
	m.Set(telemetry.HTTPConnectionsSpare, float64(s.front.listener.Spared()))
	m.Set(telemetry.HTTPConnectionsRefused, float64(s.front.listener.Rejected()))
}

func (s *Server) collectRuns(_ context.Context, m *telemetry.Scrape) {
	m.Set(telemetry.RunsStarted, float64(s.runner.counts.started.Load()))
	m.SetAll(telemetry.RunsEnded, s.runner.counts.ended.Counts())
	m.Set(telemetry.RunsQueued, float64(s.runner.dispatch.Stats().Queued))
	stats := s.runner.engine.Stats()
	m.Set(telemetry.RunsActive, float64(stats.Active))
	m.SetAll(telemetry.RunFailures, stats.RunFailures)
	for name, of := range stats.Actions {
		for outcome, n := range of.Outcomes {
			m.Set(telemetry.Steps, float64(n), name, outcome)
		}
		m.SetHistogram(telemetry.StepDuration, of.Duration, name)
	}
	m.SetAll(telemetry.StepFailures, stats.StepFailures)
	m.Set(telemetry.LeasesLost, float64(stats.LeasesLost))
	m.Set(telemetry.ActionsStuck, float64(stats.Stuck))
}

func (s *Server) collectOutgoing(_ context.Context, m *telemetry.Scrape) {
	m.SetAll(telemetry.EgressCalls, s.runner.egress.Calls())
	sender := s.runner.sender.Stats()
	m.SetAll(telemetry.WebhookAttempts, sender.Attempts)
	m.SetHistogram(telemetry.WebhookDuration, sender.Duration)
	m.Set(telemetry.WebhookInFlight, float64(sender.InFlight))
	m.Set(telemetry.WebhookQueued, float64(sender.Queued))
	scripts := s.runner.scripts.Stats()
	m.Set(telemetry.SandboxAlive, float64(scripts.Processes))
	m.Set(telemetry.SandboxStarts, float64(scripts.Started))
	m.Set(telemetry.SandboxBusy, float64(scripts.Scripts))
	m.Set(telemetry.SandboxWaiting, float64(scripts.Waiting))
}

func (s *Server) collectStore(ctx context.Context, m *telemetry.Scrape) {
	stats := s.data.db.Stats()
	m.SetAll(telemetry.StoreTransactions, stats.Transactions)
	m.SetHistogram(telemetry.StoreGroups, stats.Groups)
	m.SetHistogram(telemetry.StoreCommits, stats.Commits)
	m.SetAll(telemetry.StoreErrors, stats.Errors)
	m.Set(telemetry.StoreWaiting, float64(stats.Waiting))
	m.SetAll(telemetry.PostgresConns, stats.Connections)
	s.data.db.collect(ctx, m, &s.disk)
	now := clock.Steady()
	backlog, err := s.data.store.Runs.Backlog(ctx, now)
	if err != nil {
		m.Failed(err)
		return
	}
	m.Age(telemetry.WebhookOldest, backlog.Undelivered, clock.Now())
	m.Age(telemetry.WebhookLate, backlog.Due, now)
	m.Age(telemetry.RunsOldest, earliest(backlog.Ready, s.runner.dispatch.Stats().Oldest), now)
}

func (s *Server) collectFiles(_ context.Context, m *telemetry.Scrape) {
	stats := s.files.Stats()
	m.Set(telemetry.FileBytes, float64(stats.BytesWritten), "in")
	m.Set(telemetry.FileBytes, float64(stats.BytesRead), "out")
	m.Set(telemetry.FilesWritten, float64(stats.FilesWritten))
	m.Set(telemetry.FilesRemoved, float64(stats.FilesRemoved))
	m.Set(telemetry.FileBlobsDeleted, float64(stats.BlobsDeleted), "removed")
	m.Set(telemetry.FileBlobsDeleted, float64(stats.Orphans), "orphaned")
	m.Set(telemetry.FileStreams, float64(stats.Writing), "in")
	m.Set(telemetry.FileStreams, float64(stats.Downloads), "out")
	m.Set(telemetry.FileStreamsWaiting, float64(stats.WaitingToWrite))
}

// earliest returns the earlier of two times, either of which may be missing.
func earliest(a *time.Time, b time.Time) *time.Time {
	if a == nil || !b.IsZero() && b.Before(*a) {
		return &b
	}
	return a
}
