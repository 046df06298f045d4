package connection

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/uid"
)

type brokenData struct {
	ConnectionID string  `json:"connection_id"`
	Name         string  `json:"name"`
	Integration  *string `json:"integration"`
	Problem      string  `json:"problem"`
}

// brokenEvent returns the event of a connection that has to be reconnected.
func brokenEvent(c Connection, problem string, at time.Time) (event.Event, error) {
	data := brokenData{ConnectionID: c.ID, Name: c.Name, Problem: problem}
	if c.Integration != "" {
		data.Integration = &c.Integration
	}
	return event.New(event.ConnectionBroken, event.Subject{WorkspaceID: c.WorkspaceID}, at, data)
}

type endingData struct {
	ConnectionID  string  `json:"connection_id"`
	Name          string  `json:"name"`
	Integration   *string `json:"integration"`
	ConsentEndsAt string  `json:"consent_ends_at"`
}

// endingEvent returns the event of a connection whose consent ends soon.
func endingEvent(c Connection, at time.Time) (event.Event, error) {
	data := endingData{ConnectionID: c.ID, Name: c.Name, ConsentEndsAt: clock.Format(*c.ConsentEndsAt)}
	if c.Integration != "" {
		data.Integration = &c.Integration
	}
	return event.New(event.ConnectionEnding, event.Subject{WorkspaceID: c.WorkspaceID}, at, data)
}

// SampleEvent returns an event of a connection that does not exist, for testing
// webhooks and triggers.
func SampleEvent(kind event.Type, workspaceID string, at time.Time) (event.Event, error) {
	ends := at.Add(endingNotice)
	c := Connection{ID: uid.At(uid.Connection, at), WorkspaceID: workspaceID, Name: "team-slack", Integration: "slack", ConsentEndsAt: &ends}
	if kind == event.ConnectionEnding {
		return endingEvent(c, at)
	}
	return brokenEvent(c, "the service rejected the request for a token: invalid_grant (token revoked)", at)
}
