// Package telemetry owns what an operator watches from outside: the names of
// the metrics and what they mean, how they are written, and the listener that
// shows them beside the health checks. It counts nothing: whenever somebody
// looks, it asks the parts for what they have counted.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/stepmill/stepmill/internal/tally"
)

// patience is how long a look may wait for numbers that have to be read
// somewhere.
const patience = 2 * time.Second

// Source tells the values of some metrics, as they are now. It may be asked by
// several at the same time.
type Source func(ctx context.Context, s *Scrape)

// Telemetry shows what its sources tell.
type Telemetry struct {
	registry *prometheus.Registry
	sources  []Source
	metrics  map[Name]described
	log      *slog.Logger
	failures atomic.Int64
}

// described is a metric as the registry knows it.
type described struct {
	kind prometheus.ValueType
	desc *prometheus.Desc
}

// New makes a telemetry with a registry of its own.
func New(log *slog.Logger, sources ...Source) (*Telemetry, error) {
	t := &Telemetry{registry: prometheus.NewRegistry(), sources: sources, metrics: map[Name]described{}, log: log}
	for _, m := range metrics {
		kind := prometheus.GaugeValue
		if m.Kind == Counter {
			kind = prometheus.CounterValue
		}
		t.metrics[m.Name] = described{kind, prometheus.NewDesc(string(m.Name), m.Help, m.Labels, nil)}
	}
	for _, c := range []prometheus.Collector{t, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := t.registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return t, nil
}

// Describe implements prometheus.Collector.
func (t *Telemetry) Describe(to chan<- *prometheus.Desc) {
	for _, m := range t.metrics {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (t *Telemetry) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := &Scrape{of: t, to: to}
	for _, source := range t.sources {
		t.ask(ctx, source, s)
	}
	if s.failed {
		t.failures.Add(1)
	}
	s.Set(ScrapeErrors, float64(t.failures.Load()))
}

// ask keeps a mistake in a source from ending the process.
func (t *Telemetry) ask(ctx context.Context, source Source, s *Scrape) {
	defer func() {
		if p := recover(); p != nil {
			s.Failed(fmt.Errorf("panic: %v", p))
		}
	}()
	source(ctx, s)
}

// Scrape takes the values of one look at the metrics.
type Scrape struct {
	of     *Telemetry
	to     chan<- prometheus.Metric
	failed bool
}

// Set tells the value of a counter or a gauge.
func (s *Scrape) Set(name Name, value float64, labels ...string) {
	m, err := s.find(name)
	if err == nil {
		var metric prometheus.Metric
		if metric, err = prometheus.NewConstMetric(m.desc, m.kind, value, labels...); err == nil {
			s.to <- metric
			return
		}
	}
	s.Failed(fmt.Errorf("%s: %w", name, err))
}

// SetAll tells the values of a metric with one label.
func (s *Scrape) SetAll(name Name, values map[string]int64) {
	for label, value := range values {
		s.Set(name, float64(value), label)
	}
}

// Age tells how long ago something was; nil or no time at all is 0.
func (s *Scrape) Age(name Name, since *time.Time, now time.Time) {
	age := 0.0
	if since != nil && !since.IsZero() {
		age = max(0, now.Sub(*since).Seconds())
	}
	s.Set(name, age)
}

// Spread tells the value of a histogram.
func (s *Scrape) Spread(name Name, of tally.Snapshot, labels ...string) {
	upTo := make(map[float64]uint64, len(of.Bounds))
	total := uint64(0)
	for i, bound := range of.Bounds {
		total += of.Counts[i]
		upTo[bound] = total
	}
	m, err := s.find(name)
	if err == nil {
		var metric prometheus.Metric
		if metric, err = prometheus.NewConstHistogram(m.desc, of.Total(), of.Sum, upTo, labels...); err == nil {
			s.to <- metric
			return
		}
	}
	s.Failed(fmt.Errorf("%s: %w", name, err))
}

func (s *Scrape) find(name Name) (described, error) {
	m, ok := s.of.metrics[name]
	if !ok {
		return m, fmt.Errorf("there is no such metric")
	}
	return m, nil
}

// Failed says that some values could not be read. They are left out.
func (s *Scrape) Failed(err error) {
	s.failed = true
	s.of.log.Warn("some metrics cannot be read", "error", err)
}
