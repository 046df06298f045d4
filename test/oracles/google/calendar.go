package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/calendar/v3"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// What Stepmill makes of the key of the step in every test: the id of an event, and a UUID.
const (
	eventID   = "46c351d2fd2ac3b1c8d46174c69f38c4ae65561126647724c041b9dc7b248d67"
	requestID = "46c351d2-fd2a-83b1-88d4-6174c69f38c4"
)

// startOfTests is the time at which every test is run.
const startOfTests = "2026-11-18T09:00:00.000Z"

// calendarInput has the inputs of all operations of Google Calendar.
type calendarInput struct {
	Calendar     string   `json:"calendar"`
	Calendars    []string `json:"calendars"`
	Event        string   `json:"event"`
	Title        string   `json:"title"`
	Text         string   `json:"text"`
	Start        string   `json:"start"`
	End          string   `json:"end"`
	Description  *string  `json:"description"`
	Location     string   `json:"location"`
	Guests       []string `json:"guests"`
	Meet         bool     `json:"meet"`
	SendUpdates  string   `json:"send_updates"`
	TimeZone     string   `json:"time_zone"`
	Recurrence   []string `json:"recurrence"`
	Reminders    []int64  `json:"reminders"`
	Color        string   `json:"color"`
	Visibility   string   `json:"visibility"`
	Free         *bool    `json:"free"`
	From         string   `json:"from"`
	Until        string   `json:"until"`
	Search       string   `json:"search"`
	UpdatedSince string   `json:"updated_since"`
	Series       bool     `json:"series"`
	Limit        int64    `json:"limit"`
	All          bool     `json:"all"`

	// Of hooks and triggers.
	hookInput
	Minutes int             `json:"minutes"`
	Cursor  json.RawMessage `json:"cursor"`
}

// calendarCall is an operation with its input.
type calendarCall struct {
	calendarInput
	ctx context.Context
	*calendar.Service
}

var calendarOperations = operations{
	"hooks/channel": calendarOperation((*calendarCall).channel),
	"create_event":  calendarOperation((*calendarCall).createEvent),
	"quick_add_event": calendarOperation(func(c *calendarCall) error {
		_, err := c.Events.QuickAdd(c.Calendar, c.Text).SendUpdates(c.SendUpdates).Do()
		return err
	}),
	"update_event": calendarOperation(func(c *calendarCall) error {
		_, err := c.Events.Patch(c.Calendar, c.Event, c.changes()).SendUpdates(c.SendUpdates).Do()
		return err
	}),
	"add_guests": calendarOperation((*calendarCall).addGuests),
	"get_event": calendarOperation(func(c *calendarCall) error {
		_, err := c.Events.Get(c.Calendar, c.Event).Do()
		return err
	}),
	"list_events":             calendarOperation((*calendarCall).listEvents),
	"triggers/event_changed":  calendarOperation((*calendarCall).changedEvents),
	"triggers/event_canceled": calendarOperation((*calendarCall).changedEvents),
	"triggers/event_starting": calendarOperation((*calendarCall).starting),
	"delete_event": calendarOperation(func(c *calendarCall) error {
		err := c.Events.Delete(c.Calendar, c.Event).SendUpdates(c.SendUpdates).Do()
		if failed(err, http.StatusGone) {
			return nil
		}
		return err
	}),
	"find_busy": calendarOperation((*calendarCall).findBusy),
	"create_calendar": calendarOperation(func(c *calendarCall) error {
		_, err := c.Service.Calendars.Insert(&calendar.Calendar{Summary: c.Title, Description: *c.Description, TimeZone: c.TimeZone}).Do()
		return err
	}),
	"list_calendars": calendarOperation(func(c *calendarCall) error {
		return c.CalendarList.List().MaxResults(c.pageSize()).Pages(c.ctx, func(*calendar.CalendarList) error { return nil })
	}),
}

func calendarOperation(do func(*calendarCall) error) func(context.Context, *http.Client, []byte) error {
	return func(ctx context.Context, client *http.Client, input []byte) error {
		service, err := calendar.NewService(ctx, option.WithHTTPClient(client))
		if err != nil {
			return err
		}
		c := &calendarCall{ctx: ctx, Service: service, calendarInput: calendarInput{Calendar: "primary", Calendars: []string{"primary"}, SendUpdates: "all", Limit: 100, Minutes: 10}}
		if err := json.Unmarshal(input, &c.calendarInput); err != nil {
			return err
		}
		return do(c)
	}
}

// channel opens the channel of a hook, or stops it.
func (c *calendarCall) channel() error {
	if c.Does != "register" {
		err := c.Channels.Stop(&calendar.Channel{Id: c.Subscription.ID, ResourceId: c.Subscription.ResourceID}).Do()
		if failed(err, http.StatusNotFound) {
			return nil
		}
		return err
	}
	_, err := c.Events.Watch(c.Calendar, &calendar.Channel{Id: c.Hook.ID, Type: "web_hook", Address: c.Hook.URL, Token: c.Hook.Secret}).Do()
	return err
}

// failed reports whether the service has responded with a status.
func failed(err error, status int) bool {
	problem, ok := errors.AsType[*googleapi.Error](err)
	return ok && problem.Code == status
}

func (c *calendarCall) pageSize() int64 {
	if c.All {
		return 250
	}
	return min(c.Limit, 250)
}

// event returns what the input says about an event.
func (c *calendarCall) event() *calendar.Event {
	out := &calendar.Event{
		Summary: c.Title, Location: c.Location, Attendees: attendees(c.Guests), Recurrence: c.Recurrence, Visibility: c.Visibility,
	}
	if c.Description != nil {
		out.Description, out.ForceSendFields = *c.Description, []string{"Description"}
	}
	if c.Color != "" {
		colors := []string{"lavender", "sage", "grape", "flamingo", "banana", "tangerine", "peacock", "graphite", "blueberry", "basil", "tomato"}
		out.ColorId = []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}[slices.Index(colors, c.Color)]
	}
	return out
}

func attendees(guests []string) []*calendar.EventAttendee {
	var out []*calendar.EventAttendee
	for _, guest := range guests {
		out = append(out, &calendar.EventAttendee{Email: guest})
	}
	return out
}

func (c *calendarCall) createEvent() error {
	event := c.event()
	event.Id = eventID
	if c.Free != nil && *c.Free {
		event.Transparency = "transparent"
	}
	event.Start, event.End = c.times()
	for _, minutes := range c.Reminders {
		if event.Reminders == nil {
			event.Reminders = &calendar.EventReminders{ForceSendFields: []string{"UseDefault"}}
		}
		event.Reminders.Overrides = append(event.Reminders.Overrides, &calendar.EventReminder{Method: "popup", Minutes: minutes, ForceSendFields: []string{"Minutes"}})
	}
	call := c.Events.Insert(c.Calendar, event).SendUpdates(c.SendUpdates)
	if c.Meet {
		event.ConferenceData = &calendar.ConferenceData{CreateRequest: &calendar.CreateConferenceRequest{
			RequestId: requestID, ConferenceSolutionKey: &calendar.ConferenceSolutionKey{Type: "hangoutsMeet"},
		}}
		call.ConferenceDataVersion(1)
	}
	_, err := call.Do()
	return err
}

// times returns the start and the end of a new event.
func (c *calendarCall) times() (start, end *calendar.EventDateTime) {
	if day, err := time.Parse(time.DateOnly, c.Start); err == nil {
		if c.End == "" {
			c.End = day.AddDate(0, 0, 1).Format(time.DateOnly)
		}
		return &calendar.EventDateTime{Date: c.Start}, &calendar.EventDateTime{Date: c.End}
	}
	if at, err := time.Parse(time.RFC3339, c.Start); err == nil && c.End == "" {
		c.End = at.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return &calendar.EventDateTime{DateTime: c.Start, TimeZone: c.TimeZone}, &calendar.EventDateTime{DateTime: c.End, TimeZone: c.TimeZone}
}

// changes returns the members of an event that change.
func (c *calendarCall) changes() *calendar.Event {
	event := c.event()
	event.Start, event.End = c.changed(c.Start), c.changed(c.End)
	if c.Guests != nil {
		event.ForceSendFields = append(event.ForceSendFields, "Attendees")
	}
	switch {
	case c.Free == nil:
	case *c.Free:
		event.Transparency = "transparent"
	default:
		event.Transparency = "opaque"
	}
	return event
}

// changed returns a new start or end. It replaces a date by a time, and the reverse.
func (c *calendarCall) changed(text string) *calendar.EventDateTime {
	switch len(text) {
	case 0:
		return nil
	case len(time.DateOnly):
		return &calendar.EventDateTime{Date: text, TimeZone: c.TimeZone, NullFields: []string{"DateTime"}}
	}
	return &calendar.EventDateTime{DateTime: text, TimeZone: c.TimeZone, NullFields: []string{"Date"}}
}

// addGuests changes the event only if nobody else has changed it in the meantime.
func (c *calendarCall) addGuests() error {
	for {
		event, err := c.Events.Get(c.Calendar, c.Event).Do()
		if err != nil {
			return err
		}
		var invited []string
		for _, one := range event.Attendees {
			invited = append(invited, one.Email)
		}
		added := slices.DeleteFunc(c.Guests, func(guest string) bool { return slices.Contains(invited, strings.ToLower(guest)) })
		if len(added) == 0 {
			return nil
		}
		call := c.Events.Patch(c.Calendar, c.Event, &calendar.Event{Attendees: append(event.Attendees, attendees(added)...)}).SendUpdates(c.SendUpdates)
		call.Header().Set("If-Match", event.Etag)
		if _, err := call.Do(); !failed(err, http.StatusPreconditionFailed) {
			return err
		}
	}
}

func (c *calendarCall) listEvents() error {
	if c.From == "" {
		c.From = startOfTests
	}
	call := c.Events.List(c.Calendar).TimeMin(c.From).SingleEvents(!c.Series).MaxResults(c.pageSize())
	if !c.Series {
		call.OrderBy("startTime")
	}
	if c.Until != "" {
		call.TimeMax(c.Until)
	}
	if c.Search != "" {
		call.Q(c.Search)
	}
	if c.UpdatedSince != "" {
		call.UpdatedMin(c.UpdatedSince)
	}
	return call.Pages(c.ctx, func(*calendar.Events) error { return nil })
}

func (c *calendarCall) findBusy() error {
	query := &calendar.FreeBusyRequest{TimeMin: c.From, TimeMax: c.Until}
	for _, id := range c.calendarInput.Calendars {
		query.Items = append(query.Items, &calendar.FreeBusyRequestItem{Id: id})
	}
	got, err := c.Freebusy.Query(query).Do()
	if err != nil {
		return err
	}
	for id, one := range got.Calendars {
		if len(one.Errors) > 0 {
			return errors.New(id + ": " + one.Errors[0].Reason)
		}
	}
	return nil
}

// changedEvents reads a page of what has changed, or of all events, which ends with a token
// for what changes after that.
func (c *calendarCall) changedEvents() error {
	var cursor struct{ Sync, Page string }
	if len(c.Cursor) > 0 {
		if err := json.Unmarshal(c.Cursor, &cursor); err != nil {
			return err
		}
	}
	call := c.Events.List(c.Calendar).MaxResults(100)
	if cursor.Sync == "" {
		call.Fields("nextPageToken", "nextSyncToken")
	} else {
		call.SyncToken(cursor.Sync)
	}
	if cursor.Page != "" {
		call.PageToken(cursor.Page)
	}
	_, err := call.Do()
	if isGone(err) && cursor.Sync != "" {
		return nil // the token is too old
	}
	return err
}

// starting reads the events that start in some minutes, since the last poll.
func (c *calendarCall) starting() error {
	from := startOfTests
	if len(c.Cursor) > 0 {
		if err := json.Unmarshal(c.Cursor, &from); err != nil {
			return err
		}
	}
	now, err := time.Parse(time.RFC3339, startOfTests)
	if err != nil {
		return err
	}
	until := now.Add(time.Duration(c.Minutes) * time.Minute).Format("2006-01-02T15:04:05.000Z07:00")
	return c.Events.List(c.Calendar).TimeMin(from).TimeMax(until).SingleEvents(true).OrderBy("startTime").MaxResults(250).
		Pages(c.ctx, func(*calendar.Events) error { return nil })
}
