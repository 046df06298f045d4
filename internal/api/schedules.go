package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/internal/transport"
)

// How many times the preview of a schedule has.
const (
	defaultPreview = 5
	maxPreview     = 20
)

type previewScheduleRequest struct {
	Cron     string `query:"cron"`
	Timezone string `query:"timezone"`
	Count    *int   `query:"count"`
}

type schedulePreview struct {
	Times []string `json:"times"`
}

// schedule returns the next times of a cron expression. Jitter, which depends on the
// trigger, is left out.
func (h *previews) schedule(_ context.Context, in *previewScheduleRequest) (*transport.Reply, error) {
	count, err := transport.NumberOf("count", in.Count, defaultPreview, maxPreview)
	if err != nil {
		return nil, err
	}
	if in.Cron == "" {
		return nil, transport.Parameter("cron", "is required")
	}
	zone, err := cron.Zone(in.Timezone)
	if err != nil {
		return nil, transport.Parameter("timezone", "%s", err)
	}
	schedule, err := cron.Parse(in.Cron, zone)
	if err != nil {
		return nil, transport.Parameter("cron", "%s", err)
	}
	out := schedulePreview{Times: []string{}}
	for next := schedule.Next(clock.Now()); !next.IsZero() && len(out.Times) < count; next = schedule.Next(next) {
		out.Times = append(out.Times, clock.Format(next))
	}
	return transport.OK(out), nil
}
