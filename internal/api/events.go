package api

import (
	"context"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/event"
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
			var known []string
			for _, t := range event.Types() {
				known = append(known, string(t))
			}
			return nil, parameter("types", "%q is not a type of event%s", clean(name), suggest.Hint(name, known))
		}
		types = append(types, event.Type(name))
	}
	return types, nil
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
