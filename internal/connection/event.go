package connection

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
)

// brokenEvent returns the event of a connection that has to be reconnected.
func brokenEvent(c Connection, problem string, at time.Time) (event.Event, error) {
	data := event.ConnectionBrokenData{Connection: c.inEvent(), Problem: problem}
	return event.New(event.ConnectionBroken, event.Subject{WorkspaceID: c.WorkspaceID}, at, data)
}

// endingEvent returns the event of a connection whose consent ends soon.
func endingEvent(c Connection, at time.Time) (event.Event, error) {
	data := event.ConnectionEndingData{Connection: c.inEvent(), ConsentEndsAt: clock.Format(*c.ConsentEndsAt)}
	return event.New(event.ConnectionEnding, event.Subject{WorkspaceID: c.WorkspaceID}, at, data)
}

func (c Connection) inEvent() event.Connection {
	out := event.Connection{ID: c.ID, Name: c.Name}
	if c.Integration != "" {
		out.Integration = &c.Integration
	}
	return out
}
