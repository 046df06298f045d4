package operation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fairqueue"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/uid"
)

const (
	// listTime bounds one listing, with the wait for its turn and for a token.
	listTime = 30 * time.Second
	// maxListed is the most items of a listing. It also ends after maxListCalls pages,
	// however few items they have, or once its items need maxListBytes.
	maxListed    = 300
	maxListCalls = 20
	maxListBytes = 8 << 20
	// listSlots is how many listings are in progress at a time, for all workspaces and for one, so
	// that a slow service does not keep other workspaces waiting, and listsWaiting how many others
	// of a workspace may wait.
	listSlots             = 16
	listSlotsPerWorkspace = 4
	listsWaiting          = 32
)

// Lists fills dropdowns and forms with what the account of a connection has. What it
// calls for that are operations that only read.
type Lists struct {
	actions     *Actions
	connections Connections
	slots       *fairqueue.Queue
}

// Connections opens connections.
type Connections interface {
	// Use calls a function with a connection, and once more if its credential had to be
	// renewed. It waits at most as long as given for a token.
	Use(ctx context.Context, workspaceID, name string, wait time.Duration, call func(context.Context, action.Connection) error) error
}

// NewLists returns the lists of the operations. Requests of steps and of listings count
// against the same rates.
func NewLists(actions *Actions, connections Connections) *Lists {
	return &Lists{actions: actions, connections: connections, slots: fairqueue.New(listSlots, listSlotsPerWorkspace, listsWaiting)}
}

// ListQuery asks for the values that an input of a step or a trigger can have, or for the
// members of an object.
type ListQuery struct {
	// Workspace, Connection and Integration describe the connection, which the caller
	// may use.
	Workspace, Connection, Integration string
	// Operation is the action of the step, or Trigger the type of the trigger. Input is the
	// path of the input: names with slashes between them. The items of a list have no part in
	// it.
	Operation, Trigger, Input string
	// With is what the step or the trigger has so far.
	With map[string]any
	// Search is the text that a person has typed.
	Search string
}

// Listing is what an input can have: Options or, if it is an object, Members.
type Listing struct {
	IsObject bool
	Options  []Option
	Members  []Member
	More     bool
}

// Read returns what an input can have.
func (l *Lists) Read(ctx context.Context, q ListQuery) (Listing, error) {
	target, err := l.resolve(ctx, q)
	if err != nil {
		return Listing{}, err
	}
	limited, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var out Listing
	release, err := l.slots.Acquire(limited, q.Workspace)
	if err == nil {
		defer release()
		err = l.connections.Use(limited, q.Workspace, q.Connection, listTime, func(ctx context.Context, c action.Connection) (err error) {
			out, err = l.list(ctx, target, q.Workspace, c)
			return err
		})
	}
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return Listing{}, ctx.Err()
	case errors.Is(err, fairqueue.ErrFull):
		return Listing{}, fault.New(fault.RateLimited, "too many lists of this workspace are being read; try again in a moment").After(time.Second)
	case limited.Err() != nil:
		return Listing{}, fault.New(fault.ServiceFailed, "%s did not list the values within %s; try again", target.service.Name, clock.FormatDuration(listTime))
	}
	return Listing{}, listFault(err)
}

func listFault(err error) error {
	failure, ok := errors.AsType[*action.Failure](err)
	switch {
	case !ok:
		return err
	case failure.Rejected:
		return fault.New(fault.ConnectionBroken, "the service does not accept the credential of the connection: %s", failure.Message)
	case failure.Code == string(fault.ConnectionBroken):
		return fault.New(fault.ConnectionBroken, "%s", failure.Message)
	}
	message := failure.Message
	if failure.RetryAfter > 0 {
		message += "; try again in " + clock.FormatDuration(failure.RetryAfter.Round(time.Second))
	}
	return fault.New(fault.ServiceFailed, "%s", message)
}

func (l *Lists) list(ctx context.Context, t listTarget, workspace string, c action.Connection) (Listing, error) {
	r := reading{actions: l.actions, service: t.service, operation: plainList(t.lister), maxCalls: maxListCalls, maxBytes: maxListBytes}
	e, value, complete, err := r.run(ctx, readRequest(clock.Now(), workspace, uid.New(uid.Run), t.with, c), nil)
	if err == nil && !complete {
		e.at.More = true
		value, err = e.listValue(ctx)
	}
	if failure, ok := errors.AsType[*action.Failure](err); ok {
		return Listing{}, masked(failure, c)
	}
	if err != nil {
		return Listing{}, err
	}
	found, _ := value.(map[string]any)
	items, _ := c.Mask.Value(found["items"]).([]any)
	out := t.describe(e.env(e.lastCall()), items)
	out.More = out.More || found["more"] == true
	return out, nil
}

// plainList returns an operation that returns the items themselves, which is what option
// and field of a manifest read, and not what it makes of them for steps.
func plainList(o *integration.Operation) *integration.Operation {
	out := *o
	out.Output = nil
	out.Calls = slices.Clone(o.Calls)
	out.Calls[len(out.Calls)-1].Output = nil
	return &out
}
