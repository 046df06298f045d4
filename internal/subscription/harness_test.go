package subscription_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/trigger"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

const shop = `
id: shop
name: Shop
category: commerce
docs: https://shop.example/api
base_url: https://shop.example
connection:
  auth:
    - {kind: bearer, label: Token}
    - {kind: oauth2, authorize_url: "https://shop.example/authorize", token_url: "https://shop.example/token", client_auth: basic}
  hosts: [shop.example]
  test: {path: /me}
  learn: {label: "${{ test.name }}", account: "${{ test.id }}"}
errors: [{when: status == 400, message: "Shop: ${{ body.message }}"}]
hooks:
  orders:
    scope: trigger
    register: {method: POST, path: /hooks, json: {id: "${{ hook.id }}", url: "${{ hook.url }}", secret: "${{ hook.secret }}", status: "${{ input.status }}"}, idempotency: {find: {path: /find, output: "${{ body.found }}"}}}
    renew: {method: POST, path: "/hooks/${{ subscription.id }}/renew", idempotency: safe}
    unregister: {method: DELETE, path: "/hooks/${{ subscription.id }}"}
    expires: "subscription.ends == nil ? nil : date(subscription.ends)"
    challenge: {when: query.challenge != nil, reply: "${{ query.challenge }}"}
    verify: {scheme: equals, given: "headers['x-secret']", secret: "${{ hook.secret }}"}
    items: body.orders
    key: item.id
  short:
    scope: trigger
    register: {method: POST, path: /channels, json: {id: "${{ hook.id }}"}}
    unregister: {method: DELETE, path: "/channels/${{ subscription.id }}"}
    expires: "date(subscription.ends)"
    verify: {scheme: equals, given: "headers['x-secret']", secret: "${{ hook.secret }}"}
    key: item.id
  app:
    scope: connection
    setup: "Enter ${{ hook.url }} in the shop."
    verify: {scheme: github, secret: "${{ secret.token }}"}
    key: item.id
  shared:
    scope: app
    setup: "Enter ${{ hook.url }} in the app."
    verify: {scheme: github, secret: "${{ secret.client_secret }}"}
    items: body.orders
    account: item.seller
    key: item.id
triggers:
  new_order:
    title: New order
    input: {status: {type: string, title: Status, default: paid}}
    hook: orders
    when: item.test != true
    output: {id: "${{ item.id }}", total: "${{ item.total + 0 }}"}
  short_order: {title: Short, input: {status: {type: string}}, hook: short}
  app_order: {title: App, hook: app}
  shared_order: {title: Shared, hook: shared, when: "headers['x-test'] == nil"}
`

// request is a request that the shop has received.
type request struct {
	method, path string
	body         map[string]any
}

// env is an installation with the integration of a shop, a connection to it and a node
// that tells the shop URLs.
type env struct {
	t     *testing.T
	store *store.DB
	vault *vault.Vault
	actor auth.Actor
	flows *workflow.Service
	runs  *run.Service
	deps  subscription.Deps
	calls *subscription.Calls
	inbox *trigger.Inbox
	// node is the reconciler, if it runs, and fanout hands out calls for apps.
	node   *subscription.Reconciler
	fanout *subscription.Fanout
	// apps are those of the operator: app is the one for the shop.
	apps *connection.Apps
	app  *connection.InstalledApp
	full bool // the queue of runs

	mu       sync.Mutex
	received []request
	answer   func(request) (status int, body string)
	base     string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{t: t, base: "https://one.example"}
	e.answer = func(request) (int, string) { return http.StatusOK, `{"id": "h1"}` }
	e.store = store.New(sqlitetest.Open(t), store.Notify{SubscriptionDue: func(at time.Time) {
		if e.node != nil {
			e.node.Wake(at)
		}
	}, AppCalled: func(at time.Time) { e.fanout.Wake(at) }})
	var err error
	e.vault, err = vault.New(make([]byte, 32), e.store.Workspaces)
	e.must(err)
	_, err = auth.NewService(e.store.Workspaces, e.vault).Bootstrap(t.Context())
	e.must(err)
	first, err := e.store.Workspaces.FirstWorkspace(t.Context())
	e.must(err)
	e.actor = auth.Actor{Workspace: *first, Type: "system", Scopes: auth.Scopes()}
	integrations, err := integration.Load(fstest.MapFS{"shop/integration.yaml": {Data: []byte(shop)}})
	e.must(err)
	operations := operation.NewActions(integrations, e)
	types, err := triggers.New(operations)
	e.must(err)
	actions, err := catalog.New(catalog.Deps{HTTP: e})
	e.must(err)
	values := secret.NewService(e.store.Secrets, e.vault)
	programs := workflow.NewPrograms(e.store.Workflows, actions, types.Format())
	e.flows = workflow.NewService(e.store.Workflows, actions, types.Format(), e, trigger.NewArming(types, e.vault))
	e.runs = run.NewService(e.store.Runs, programs, run.NewWatchers(), e, pubsub.NewBroker())
	e.inbox = trigger.NewInbox(e.store.Triggers)
	e.deps = subscription.Deps{
		Store: e.store.Subscriptions, Vault: e.vault, Operations: operations, Connections: e, Apps: e, Programs: programs, Triggers: e.store.Triggers, Values: values,
		Node: "node_1", BaseURL: func() string { return e.base }, Log: slog.New(slog.DiscardHandler),
	}
	e.calls = subscription.NewCalls(e.store.Subscriptions, e.deps, e.runs, e.inbox)
	e.fanout = subscription.NewFanout(e.calls, e.deps.Log)
	e.apps = connection.NewServices(connection.Deps{Store: e.store.Connections, Vault: e.vault, Catalog: integrations, Node: "node_1", Log: e.deps.Log}).Apps
	e.must(e.apps.AddFromFile([]byte(`[{"integration": "shop", "client_id": "a-client", "client_secret": "s3cr3t-of-the-app"}]`)))
	e.app, err = e.apps.WithID(t.Context(), "file-shop-oauth2")
	e.must(err)
	e.connect("my-shop", "ada")
	return e
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// run runs the node until the test ends.
func (e *env) run() {
	e.node = subscription.NewReconciler(e.deps)
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = e.node.Run(ctx) })
	parts.Go(func() { _ = e.fanout.Run(ctx) })
	e.t.Cleanup(func() {
		stop()
		parts.Wait()
	})
}

func (e *env) connect(name, account string) {
	e.t.Helper()
	now := clock.Now()
	_, err := e.store.Connections.InsertConnection(e.t.Context(), connection.Sealed{
		Connection: connection.Connection{
			ID: uid.New(uid.Connection), WorkspaceID: e.actor.Workspace.ID, Name: name, Integration: "shop", Auth: "bearer", Account: account,
			Access: connection.Everyone, Status: connection.Connected, Epoch: 1, CreatedAt: now, UpdatedAt: now,
		},
		Credential: []byte("sealed"),
	}, 10, e.entry())
	e.must(err)
}

func (e *env) entry() audit.Entry {
	return audit.Entry{ID: uid.New(uid.Audit), WorkspaceID: e.actor.Workspace.ID, Action: "connection.changed", At: clock.Now()}
}

// reconnect connects with another account, as a person does.
func (e *env) reconnect(name, account string) {
	e.t.Helper()
	was, err := e.store.Connections.SealedConnection(e.t.Context(), e.actor.Workspace.ID, name)
	e.must(err)
	now := *was
	now.Account, now.Epoch, now.Learned = account, was.Epoch+1, map[string]string{integration.Account: account}
	now.App = e.app.Identity()
	entry := e.entry()
	_, err = e.store.Connections.UpdateConnection(e.t.Context(), now, was.Epoch, &entry)
	e.must(err)
}

// workflow creates an active workflow with a trigger of the shop.
func (e *env) workflow(triggerType string) workflow.Workflow {
	e.t.Helper()
	made, err := e.flows.Create(e.t.Context(), e.actor, workflow.New{Name: "Test"})
	e.must(err)
	var (
		patch  workflow.Patch
		active = workflow.Active
		list   []workflow.Trigger
		steps  []workflow.Step
	)
	e.must(json.Unmarshal(fmt.Appendf(nil, `[{"id": "t", "type": "shop.%s", "connection": "my-shop"}]`, triggerType), &list))
	e.must(json.Unmarshal([]byte(`[{"id": "work", "uses": "data.set", "with": {"values": {}}}]`), &steps))
	patch.Triggers, patch.Steps, patch.State = &list, &steps, &active
	return e.update(made.ID, patch)
}

func (e *env) update(id string, patch workflow.Patch) workflow.Workflow {
	e.t.Helper()
	changed, err := e.flows.Update(e.t.Context(), e.actor, id, patch, etag.Match{})
	e.must(err)
	return changed
}

func (e *env) setState(id string, state workflow.State) {
	e.t.Helper()
	e.update(id, workflow.Patch{State: &state})
}

// state returns what people see of the subscription of a workflow.
func (e *env) state(of workflow.Workflow) subscription.State {
	e.t.Helper()
	found, err := e.store.Triggers.Triggers(e.t.Context(), e.actor.Workspace.ID, of.ID)
	e.must(err)
	service := subscription.NewService(e.deps)
	states, err := service.States(e.t.Context(), e.actor, found)
	e.must(err)
	return states[found[0].Subscription]
}

func (e *env) trigger(of workflow.Workflow) trigger.Trigger {
	e.t.Helper()
	e.must(e.inbox.Flush(e.t.Context()))
	found, err := e.store.Triggers.Triggers(e.t.Context(), e.actor.Workspace.ID, of.ID)
	e.must(err)
	return found[0]
}

func (e *env) payloads(of workflow.Workflow) []string {
	e.t.Helper()
	found, err := e.store.Runs.Runs(e.t.Context(), e.actor.Workspace.ID, of.ID, "", paging.Request{Limit: 100})
	e.must(err)
	var out []string
	for _, one := range found.Items {
		detail, err := e.store.Runs.Run(e.t.Context(), e.actor.Workspace.ID, one.ID)
		e.must(err)
		out = append(out, string(detail.Trigger.Payload))
	}
	slices.Sort(out)
	return out
}

// The shop.

func (e *env) Do(_ context.Context, r egress.Request) (*egress.Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	one := request{method: r.Method, path: u.Path}
	_ = json.Unmarshal(r.Body, &one.body) // there may be none
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received = append(e.received, one)
	status, body := e.answer(one)
	return &egress.Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
}

func (e *env) Stream(context.Context, egress.Request) (*egress.Stream, error) {
	return nil, &egress.Error{Code: egress.InvalidRequest, Message: "nothing is streamed"}
}

// respond sets what the shop answers from now on.
func (e *env) respond(answer func(request) (int, string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

// asked returns the requests that the shop has received since the last call.
func (e *env) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := []string{}
	for _, r := range e.received {
		out = append(out, r.method+" "+r.path)
	}
	e.received = nil
	return out
}

// last returns the body of the last request that had one.
func (e *env) last() map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range slices.Backward(e.received) {
		if r.body != nil {
			return r.body
		}
	}
	return nil
}

// The connection, the names of those that there are, and the queue of runs.

func (*env) Use(ctx context.Context, _, name string, _ time.Duration, call func(context.Context, action.Connection) error) error {
	return call(ctx, action.Connection{Name: name, Integration: "shop", Variables: map[string]string{}, Credential: credential{}, Mask: mask.New([]string{"s3cr3t-token"})})
}

func (*env) Verifying(_ context.Context, _, _ string, secret integration.Template) (string, map[string]string, error) {
	text, _, err := secret.Text(integration.Env{Secret: map[string]string{"token": "s3cr3t-token"}})
	return text, map[string]string{}, err
}

// No connection was made with an app that others share.
func (*env) OfConnection(context.Context, string, string) (*connection.InstalledApp, error) {
	return nil, nil
}

func (e *env) WithID(ctx context.Context, id string) (*connection.InstalledApp, error) {
	return e.apps.WithID(ctx, id)
}

func (*env) Names(context.Context, auth.Actor) (workflow.Names, error) {
	return workflow.Names{Connections: []workflow.ConnectionName{{Name: "my-shop", Now: "my-shop", Integration: "shop"}}}, nil
}

func (e *env) Reserve(string, string, int) (string, bool) { return "node_1", !e.full }
func (*env) Unreserve(string)                             {}

type credential struct{}

func (credential) Allows(u *url.URL) bool    { return u.Hostname() == "shop.example" }
func (credential) Apply(*http.Request) error { return nil }
func (credential) TLS() egress.TLS           { return egress.TLS{} }

// call makes a call at a URL with a body.
func (e *env) call(address, secret, body string, headers ...string) (subscription.Response, error) {
	e.t.Helper()
	u, err := url.Parse(address)
	e.must(err)
	called, err := e.calls.Find(e.t.Context(), strings.TrimPrefix(u.Path, subscription.Path))
	if err != nil {
		return subscription.Response{}, err
	}
	header := http.Header{"Content-Type": {"application/json"}, "X-Secret": {secret}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return e.calls.Accept(e.t.Context(), called, subscription.Request{Method: http.MethodPost, Header: header, Query: u.RawQuery, Body: []byte(body)})
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
