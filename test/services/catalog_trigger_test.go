package services_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// triggerCase is a trigger whose first polls a workflow repeats.
type triggerCase struct {
	kind, connection string
	with             json.RawMessage
	exchanges        []replay.Exchange
	// hook has the requests that register a URL, if calls announce what is new.
	hook []replay.Exchange
}

// Every trigger that polls looks for something new in the real server, as its tests say:
// the first poll, and those that follow it at once. It starts no run for what was there
// before. The gate runs one trigger of each integration.
func TestCatalogTriggers(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	services := &replayed{cases: map[string]*replayedCase{}}
	skew := time.Until(testTime)
	s := newInternet(t, services.ServeHTTP).startAt(t, testTime)
	connectCatalog(t, s.Client, services)
	var count int
	for connection, group := range triggerGroups(t) {
		count += len(group)
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			for _, one := range group {
				if err := one.run(t, s.Client, services, skew); err != nil {
					t.Errorf("%s: %v", one.kind, err)
				}
			}
		})
	}
	t.Logf("%d triggers", count)
}

// triggerGroups returns the cases by connection. They run one after the other.
func triggerGroups(t *testing.T) map[string][]triggerCase {
	t.Helper()
	catalog, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]triggerCase{}
	for _, i := range catalog.List() {
		polled := slices.DeleteFunc(slices.Clone(i.Triggers()), func(one integration.Trigger) bool { return one.Poll == nil })
		for _, trigger := range lane.Pick(polled[:min(1, len(polled))], polled) {
			all := testsOf(t, i.ID)
			first := firstPolls(all.Triggers[trigger.Name])
			if first == nil {
				t.Errorf("%s.%s has no test of a first poll", i.ID, trigger.Name)
				continue
			}
			one := triggerCase{kind: i.FullName(trigger.Name), connection: i.ConnectedAs(), with: first[0].Input}
			for _, poll := range first {
				one.exchanges = append(one.exchanges, poll.Exchanges...)
			}
			if trigger.Hook != nil {
				one.hook = registration(all.Hooks[trigger.Hook.Name])
			}
			out[one.connection] = append(out[one.connection], one)
		}
	}
	return out
}

// registration returns the requests that register a URL.
func registration(tests []replay.HookTest) []replay.Exchange {
	at := slices.IndexFunc(tests, func(test replay.HookTest) bool {
		return test.Does == "register" && test.Error == nil && !test.Interrupted
	})
	if at < 0 {
		return nil
	}
	return tests[at].Exchanges
}

// sameCursor compares cursors, in which a member that is nil is like none.
func sameCursor(a, b json.RawMessage) bool {
	var one, other map[string]any
	if json.Unmarshal(a, &one) != nil || json.Unmarshal(b, &other) != nil {
		return sameJSON(a, b)
	}
	isNil := func(_ string, value any) bool { return value == nil }
	maps.DeleteFunc(one, isNil)
	maps.DeleteFunc(other, isNil)
	return reflect.DeepEqual(one, other)
}

// firstPolls returns the tests of the first poll and of those that follow it at once, nil
// if there are none.
func firstPolls(tests []replay.TriggerTest) []replay.TriggerTest {
	var out []replay.TriggerTest
	var cursor json.RawMessage
	for more := true; more; {
		at := slices.IndexFunc(tests, func(test replay.TriggerTest) bool {
			return test.Error == nil && test.Call == nil && sameCursor(test.Cursor, cursor) && (len(out) == 0 || sameJSON(test.Input, out[0].Input))
		})
		if at < 0 {
			return nil
		}
		out = append(out, tests[at])
		cursor, more = tests[at].Next, tests[at].More
	}
	return out
}

// run activates a workflow with the trigger until it has looked.
func (c triggerCase) run(t *testing.T, client *harness.Client, services *replayed, skew time.Duration) error {
	with := c.with
	if with == nil {
		with = json.RawMessage("{}")
	}
	workflow := flow.Define(t, client, flow.Set("seen", "${{ trigger.payload }}"))
	exchange := services.begin(c.exchanges, c.hook...)
	client.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{
		"triggers": []any{map[string]any{"id": "trigger", "type": c.kind, "connection": c.connection, "with": with, "every": "1h"}},
	})
	var last json.RawMessage
	harness.Eventually(t, c.kind+" has looked", func() bool {
		var triggers struct {
			Data []struct {
				NextRunAt time.Time       `json:"next_run_at"`
				LastError json.RawMessage `json:"last_error"`
			}
		}
		client.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &triggers)
		last = triggers.Data[0].LastError
		return string(last) != "null" || triggers.Data[0].NextRunAt.Sub(time.Now().Add(skew)) > 20*time.Minute
	})
	client.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
	if err := services.compare(exchange, workflow); err != nil {
		return fmt.Errorf("%w\n%s", err, last)
	}
	var runs struct{ Data []struct{ ID string } }
	client.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/runs", nil).Decode(t, &runs)
	if string(last) != "null" || len(runs.Data) > 0 {
		return fmt.Errorf("%d runs were started, and the error is %s", len(runs.Data), last)
	}
	return nil
}
