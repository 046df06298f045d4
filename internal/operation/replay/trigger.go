package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// TriggerTest is a test of a trigger: one poll, or one call of its hook.
type TriggerTest struct {
	Name string `json:"name"`
	// Input has the settings of the trigger.
	Input json.RawMessage `json:"input"`
	// Cursor is where the last poll has ended. Without one it is the first poll.
	Cursor    json.RawMessage `json:"cursor"`
	Exchanges []Exchange      `json:"exchanges"`
	// Call is a call of the hook, in place of a poll.
	Call *Call `json:"call"`
	// Account is the account that the events of the call are for, if the hook is for all
	// connections of an app.
	Account string `json:"account"`
	// Found is what the poll finds, or the call says. Runs start for those of its items whose keys are new; of
	// a first poll, for none.
	Found []FoundItem `json:"found"`
	// Next is the cursor of the next poll, nil if it keeps the present one. It follows at
	// once if there is More.
	Next json.RawMessage `json:"next"`
	More bool            `json:"more"`
	// PositionLost is set, in place of what is found, if the service no longer knows the
	// cursor; Error, if the poll fails.
	PositionLost bool     `json:"position_lost"`
	Error        *Failure `json:"error"`
}

// FoundItem is an item that a poll finds.
type FoundItem struct {
	Key     json.RawMessage `json:"key"`
	Payload json.RawMessage `json:"payload"`
}

func (t *Tests) runTriggers(ctx context.Context, catalog *integration.Catalog, i *integration.Integration, recordings *Recordings, pick func(of, test string) bool) []Result {
	var out []Result
	for _, name := range slices.Sorted(maps.Keys(t.Triggers)) {
		trigger, ok := i.FindTrigger(name)
		if !ok {
			continue // Check reports it
		}
		for n, test := range t.Triggers[name] {
			if pick != nil && !pick(name, test.Name) {
				continue
			}
			line, _, _ := t.document.At(jsonpointer.Of("triggers", name, strconv.Itoa(n)))
			result := Result{Of: name, Test: test.Name, Line: line}
			if err := test.run(ctx, catalog, t.serve(i, test.Exchanges, recordings), trigger); err != nil {
				result.Problem = err.Error()
			}
			out = append(out, result)
		}
	}
	return out
}

func (t TriggerTest) run(ctx context.Context, catalog *integration.Catalog, server *server, trigger *integration.Trigger) error {
	if (t.Call != nil) == (trigger.Poll != nil) {
		return errors.New("a trigger with a poll is tested with polls, any other one with calls")
	}
	poll := operation.Poll{Service: server.integration, Trigger: trigger, Workspace: "test", Key: "wf_1/trigger", Now: testTime, Starting: t.Cursor == nil}
	if t.Input != nil {
		if err := strictjson.Decode(t.Input, &poll.With); err != nil {
			return fmt.Errorf("input: %w", err)
		}
	}
	if err := checkInput(action.Entry{Spec: action.Spec{Name: trigger.Name, Input: trigger.InputSchema()}}, poll.With); err != nil {
		return err
	}
	if t.Call != nil {
		found, err := t.found(server, trigger, poll.With)
		return t.compare(found, err)
	}
	if t.Cursor != nil {
		var err error
		if poll.Cursor, err = expr.FromJSON(t.Cursor); err != nil {
			return fmt.Errorf("cursor: %w", err)
		}
	}
	connection, err := server.connection()
	if err != nil {
		return err
	}
	if server.recorded, err = server.recordings.of(recordedTrigger+trigger.Name, t.Name); err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	found, err := operation.NewActions(catalog, server).Poll(ctx, poll, connection)
	if server.problem != nil {
		return server.problem
	}
	if err := t.compare(found, err); err != nil {
		return err
	}
	return server.left()
}

func (t TriggerTest) found(server *server, trigger *integration.Trigger, with map[string]any) (operation.Found, error) {
	registration, err := HookTest{Input: t.Input}.registration(server, trigger.Hook)
	if err != nil {
		return operation.Found{}, err
	}
	call, err := t.Call.call(registration, server.variables)
	if err != nil {
		return operation.Found{}, err
	}
	events, err := call.Events()
	if err != nil {
		return operation.Found{}, err
	}
	if trigger.Hook.Scope == integration.PerApp {
		if events, err = t.eventsOf(call, events); err != nil {
			return operation.Found{}, err
		}
	}
	items, err := call.Items(trigger, with, events)
	return operation.Found{Items: items}, err
}

// eventsOf returns the events of a call for the account of the test.
func (t TriggerTest) eventsOf(call operation.HookCall, events []any) ([]any, error) {
	if t.Account == "" {
		return nil, errors.New("write account: the account that the events are for")
	}
	found, err := call.ByAccount(events)
	if err == nil && len(found[t.Account]) == 0 {
		err = fmt.Errorf("the call has no events for the account %q, but for %q", t.Account, slices.Sorted(maps.Keys(found)))
	}
	return found[t.Account], err
}

func (t TriggerTest) compare(found operation.Found, err error) error {
	if err != nil || t.Error != nil {
		return t.Error.compare(err)
	}
	want := map[string]any{"found": []any{}, "next": nil, "more": t.More, "position_lost": t.PositionLost}
	if t.Found != nil {
		want["found"] = t.Found
	}
	if t.Next != nil {
		want["next"] = t.Next
	}
	items := []any{}
	for _, item := range found.Items {
		items = append(items, map[string]any{"key": json.RawMessage(item.Key), "payload": action.Object(item.Payload)})
	}
	got := map[string]any{"found": items, "next": found.Cursor, "more": found.More, "position_lost": found.PositionLost}
	return compareEncoded("what it finds", got, want)
}

func compareEncoded(what string, got, want any) error {
	gotText, err := strictjson.Encode(got)
	if err != nil {
		return err
	}
	wantText, err := strictjson.Encode(want)
	if err != nil {
		return err
	}
	return equalJSON(what, gotText, wantText)
}
