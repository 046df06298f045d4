package operation_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/operation"
)

// lists has inputs that operations fill, in each way.
const lists = head + `
operations:
  list_shelves:
    title: List shelves
    input: {text: {type: string, search: true}}
    request: {path: /shelves, query: {q: "${{ input.text }}", after: "${{ page.cursor }}", count: "${{ page.size }}"}, items: body.shelves, page: {next: body.next, size: 100}, output: "${{ {names: map(items, .name)} }}"}
    output: {count: "${{ count(items) }}"}
    option: {value: item.id, label: item.name}
  list_fields:
    title: List fields
    hidden: true
    input: {shelf: {type: string, required: true, pattern: "^[a-z0-9]+$"}, limit_to: {type: integer, title: Limit}}
    request: {path: "/shelves/${{ input.shelf }}/fields", query: {to: "${{ input.limit_to }}"}, items: body}
    field: {name: item.name, title: item.title, type: item.type, required: item.must, options: item.values}
    option: {value: item.name, label: "input.shelf + ': ' + item.title"}
  add:
    title: Add
    input:
      shelf: {type: string, title: The shelf, required: true, options: list_shelves}
      number: {type: integer, options: list_shelves}
      limit_to: {type: integer}
      items: {type: list, items: {type: object, properties: {tags: {type: list, items: {type: string, options: list_fields}}}}}
      values: {type: object, fields: list_fields}
      note: {type: string}
    request: {method: POST, path: /items, json: "${{ input.values }}"}
`

// connections opens every connection of the integration.
type connections struct{ err error }

func (c connections) Use(ctx context.Context, _, name string, _ time.Duration, call func(context.Context, action.Connection) error) error {
	if c.err != nil {
		return c.err
	}
	return call(ctx, action.Connection{Name: name, Integration: "shop", Credential: anywhere{}, Mask: mask.New([]string{"s3cret-token"})})
}

func newLists(t *testing.T, client transfer.Client, opened connections) *operation.Lists {
	t.Helper()
	catalog, err := integration.Load(fstest.MapFS{"shop/integration.yaml": {Data: []byte(lists)}})
	if err != nil {
		t.Fatal(err)
	}
	return operation.NewLists(operation.NewActions(catalog, client), opened)
}

func query(input string, with map[string]any) operation.ListQuery {
	return operation.ListQuery{Workspace: "ws_1", Connection: "main", Integration: "shop", Operation: "shop.add", Input: input, With: with}
}

func TestListOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		query   operation.ListQuery
		answers []any
		sent    []string
		want    operation.Listing
	}{
		"all pages": {
			query("shelf", nil), []any{answer(200, `{"shelves": [{"id": "a", "name": "Books"}, {"id": 7, "name": ""}], "next": "n"}`), answer(200, `{"shelves": [{"id": "c", "name": "s3cret-token"}]}`)},
			[]string{"GET https://api.shop.example/v1/shelves?count=100", "GET https://api.shop.example/v1/shelves?after=n&count=100"},
			operation.Listing{Options: []operation.Option{{Value: "a", Label: "Books"}, {Value: "7", Label: "7"}, {Value: "c", Label: "***"}}},
		},
		"a search": {
			operation.ListQuery{Workspace: "ws_1", Connection: "main", Integration: "shop", Operation: "shop.add", Input: "shelf", Search: "bo"}, []any{answer(200, `{"shelves": []}`)},
			[]string{"GET https://api.shop.example/v1/shelves?count=100&q=bo"}, operation.Listing{},
		},
		"numbers, without what is none and what is there twice": {
			query("number", nil), []any{answer(200, `{"shelves": [{"id": 1, "name": "One"}, {"id": "2", "name": "Two"}, {"id": "x", "name": "Not a number"}, {"id": 2, "name": "Again"}, {"name": "No value"}]}`)},
			[]string{"GET https://api.shop.example/v1/shelves?count=100"},
			operation.Listing{Options: []operation.Option{{Value: 1, Label: "One"}, {Value: 2, Label: "Two"}}},
		},
		"inside a list in an object, with what the list depends on": {
			query("items/tags", map[string]any{"shelf": "a1", "limit_to": 5, "note": "${{ trigger.payload.note }}"}), []any{answer(200, `[{"name": "n", "title": "Name"}]`)},
			[]string{"GET https://api.shop.example/v1/shelves/a1/fields?to=5"},
			operation.Listing{Options: []operation.Option{{Value: "n", Label: "a1: Name"}}},
		},
		"members of an object": {
			query("values", map[string]any{"shelf": "a1", "limit_to": ""}),
			[]any{answer(200, `[{"name": "n", "title": "Name", "type": "string", "must": true}, {"name": "c", "type": "enum", "values": ["red", {"value": 2, "label": "Blue"}, null]}, {"title": "No name"}]`)},
			[]string{"GET https://api.shop.example/v1/shelves/a1/fields"},
			operation.Listing{IsObject: true, Members: []operation.Member{
				{Name: "n", Title: "Name", Type: "string", Required: true},
				{Name: "c", Title: "c", Type: "any", Options: []operation.Option{{Value: "red", Label: "red"}, {Value: 2, Label: "Blue"}}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &service{t: t, answers: tc.answers}
			got, err := newLists(t, client, connections{}).Read(t.Context(), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.sent, client.sent); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What cannot be listed is said before anything is sent.
func TestListRejects(t *testing.T) {
	t.Parallel()
	other := query("shelf", nil)
	other.Integration = "slack"
	unknown := query("shelf", nil)
	unknown.Operation = "shop.ad"
	hidden := query("shelf", nil)
	hidden.Operation = "shop.list_fields"
	searched := query("values", map[string]any{"shelf": "a"})
	searched.Search = "x"
	long := query("shelf", nil)
	long.Search = strings.Repeat("x", 201)
	for name, tc := range map[string]struct {
		query operation.ListQuery
		want  string
	}{
		"an unknown operation":          {unknown, `/operation: there is no operation "shop.ad" (did you mean "shop.add"?)`},
		"a hidden operation":            {hidden, "/operation: there is no operation"},
		"another integration":           {other, `/operation: shop.add needs a connection of Shop, which "main" is not`},
		"an unknown input":              {query("shelv", nil), `/input: there is no input "shelv" (did you mean "shelf"?)`},
		"an unknown input of an object": {query("items/tag", nil), `/input: there is no input "items/tag" (did you mean "tags"?)`},
		"an input below another":        {query("note/x", nil), `/input: there is no input "note/x"`},
		"an input of its own":           {query("note", nil), "/input: note of shop.add is not filled from an account"},
		"a missing input":               {query("values", nil), "/with/shelf: choose The shelf first"},
		"an empty input":                {query("values", map[string]any{"shelf": ""}), "/with/shelf: choose The shelf first"},
		"an expression":                 {query("values", map[string]any{"shelf": "${{ vars.shelf }}"}), "/with/shelf: The shelf is an expression"},
		"an expression in a list":       {query("values", map[string]any{"shelf": []any{"a ${{ vars.shelf }}"}}), "/with/shelf: The shelf is an expression"},
		"an optional expression":        {query("values", map[string]any{"shelf": "a", "limit_to": "${{ 5 }}"}), "/with/limit_to: Limit to is an expression"},
		"an input of another type":      {query("values", map[string]any{"shelf": 5}), "/with/shelf: must be string, not number"},
		"an input that does not fit":    {query("values", map[string]any{"shelf": "../me"}), "/with/shelf: "},
		"a search of what has none":     {searched, "/search: must be left out: what list_fields lists cannot be searched"},
		"a long search":                 {long, "/search: must have at most 200 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newLists(t, &service{t: t}, connections{}).Read(t.Context(), tc.query)
			problem, ok := fault.As(err)
			if !ok || problem.Code != fault.InvalidRequest || !strings.Contains(problem.Message, tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Errors of the service and of the connection are told, without secrets.
func TestListFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opened connections
		answer any
		code   fault.Code
		want   string
	}{
		"the service rejects it":        {answer: answer(403, `{}`), code: fault.ServiceFailed, want: "Shop responded with 403 Forbidden"},
		"the answer is none":            {answer: answer(200, `<html>`), code: fault.ServiceFailed, want: "cannot be read"},
		"the answer has another shape":  {answer: answer(200, `{"shelves": 5}`), code: fault.ServiceFailed, want: "the integration cannot make sense of the answer"},
		"the service cannot be reached": {answer: &egress.Error{Code: egress.ConnectionFailed, Message: "no route for s3cret-token"}, code: fault.ServiceFailed, want: "no route for ***"},
		"the credential is rejected":    {answer: answer(401, `{}`), code: fault.ConnectionBroken, want: "does not accept the credential of the connection: Shop responded with 401"},
		"the connection is broken":      {opened: connections{&action.Failure{Code: "connection_broken", Message: `the connection "main" has to be reconnected: revoked`}}, code: fault.ConnectionBroken, want: `the connection "main" has to be reconnected: revoked`},
		"too many requests":             {answer: answer(429, `{}`, "Retry-After", "7"), code: fault.ServiceFailed, want: "Shop responded with 429 Too Many Requests; try again in 7s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newLists(t, &service{t: t, answers: []any{tc.answer}}, tc.opened).Read(t.Context(), query("shelf", nil))
			problem, ok := fault.As(err)
			if !ok || problem.Code != tc.code || !strings.Contains(problem.Message, tc.want) {
				t.Errorf("got %v, want %s: %s", err, tc.code, tc.want)
			}
		})
	}
}

// endless answers every request with a page that has another one after it.
type endless struct {
	items, requests int
	hang            bool
}

func (e *endless) Do(ctx context.Context, r egress.Request) (*egress.Response, error) {
	if e.requests++; e.hang {
		<-ctx.Done()
		return nil, &egress.Error{Code: egress.TimedOut, Message: "late"}
	}
	var items []string
	for i := range e.items {
		items = append(items, fmt.Sprintf(`{"id": "%d-%d", "name": "x"}`, e.requests, i))
	}
	resp := answer(200, fmt.Sprintf(`{"shelves": [%s], "next": "%d"}`, strings.Join(items, ","), e.requests))
	resp.URL = r.URL
	return resp, nil
}

func (e *endless) Stream(context.Context, egress.Request) (*egress.Stream, error) {
	panic("no operation of the test reads a file")
}

// A list without an end is read until it has enough to choose from.
func TestListIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ items, options, requests int }{
		"full pages":        {100, 300, 3},
		"pages with little": {1, 20, 20},
		"empty pages":       {0, 0, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &endless{items: tc.items}
			got, err := newLists(t, client, connections{}).Read(t.Context(), query("shelf", nil))
			if err != nil || len(got.Options) != tc.options || !got.More || client.requests != tc.requests {
				t.Errorf("%d options after %d requests, more %v, error %v; want %d after %d", len(got.Options), client.requests, got.More, err, tc.options, tc.requests)
			}
		})
	}
}

// A page that comes again ends the list with an error.
func TestListInACircle(t *testing.T) {
	t.Parallel()
	page := func() any { return answer(200, `{"shelves": [{"id": "a", "name": "A"}], "next": "b"}`) }
	_, err := newLists(t, &service{t: t, answers: []any{page(), page()}}, connections{}).Read(t.Context(), query("shelf", nil))
	if !fault.Is(err, fault.ServiceFailed) {
		t.Errorf("got %v", err)
	}
}

// A service that does not respond takes 30 seconds, and delays no other workspace.
func TestListTimeAndTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLists(t, &endless{hang: true}, connections{})
		began := time.Now()
		done := make(chan error)
		for range 40 {
			go func() {
				_, err := l.Read(t.Context(), query("shelf", nil))
				done <- err
			}()
		}
		synctest.Wait()
		other := query("shelf", nil)
		other.Workspace = "ws_2"
		go func() {
			_, err := l.Read(t.Context(), other)
			done <- err
		}()
		codes := map[fault.Code]int{}
		for range 41 {
			problem, ok := fault.As(<-done)
			if !ok {
				t.Fatal("a listing succeeded, or failed in another way")
			}
			codes[problem.Code]++
		}
		// 4 are in progress and 32 wait, so that the others are too many.
		if diff := cmp.Diff(map[fault.Code]int{fault.ServiceFailed: 37, fault.RateLimited: 4}, codes); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
