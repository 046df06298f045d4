package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/operation"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

const shop = `
id: shop
name: Shop
category: commerce
docs: https://shop.example/api
base_url: https://shop.example
connection:
  auth: [{kind: bearer, label: Token}]
  hosts: [shop.example]
  test: {path: /me}
  learn: {label: "${{ test.name }}"}
operations:
  orders_since:
    title: List orders since a point in time
    hidden: true
    input: {status: {type: string}}
    request:
      path: /orders
      query: {since: "${{ cursor }}", status: "${{ input.status }}"}
      items: body.items
  orders:
    title: List orders
    request: {path: /orders, query: {page: "${{ page.number }}"}, items: body.items, page: {more: body.more}}
triggers:
  new_order:
    title: New order
    input: {status: {type: string, title: Status, default: paid, enum: [paid, open]}}
    poll:
      operation: orders_since
      every: 1m
      start: {path: /clock, output: "${{ body.now }}"}
      cursor: body.next
      more: body.more
      reset: status == 410
    when: item.test != true
    key: item.id
    output: {id: "${{ item.id }}", status: "${{ input.status }}", note: "${{ item.note }}"}
  changed_order:
    title: Changed order
    poll: {operation: orders_since, every: 1m, cursor: body.next, reset: status == 410}
    key: item.id
  any_order:
    title: An order of a list
    poll: {operation: orders, every: 1m}
    key: item.id
`

// shopConnection is a connection of the shop.
type shopConnection struct{ problem error }

func (c *shopConnection) Use(ctx context.Context, _, name string, _ time.Duration, call func(context.Context, action.Connection) error) error {
	if c.problem != nil {
		return c.problem
	}
	return call(ctx, action.Connection{Name: name, Integration: "shop", Variables: map[string]string{}, Credential: shopCredential{}, Mask: mask.New([]string{"s3cr3t-token"})})
}

func (*shopConnection) Verifying(context.Context, string, string, integration.Template) (string, map[string]string, error) {
	return "", nil, errors.New("nothing of the shop is verified with a credential")
}

type shopCredential struct{}

func (shopCredential) Allows(u *url.URL) bool    { return u.Hostname() == "shop.example" }
func (shopCredential) Apply(*http.Request) error { return nil }
func (shopCredential) TLS() egress.TLS           { return egress.TLS{} }

// newShopEnv returns an environment with the integration of a shop and a connection to it.
func newShopEnv(t *testing.T) *testEnv {
	t.Helper()
	catalog, err := integration.Load(fstest.MapFS{"shop/integration.yaml": {Data: []byte(shop)}})
	if err != nil {
		t.Fatal(err)
	}
	api := &fakeAPI{}
	types, err := triggers.New(operation.NewActions(catalog, api))
	if err != nil {
		t.Fatal(err)
	}
	w := newTestEnvWith(t, types)
	w.api, w.connection = api, &shopConnection{}
	for _, name := range connectionNames {
		now := clock.Now()
		_, err := w.store.Connections.InsertConnection(t.Context(), connection.Sealed{
			Connection: connection.Connection{
				ID: uid.New(uid.Connection), WorkspaceID: w.actor.Workspace.ID, Name: name.Name, Integration: name.Integration, Auth: "bearer",
				Access: connection.Everyone, Status: connection.Connected, Epoch: 1, CreatedAt: now, UpdatedAt: now,
			},
			Credential: []byte("sealed"),
		}, 10, audit.Entry{ID: uid.New(uid.Audit), WorkspaceID: w.actor.Workspace.ID, Action: "connection.created", At: now})
		w.must(err)
	}
	return w
}

// connectionNames are the connections of the workspace.
var connectionNames = []workflow.ConnectionName{
	{Name: "my-shop", Now: "my-shop", Integration: "shop"},
	{Name: "other-shop", Now: "other-shop", Integration: "shop"},
	{Name: "mail", Now: "mail", Integration: "gmail"},
}

const newOrder = `[{"id": "p", "type": "shop.new_order", "connection": "my-shop"}]`

// serveOrders answers with the orders after a cursor, which is the id of the last one: at
// most size at once.
func (w *testEnv) serveOrders(upTo, size int) {
	w.api.handle(func(_ context.Context, r egress.Request) (int, string, error) {
		if strings.HasPrefix(r.URL, "https://shop.example/clock") {
			return 200, fmt.Sprintf(`{"now": %d}`, upTo), nil
		}
		u, _ := url.Parse(r.URL)
		var since int
		_, _ = fmt.Sscan(u.Query().Get("since"), &since)
		last := min(since+size, upTo)
		items := strings.TrimSuffix(itemList(since+1, last), "}")
		return 200, fmt.Sprintf(`%s, "next": %d, "more": %t}`, items, last, last < upTo), nil
	})
}

// Each item after the first cursor starts a run with the payload that the manifest makes.
func TestServicePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newShopEnv(t)
		for range 2 {
			w.startNode()
		}
		w.serveOrders(3, 10)
		made := w.workflow(workflow.Active, newOrder)
		time.Sleep(90 * time.Second)
		wantEqual(t, "runs", w.startedItems(made.ID), []int{})

		w.serveOrders(5, 10)
		time.Sleep(time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(4, 5))
		first := w.startedRuns(made.ID)[0]
		wantEqual(t, "trigger", first.Trigger.Type+" "+first.Trigger.ID, "shop.new_order p")
		wantEqual(t, "payload", string(first.Trigger.Payload), `{"id":4,"status":"paid"}`)
		wantEqual(t, "asked", w.api.urls(), []string{
			"https://shop.example/clock", "https://shop.example/orders?since=3&status=paid", "https://shop.example/orders?since=3&status=paid",
		})

		// Not even a restart makes what was seen new, and what came meanwhile is read.
		w.stopNodes()
		w.serveOrders(6, 10)
		time.Sleep(time.Hour)
		w.startNode()
		time.Sleep(90 * time.Second)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(4, 6))
	})
}

// If there is more than one answer has, it is read at once.
func TestServicePollReadsMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newShopEnv(t)
		w.startNode()
		w.serveOrders(0, 10)
		made := w.workflow(workflow.Active, newOrder)
		time.Sleep(30 * time.Second)
		w.serveOrders(95, 10)
		time.Sleep(50 * time.Second) // it is due after 30, and reads ten times
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(1, 95))
	})
}

// A service that says that there is more at the same position is not asked in a loop.
func TestServicePollEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newShopEnv(t)
		w.startNode()
		w.api.respond(200, `{"now": 1, "items": [], "next": 1, "more": true}`)
		made := w.workflow(workflow.Active, newOrder)
		time.Sleep(150 * time.Second)
		stored := w.trigger(made.ID)
		if stored.Error == nil || stored.Error.Code != "position_unchanged" {
			t.Errorf("the error is %+v", stored.Error)
		}
		wantEqual(t, "asked", w.api.requestTimes(), []time.Duration{0, time.Minute, 2 * time.Minute})
	})
}

// A cursor that the service has forgotten is replaced, which is noted.
func TestServicePollPositionLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newShopEnv(t)
		w.startNode()
		w.serveOrders(3, 10)
		made := w.workflow(workflow.Active, newOrder)
		time.Sleep(30 * time.Second)
		w.api.handle(func(_ context.Context, r egress.Request) (int, string, error) {
			if strings.Contains(r.URL, "/clock") {
				return 200, `{"now": 8}`, nil
			}
			return 410, `{}`, nil
		})
		time.Sleep(45 * time.Second)
		stored := w.trigger(made.ID)
		if stored.NotFired == nil || stored.NotFired.Code != "position_lost" {
			t.Errorf("not fired: %+v", stored.NotFired)
		}
		w.serveOrders(9, 10)
		time.Sleep(time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), []int{9})
	})
}

// A service that knows no position at all fails: starting over would not end.
func TestServicePollWithoutPosition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newShopEnv(t)
		w.startNode()
		w.api.respond(410, `{}`)
		made := w.workflow(workflow.Active, `[{"id": "p", "type": "shop.changed_order", "connection": "my-shop"}]`)
		time.Sleep(150 * time.Second)
		wantEqual(t, "code", w.trigger(made.ID).Error.Code, integration.Failed)
		wantEqual(t, "asked", w.api.requestTimes(), []time.Duration{0, time.Minute})
	})
}

// Without a first cursor, what the first poll finds is not new, on all of its pages.
func TestServicePollWithoutCursor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newShopEnv(t)
		w.startNode()
		pages := func(upTo int) {
			w.api.handle(func(_ context.Context, r egress.Request) (int, string, error) {
				u, _ := url.Parse(r.URL)
				var page int
				_, _ = fmt.Sscan(u.Query().Get("page"), &page)
				items := strings.TrimSuffix(itemList(page*10-9, min(page*10, upTo)), "}")
				return 200, fmt.Sprintf(`%s, "more": %t}`, items, page*10 < upTo), nil
			})
		}
		pages(25)
		made := w.workflow(workflow.Active, `[{"id": "p", "type": "shop.any_order", "connection": "my-shop", "every": "10m"}]`)
		time.Sleep(time.Minute)
		pages(47)
		time.Sleep(10 * time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), intRange(26, 47))
	})
}

// A change of the settings or of the connection starts over; one of the interval does not.
func TestServicePollStartsOver(t *testing.T) {
	t.Parallel()
	for change, want := range map[string][]int{
		`"every": "20s"`:             {4, 5},
		`"with": {"status": "open"}`: {},
		`"connection": "other-shop"`: {},
		`"with": {"status": "paid"}`: {},
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newShopEnv(t)
				w.startNode()
				w.serveOrders(3, 10)
				made := w.workflow(workflow.Active, newOrder)
				time.Sleep(30 * time.Second)
				w.serveOrders(5, 10)
				changed := `[{"id": "p", "type": "shop.new_order", "connection": "my-shop", ` + change + `}]`
				if strings.Contains(change, "connection") {
					changed = `[{"id": "p", "type": "shop.new_order", ` + change + `}]`
				}
				w.update(made.ID, w.patch(changed))
				time.Sleep(90 * time.Second)
				wantEqual(t, "runs", w.startedItems(made.ID), want)
			})
		})
	}
}

// Items that the manifest leaves out start nothing, and a credential in what the service
// returns is masked, in payloads as in errors. As a cursor it is refused.
func TestServicePollFiltersAndMasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newShopEnv(t)
		w.startNode()
		w.api.respond(200, `{"now": 1}`)
		made := w.workflow(workflow.Active, newOrder)
		time.Sleep(30 * time.Second)
		w.api.respond(200, `{"items": [{"id": 1, "test": true}, {"id": 2, "note": "s3cr3t-token"}], "next": 2}`)
		time.Sleep(time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), []int{2})
		if payload := string(w.startedRuns(made.ID)[0].Trigger.Payload); strings.Contains(payload, "s3cr3t") {
			t.Errorf("the payload has the credential: %s", payload)
		}
		w.api.respond(200, `{"items": [{"id": 3}], "next": "s3cr3t-token"}`)
		time.Sleep(time.Minute)
		stored := w.trigger(made.ID)
		if stored.Error == nil || !strings.Contains(stored.Error.Message, "contains the credential") || strings.Contains(string(stored.State), "s3cr3t") {
			t.Errorf("the error is %+v, the state %s", stored.Error, stored.State)
		}
		wantEqual(t, "runs", w.startedItems(made.ID), []int{2})
	})
}

// An error of the service or of the connection is noted, and polled again later.
func TestServicePollFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newShopEnv(t)
		w.startNode()
		w.serveOrders(1, 10)
		made := w.workflow(workflow.Active, newOrder)
		time.Sleep(30 * time.Second)
		w.api.respond(500, `{}`)
		time.Sleep(time.Minute)
		wantEqual(t, "code", w.trigger(made.ID).Error.Code, integration.Unavailable)
		w.connection.problem = &action.Failure{Code: string(fault.ConnectionBroken), Message: "reconnect it"}
		time.Sleep(2 * time.Minute)
		wantEqual(t, "code", w.trigger(made.ID).Error.Code, "connection_broken")
		w.connection.problem = nil
		w.serveOrders(2, 10)
		time.Sleep(5 * time.Minute)
		wantEqual(t, "runs", w.startedItems(made.ID), []int{2})
		wantEqual(t, "failures", w.trigger(made.ID).Failures, 0)
	})
}

// What is wrong with the trigger of a service is reported when the workflow is saved.
func TestServiceTriggerIsChecked(t *testing.T) {
	t.Parallel()
	w := newShopEnv(t)
	for definition, want := range map[string]string{
		`{"type": "shop.new_ordr", "connection": "my-shop"}`:                                               `/triggers/0/type: unknown trigger type "shop.new_ordr"; the types are manual, schedule, webhook, event, poll, and those of services, such as gmail.new_message (did you mean "shop.new_order"?)`,
		`{"type": "service", "connection": "my-shop"}`:                                                     `/triggers/0/type: unknown trigger type "service"`,
		`{"type": "shop.new_order"}`:                                                                       `/triggers/0/connection: is required: shop.new_order needs a connection (name a connection of shop)`,
		`{"type": "shop.new_order", "connection": "mail"}`:                                                 `"mail" is a connection of gmail, but one of shop is needed`,
		`{"type": "shop.new_order", "connection": "my-shop", "with": {"status": "lost"}}`:                  `/triggers/0/with/status: must be one of [paid open]`,
		`{"type": "shop.new_order", "connection": "my-shop", "with": {"state": "paid"}}`:                   `/triggers/0/with/state`,
		`{"type": "shop.new_order", "connection": "my-shop", "with": {"status": "${{ secrets.a }}"}}`:      `a secret cannot be used here`,
		`{"type": "shop.new_order", "connection": "my-shop", "with": {"status": "${{ steps.a.output }}"}}`: `steps cannot be used here`,
		`{"type": "shop.new_order", "connection": "my-shop", "every": "1s"}`:                               `/triggers/0/every: must be at least 10s`,
		`{"type": "shop.new_order", "connection": "my-shop", "items": "response"}`:                         `/triggers/0/items: a trigger of type shop.new_order cannot have items`,
	} {
		made, err := w.flows.Create(t.Context(), w.actor, workflow.New{Name: "Test"})
		w.must(err)
		_, err = w.flows.Update(t.Context(), w.actor, made.ID, w.patch(`[{"id": "p", `+definition[1:]+`]`), etag.Match{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", definition, err, want)
		}
	}
}
