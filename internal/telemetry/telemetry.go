// Package telemetry defines the metrics and serves them, together with the health
// checks, on a separate listener. It counts nothing itself: on every scrape it
// collects the current values from its sources.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/stepmill/stepmill/internal/counter"
)

// scrapeTimeout bounds the time a scrape waits for values that are not in memory.
const scrapeTimeout = 2 * time.Second

// Source sets the current values of some metrics. It may be called concurrently.
type Source func(ctx context.Context, s *Scrape)

// Telemetry exposes the metrics of its sources.
type Telemetry struct {
	registry *prometheus.Registry
	sources  []Source
	metrics  map[Name]described
	log      *slog.Logger
	failures atomic.Int64
}

// described is a metric as registered with Prometheus.
type described struct {
	kind prometheus.ValueType
	desc *prometheus.Desc
}

// New returns a Telemetry with its own registry.
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
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	s := &Scrape{of: t, to: to}
	for _, source := range t.sources {
		t.collect(ctx, source, s)
	}
	if s.failed {
		t.failures.Add(1)
	}
	s.Set(ScrapeErrors, float64(t.failures.Load()))
}

// collect calls a source and recovers from its panics.
func (t *Telemetry) collect(ctx context.Context, source Source, s *Scrape) {
	defer func() {
		if p := recover(); p != nil {
			s.Failed(fmt.Errorf("panic: %v", p))
		}
	}()
	source(ctx, s)
}

// Scrape collects the values of one scrape.
type Scrape struct {
	of     *Telemetry
	to     chan<- prometheus.Metric
	failed bool
}

// Set sets the value of a counter or a gauge.
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

// SetAll sets the values of a metric with one label.
func (s *Scrape) SetAll(name Name, values map[string]int64) {
	for label, value := range values {
		s.Set(name, float64(value), label)
	}
}

// Age sets a gauge to the seconds since a time, or to 0 for nil or the zero time.
func (s *Scrape) Age(name Name, since *time.Time, now time.Time) {
	age := 0.0
	if since != nil && !since.IsZero() {
		age = max(0, now.Sub(*since).Seconds())
	}
	s.Set(name, age)
}

// SetHistogram sets the value of a histogram.
func (s *Scrape) SetHistogram(name Name, of counter.Snapshot, labels ...string) {
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
		return m, fmt.Errorf("unknown metric")
	}
	return m, nil
}

// Failed records that some values could not be read. They are omitted.
func (s *Scrape) Failed(err error) {
	s.failed = true
	s.of.log.Warn("could not read some metrics", "error", err)
}
