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
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/workflow"
)

type events struct {
	events    *event.Service
	workflows *workflow.Service
	cursors   *paging.Codec
}

type followEventsRequest struct {
	LastEventID string `header:"Last-Event-ID"`
	Types       string `query:"types"`
	WorkflowID  string `query:"workflow_id"`
}

func (h *events) follow(ctx context.Context, in *followEventsRequest) (*transport.Reply, error) {
	want := event.Filter{WorkflowID: in.WorkflowID}
	var err error
	if want.Types, err = eventTypes(in.Types); err != nil {
		return nil, err
	}
	if in.WorkflowID != "" {
		if _, err := h.workflows.Get(ctx, transport.Actor(ctx), in.WorkflowID); err != nil {
			return nil, err
		}
	}
	feed, err := h.events.Follow(ctx, transport.Actor(ctx).Workspace.ID, want, in.LastEventID)
	if err != nil {
		return nil, err
	}
	return &transport.Reply{Stream: &eventFeed{feed: feed}}, nil
}

// eventTypes parses a comma-separated list of event types.
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
	return transport.Parameter(parameterName, "%q is not an event type%s", transport.Clean(name), suggest.Hint(name, known))
}

type eventBody struct {
	ID         string          `json:"id"`
	Event      event.Type      `json:"event"`
	Timestamp  string          `json:"timestamp"`
	WorkflowID *string         `json:"workflow_id"`
	RunID      *string         `json:"run_id"`
	Data       json.RawMessage `json:"data"`
}

func showEvent(e event.Stored) eventBody {
	var body struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		panic(err) // this program wrote it
	}
	return eventBody{ID: e.ID, Event: e.Type, Timestamp: clock.Format(e.At), WorkflowID: orNull(e.WorkflowID), RunID: orNull(e.RunID), Data: body.Data}
}

type listEventsRequest struct {
	transport.Page
	Types      string `query:"types"`
	WorkflowID string `query:"workflow_id"`
	RunID      string `query:"run_id"`
	After      string `query:"after"`
	Before     string `query:"before"`
}

func (h *events) list(ctx context.Context, in *listEventsRequest) (*transport.Reply, error) {
	want, err := in.query()
	if err != nil {
		return nil, err
	}
	if in.WorkflowID != "" {
		if _, err := h.workflows.Get(ctx, transport.Actor(ctx), in.WorkflowID); err != nil {
			return nil, err
		}
	}
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"events", in.Types, in.WorkflowID, in.After, in.Before, in.RunID},
		func(p paging.Request) (paging.Page[event.Stored], error) {
			return h.events.List(ctx, transport.Actor(ctx).Workspace.ID, want, p)
		},
		showEvent)
}

func (in *listEventsRequest) query() (event.Query, error) {
	want := event.Query{Filter: event.Filter{WorkflowID: in.WorkflowID}, RunID: in.RunID}
	if len(in.RunID) > maxFilter {
		return want, transport.Parameter("run_id", "must not be longer than %d bytes", maxFilter)
	}
	var err error
	if want.Types, err = eventTypes(in.Types); err != nil {
		return want, err
	}
	after, err := parseTime("after", in.After)
	if err != nil {
		return want, err
	}
	if after != nil {
		want.After = *after
	}
	want.Before, err = parseTime("before", in.Before)
	return want, err
}

// gapBody names the range of sequence numbers in which events may have been missed.
type gapBody struct {
	After   string `json:"after"`
	Through string `json:"through"`
}

type eventFeed struct {
	feed   *event.Feed
	sentID string // the last position that was sent to the client
}

func (f *eventFeed) Changes() <-chan struct{} { return f.feed.Changes }

// OnHeartbeat sends the current position if no event did, so that a client that
// reconnects does not start further back than it has to.
func (f *eventFeed) OnHeartbeat(out *transport.EventStream) {
	if at := sequence(f.feed.Position()); at != f.sentID {
		out.Position(at)
		f.sentID = at
	}
}

func (f *eventFeed) Next(ctx context.Context, out *transport.EventStream) (transport.FeedState, error) {
	if f.sentID == "" {
		if err := f.sendPosition(ctx, out); err != nil {
			return transport.Done, err
		}
	}
	events, rest, err := f.feed.Next(ctx)
	if err != nil {
		return transport.Done, err
	}
	for _, e := range events {
		f.sentID = sequence(e.Seq)
		if err := out.Event(ctx, string(e.Type), f.sentID, e.Body); err != nil {
			return transport.Done, err
		}
	}
	if rest {
		return transport.More, nil
	}
	return transport.Idle, nil
}

// sendPosition sends the starting position, so that the client can resume from
// there even if it disconnects before the first event.
func (f *eventFeed) sendPosition(ctx context.Context, out *transport.EventStream) error {
	f.sentID = sequence(f.feed.Position())
	if gap := f.feed.Gap; gap != nil {
		return out.Object(ctx, "gap", f.sentID, gapBody{sequence(gap.After), sequence(gap.Through)})
	}
	out.Position(f.sentID)
	return nil
}

func sequence(n int64) string { return strconv.FormatInt(n, 10) }
