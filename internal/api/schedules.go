package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cron"
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

// previewSchedule returns the next times of a cron expression. Jitter, which depends on the
// trigger, is left out.
func (s *Server) previewSchedule(_ context.Context, in *previewScheduleRequest) (*reply, error) {
	count, err := numberOf("count", in.Count, defaultPreview, maxPreview)
	if err != nil {
		return nil, err
	}
	if in.Cron == "" {
		return nil, parameter("cron", "is required")
	}
	zone, err := cron.Zone(in.Timezone)
	if err != nil {
		return nil, parameter("timezone", "%s", err)
	}
	schedule, err := cron.Parse(in.Cron, zone)
	if err != nil {
		return nil, parameter("cron", "%s", err)
	}
	out := schedulePreview{Times: []string{}}
	for next := schedule.Next(clock.Now()); !next.IsZero() && len(out.Times) < count; next = schedule.Next(next) {
		out.Times = append(out.Times, clock.Format(next))
	}
	return ok(out), nil
}
