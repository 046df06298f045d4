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

// triggerCase is a trigger whose hook is registered and whose first polls are repeated.
type triggerCase struct {
	kind, connection string
	with             json.RawMessage
	// status is that of the subscription once the service was told, "" without a hook.
	status string
	polls  bool
	replay replayedCase
}

// Every trigger looks for something new in the real server, as its tests say: the first
// poll, and those that follow it at once. It starts no run for what was there before. If
// the service calls, it is told the URL, which is taken back. The gate runs one trigger of
// each integration.
func TestCatalogTriggers(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	services := &replayed{cases: map[string]*replayedCase{}}
	skew := time.Until(testTime)
	s := newInternet(t, services.ServeHTTP).startAt(t, testTime)
	connectCatalog(t, s.Client)
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
		triggers := i.Triggers()
		for _, trigger := range lane.Pick(triggers[:min(1, len(triggers))], triggers) {
			one := newTriggerCase(t, i, trigger, testsOf(t, i.ID))
			out[one.connection] = append(out[one.connection], one)
		}
	}
	return out
}

func newTriggerCase(t *testing.T, i *integration.Integration, trigger integration.Trigger, tests *replay.Tests) triggerCase {
	t.Helper()
	out := triggerCase{kind: i.FullName(trigger.Name), connection: i.ConnectedAs(), polls: trigger.Poll != nil}
	if out.polls {
		first := firstPolls(tests.Triggers[trigger.Name])
		if first == nil {
			t.Fatalf("%s has no test of a first poll", out.kind)
		}
		for _, poll := range first {
			out.replay.exchanges = append(out.replay.exchanges, poll.Exchanges...)
		}
		out.with = first[0].Input
	} else {
		out.with = tests.Triggers[trigger.Name][0].Input
	}
	if trigger.Hook != nil {
		of := tests.Hooks[trigger.Hook.Name]
		out.replay.register, out.replay.unregister = aHookRequest(of, "register"), aHookRequest(of, "unregister")
		out.status = "active"
		if trigger.Hook.Register == nil {
			out.status = "manual"
		}
	}
	return out
}

// aHookRequest returns the requests that register a URL, or those that unregister it.
func aHookRequest(tests []replay.HookTest, does string) []replay.Exchange {
	at := slices.IndexFunc(tests, func(test replay.HookTest) bool {
		return test.Does == does && test.Error == nil && !test.Interrupted
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

// shownTrigger is a trigger in an answer of the API.
type shownTrigger struct {
	NextRunAt    *time.Time      `json:"next_run_at"`
	LastError    json.RawMessage `json:"last_error"`
	Subscription *struct {
		Status    string
		LastError json.RawMessage `json:"last_error"`
	}
}

// run activates a workflow with the trigger until it has looked and the service was told.
func (c *triggerCase) run(t *testing.T, client *harness.Client, services *replayed, skew time.Duration) error {
	with := c.with
	if with == nil {
		with = json.RawMessage("{}")
	}
	workflow := flow.Define(t, client, flow.Set("seen", "${{ trigger.payload }}"))
	services.begin(&c.replay)
	trigger := map[string]any{"id": "trigger", "type": c.kind, "connection": c.connection, "with": with}
	if c.polls {
		trigger["every"] = "1h"
	}
	client.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"triggers": []any{trigger}})
	var last shownTrigger
	harness.Eventually(t, c.kind+" is set up", func() bool {
		var triggers struct{ Data []shownTrigger }
		client.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &triggers)
		last = triggers.Data[0]
		looked := !c.polls || string(last.LastError) != "null" || last.NextRunAt != nil && last.NextRunAt.Sub(time.Now().Add(skew)) > 20*time.Minute
		return looked && (last.Subscription == nil || last.Subscription.Status != "pending")
	})
	if err := services.compare(&c.replay, workflow); err != nil {
		return fmt.Errorf("%w\n%s", err, last.LastError)
	}
	if string(last.LastError) != "null" {
		return fmt.Errorf("the error is %s", last.LastError)
	}
	services.end(&c.replay)
	client.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
	if err := c.checkHook(t, last, services); err != nil {
		return err
	}
	var runs struct{ Data []struct{ ID string } }
	client.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/runs", nil).Decode(t, &runs)
	if len(runs.Data) > 0 {
		return fmt.Errorf("%d runs were started", len(runs.Data))
	}
	return nil
}

// checkHook checks that the service was told the URL, and that it is taken back.
func (c *triggerCase) checkHook(t *testing.T, shown shownTrigger, services *replayed) error {
	if (shown.Subscription != nil) != (c.status != "") {
		return fmt.Errorf("the subscription is %+v, and its status should be %q", shown.Subscription, c.status)
	}
	if s := shown.Subscription; s != nil && s.Status != c.status {
		return fmt.Errorf("the subscription is %s (%s)", s.Status, s.LastError)
	}
	if c.status == "active" {
		harness.Eventually(t, c.kind+" has taken back its URL", func() bool { return services.isUnregistered(&c.replay) })
	}
	return nil
}
