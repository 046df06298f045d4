package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/suggest"
)

type followEventsRequest struct {
	LastEventID string `header:"Last-Event-ID"`
	Types       string `query:"types"`
	WorkflowID  string `query:"workflow_id"`
}

func (s *Server) followEvents(ctx context.Context, in *followEventsRequest) (*reply, error) {
	want := event.Filter{WorkflowID: in.WorkflowID}
	var err error
	if want.Types, err = eventTypes(in.Types); err != nil {
		return nil, err
	}
	if in.WorkflowID != "" {
		if _, err := s.Workflows.Get(ctx, actorOf(ctx), in.WorkflowID); err != nil {
			return nil, err
		}
	}
	feed, err := s.Events.Follow(ctx, actorOf(ctx).Workspace.ID, want, in.LastEventID)
	if err != nil {
		return nil, err
	}
	return &reply{stream: &eventFeed{feed: feed}}, nil
}

// eventTypes reads a list of types with commas between them.
func eventTypes(list string) ([]event.Type, error) {
	if list == "" {
		return nil, nil
	}
	var types []event.Type
	for name := range strings.SplitSeq(list, ",") {
		if !event.Known(name) {
			return nil, unknownEvent("types", name)
		}
		types = append(types, event.Type(name))
	}
	return types, nil
}

func unknownEvent(parameterName, name string) error {
	var known []string
	for _, t := range event.Types() {
		known = append(known, string(t))
	}
	return parameter(parameterName, "%q is not a type of event%s", clean(name), suggest.Hint(name, known))
}

// eventBody is an event as the list shows it.
type eventBody struct {
	ID         string          `json:"id"`
	Event      event.Type      `json:"event"`
	Timestamp  string          `json:"timestamp"`
	WorkflowID string          `json:"workflow_id"`
	RunID      *string         `json:"run_id"`
	Data       json.RawMessage `json:"data"`
}

func showEvent(e event.Stored) eventBody {
	var body struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		panic(err) // it was written by this program
	}
	return eventBody{ID: e.ID, Event: e.Type, Timestamp: clock.Format(e.At), WorkflowID: e.WorkflowID, RunID: orNull(e.RunID), Data: body.Data}
}

type listEventsRequest struct {
	page
	Types      string `query:"types"`
	WorkflowID string `query:"workflow_id"`
	RunID      string `query:"run_id"`
	After      string `query:"after"`
	Before     string `query:"before"`
}

func (s *Server) listEvents(ctx context.Context, in *listEventsRequest) (*reply, error) {
	want, err := in.query()
	if err != nil {
		return nil, err
	}
	if in.WorkflowID != "" {
		if _, err := s.Workflows.Get(ctx, actorOf(ctx), in.WorkflowID); err != nil {
			return nil, err
		}
	}
	return listing(ctx, s, in.page, []string{"events", in.Types, in.WorkflowID, in.After, in.Before, in.RunID},
		func(p paging.Request) (paging.Page[event.Stored], error) {
			return s.Events.List(ctx, actorOf(ctx).Workspace.ID, want, p)
		},
		showEvent)
}

func (in *listEventsRequest) query() (event.Query, error) {
	want := event.Query{Filter: event.Filter{WorkflowID: in.WorkflowID}, RunID: in.RunID}
	if len(in.RunID) > maxFilter {
		return want, parameter("run_id", "must not be longer than %d bytes", maxFilter)
	}
	var err error
	if want.Types, err = eventTypes(in.Types); err != nil {
		return want, err
	}
	after, err := moment("after", in.After)
	if err != nil {
		return want, err
	}
	if after != nil {
		want.After = *after
	}
	want.Before, err = moment("before", in.Before)
	return want, err
}

// gapBody says between which two numbers events may have been missed.
type gapBody struct {
	After   string `json:"after"`
	Through string `json:"through"`
}

// eventFeed shows the events of a workspace as they come.
type eventFeed struct {
	feed *event.Feed
	told string // the number that the client knows to be at
}

func (f *eventFeed) news() <-chan struct{} { return f.feed.News }

// quiet tells the client how far it has come while nothing came for it, so that
// it does not begin further back than it has to.
func (f *eventFeed) quiet(out *sse) {
	if at := sequence(f.feed.At()); at != f.told {
		out.position(at)
		f.told = at
	}
}

func (f *eventFeed) next(ctx context.Context, out *sse) (state, error) {
	if f.told == "" {
		if err := f.greet(ctx, out); err != nil {
			return over, err
		}
	}
	events, rest, err := f.feed.Next(ctx)
	if err != nil {
		return over, err
	}
	for _, e := range events {
		f.told = sequence(e.Seq)
		if err := out.event(ctx, string(e.Type), f.told, e.Body); err != nil {
			return over, err
		}
	}
	if rest {
		return more, nil
	}
	return idle, nil
}

// greet tells the client where it is, so that it can go on from there even if
// nothing comes before it goes away.
func (f *eventFeed) greet(ctx context.Context, out *sse) error {
	f.told = sequence(f.feed.At())
	if gap := f.feed.Gap; gap != nil {
		return out.object(ctx, "gap", f.told, gapBody{sequence(gap.After), sequence(gap.Through)})
	}
	out.position(f.told)
	return nil
}

func sequence(n int64) string { return strconv.FormatInt(n, 10) }
