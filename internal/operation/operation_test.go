package operation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/action/pages"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
)

// head is the beginning of every manifest of these tests.
const head = `
id: shop
name: Shop
category: commerce
docs: https://shop.example/docs
base_url: https://api.shop.example/v1
connection:
  auth: [{kind: bearer, label: Token, help: "Settings."}]
  hosts: [api.shop.example]
  test: {path: /me}
  learn: {label: "${{ test.name }}"}
`

// service answers requests as a test says.
type service struct {
	t       *testing.T
	answers []any // *egress.Response, or an error
	sent    []string
	bodies  []string
	headers []http.Header
}

func (s *service) Do(_ context.Context, r egress.Request) (*egress.Response, error) {
	s.sent = append(s.sent, r.Method+" "+r.URL)
	s.bodies, s.headers = append(s.bodies, body(s.t, r)), append(s.headers, r.Header)
	if len(s.answers) == 0 {
		s.t.Fatalf("an unexpected request: %s %s", r.Method, r.URL)
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	if err, ok := next.(error); ok {
		return nil, err
	}
	resp, _ := next.(*egress.Response)
	resp.URL = r.URL
	return resp, nil
}

// answer returns an answer with a JSON body and headers, given as pairs.
func answer(status int, body string, headers ...string) *egress.Response {
	header := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return &egress.Response{Status: status, Header: header, Body: []byte(body)}
}

type anywhere struct{}

func (anywhere) Allows(*url.URL) bool      { return true }
func (anywhere) Apply(*http.Request) error { return nil }
func (anywhere) TLS() egress.TLS           { return egress.TLS{} }

// harness runs operations of one manifest.
type harness struct {
	service *service
	entry   func(name string) action.Entry
}

func newHarness(t *testing.T, manifest string, answers ...any) *harness {
	t.Helper()
	i, err := integration.Parse([]byte(head+manifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{service: &service{t: t, answers: answers}}
	actions := operation.NewActions(&integration.Catalog{}, h.service)
	h.entry = func(name string) action.Entry {
		o, ok := i.FindOperation(name)
		if !ok {
			t.Fatalf("there is no operation %s", name)
		}
		return actions.Entry(i, o)
	}
	return h
}

func request(input map[string]any) action.Request {
	return action.Request{
		Input: input, Now: time.Now(), Began: time.Now(), Workspace: "ws_1", IdempotencyKey: "run_1/a", Files: actiontest.NewFiles(), MaxOutput: 1 << 20,
		Connection: &action.Connection{Name: "main", Integration: "shop", Credential: anywhere{}},
		Mask:       func(output map[string]any) (map[string]any, error) { return output, nil },
		Log:        func(action.Level, string) {},
	}
}

// run runs an operation to its end. It returns the output, and how many checkpoints there
// were.
func (h *harness) run(t *testing.T, name string, req action.Request) (output any, checkpoints int, err error) {
	t.Helper()
	for {
		result, err := h.entry(name).Action.Run(t.Context(), req)
		if err != nil || result.Checkpoint == nil {
			return result.Output, checkpoints, err
		}
		checkpoints++
		req.Interrupted, req.Retried = false, false
		if err := req.Resume(*result.Checkpoint); err != nil {
			t.Fatal(err)
		}
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

const orders = `
operations:
  list_orders:
    title: List orders
    request: {path: /orders, query: {after: "${{ page.cursor }}", count: "${{ page.size }}"}, items: body.orders, page: {next: body.next, size: 2}}
`

func TestPages(t *testing.T) {
	t.Parallel()
	pages := func() []any {
		return []any{
			answer(200, `{"orders": [1, 2], "next": "b"}`), answer(200, `{"orders": [3, 4], "next": "c"}`), answer(200, `{"orders": [5]}`),
		}
	}
	for name, tc := range map[string]struct {
		input  map[string]any
		answer string
		sent   int
	}{
		"all":                         {map[string]any{"all": true}, `{"items":[1,2,3,4,5],"more":false}`, 3},
		"the default limit":           {nil, `{"items":[1,2,3,4,5],"more":false}`, 3},
		"a limit inside a page":       {map[string]any{"limit": 3}, `{"items":[1,2,3],"more":true}`, 2},
		"a limit at the end of one":   {map[string]any{"limit": 4}, `{"items":[1,2,3,4],"more":true}`, 2},
		"a limit at the end of all":   {map[string]any{"limit": 5}, `{"items":[1,2,3,4,5],"more":false}`, 3},
		"a limit smaller than a page": {map[string]any{"limit": 1}, `{"items":[1],"more":true}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, orders, pages()...)
			output, checkpoints, err := h.run(t, "list_orders", request(tc.input))
			if err != nil {
				t.Fatal(err)
			}
			want(t, "output", asJSON(t, output), tc.answer)
			if len(h.service.sent) != tc.sent || checkpoints != tc.sent-1 {
				t.Errorf("%d requests and %d checkpoints, want %d and one less", len(h.service.sent), checkpoints, tc.sent)
			}
		})
	}
}

// A list that goes round in circles ends with an error.
func TestPagesInACircle(t *testing.T) {
	t.Parallel()
	h := newHarness(t, orders, answer(200, `{"orders": [1], "next": "b"}`), answer(200, `{"orders": [2], "next": "c"}`), answer(200, `{"orders": [3], "next": "b"}`))
	_, _, err := h.run(t, "list_orders", request(map[string]any{"all": true}))
	wantFailure(t, err, pages.Failed)
}

func wantFailure(t *testing.T, err error, code string) *action.Failure {
	t.Helper()
	failure, ok := errors.AsType[*action.Failure](err)
	if !ok || failure.Code != code {
		t.Fatalf("got %v, want a failure with %s", err, code)
	}
	return failure
}

// The next page can be at a URL of the answer, also a relative one.
func TestPagesByURL(t *testing.T) {
	t.Parallel()
	h := newHarness(t, `
operations:
  list:
    title: List
    request: {path: /orders, query: {size: "${{ page.size }}"}, items: body, page: {next_url: link.next, size: 2}}
`, answer(200, `[1, 2]`, "Link", `</v1/orders?page=2>; rel="next"`), answer(200, `[3]`))
	output, _, err := h.run(t, "list", request(nil))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "output", asJSON(t, output), `{"items":[1,2,3],"more":false}`)
	want(t, "requests", strings.Join(h.service.sent, ", "), "GET https://api.shop.example/v1/orders?size=2, GET https://api.shop.example/v1/orders?page=2")
}

const batches = `
operations:
  add:
    title: Add
    input: {rows: {type: list, required: true, items: {type: any}}, note: {type: string}}
    do:
      - {id: header, path: /header}
      - {id: begin, method: POST, path: /begin, if: input.note != nil, json: {note: "${{ input.note }}"}}
      - {id: rows, method: POST, path: /rows, json: {rows: "${{ batch }}", head: "${{ results.header.name }}"}, batch: {of: input.rows, size: 2}, output: "${{ body.ids }}"}
    output: {ids: "${{ items }}", begun: "${{ results.begin != nil }}"}
`

func TestBatches(t *testing.T) {
	t.Parallel()
	h := newHarness(t, batches, answer(200, `{"name": "H"}`), answer(200, `{"ids": [11, 12]}`), answer(200, `{"ids": [13]}`))
	output, checkpoints, err := h.run(t, "add", request(map[string]any{"rows": []any{1, 2, 3}}))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "output", asJSON(t, output), `{"begun":false,"ids":[11,12,13]}`)
	want(t, "bodies", strings.Join(h.service.bodies, " "), ` {"head":"H","rows":[1,2]} {"head":"H","rows":[3]}`)
	if checkpoints != 1 {
		t.Errorf("%d checkpoints, want one between the two parts", checkpoints)
	}
}

// After a crash at any checkpoint, an operation sends what is left and nothing twice.
func TestContinuesAfterCheckpoints(t *testing.T) {
	t.Parallel()
	h := newHarness(t, batches, answer(200, `{"name": "H"}`), answer(200, `{}`), answer(200, `{"ids": [11, 12]}`), answer(200, `{"ids": [13]}`))
	req := request(map[string]any{"rows": []any{1, 2, 3}, "note": "n"})
	var sent []int
	for {
		result, err := h.entry("add").Action.Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, len(h.service.sent))
		if result.Checkpoint == nil {
			break
		}
		if err := req.Resume(*result.Checkpoint); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(sent, []int{2, 3, 4}) { // reading the header needs no checkpoint
		t.Errorf("the requests up to each checkpoint are %v", sent)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	const manifest = `
errors:
  - {when: "body.error == 'slow_down'", kind: rate_limited, code: "${{ body.error }}", message: "Shop: slow down", retry_after: "${{ body.wait }}"}
  - {when: "status >= 400 && body.error != nil", code: "${{ body.error }}", message: "Shop: ${{ body.error }}"}
operations:
  get:
    title: Get
    input: {id: {type: string, required: true}}
    request: {path: "/orders/${{ input.id }}", errors: [{when: "status == 404", kind: none}], output: "${{ status == 404 ? nil : body }}"}
`
	for name, tc := range map[string]struct {
		answer *egress.Response
		code   string
		want   action.Failure
	}{
		"none":           {answer(404, `{"error": "x"}`), "", action.Failure{}},
		"ok":             {answer(200, `{"id": 1}`), "", action.Failure{}},
		"by rule":        {answer(200, `{"error": "slow_down", "wait": 7}`), "rate_limited", action.Failure{Message: "Shop: slow down", Retryable: true, RetryAfter: 7 * time.Second}},
		"by status":      {answer(403, `{"error": "no"}`), "denied", action.Failure{Message: "Shop: no"}},
		"invalid":        {answer(422, `{}`), "invalid", action.Failure{Message: "Shop responded with 422 Unprocessable Entity"}},
		"conflict":       {answer(409, ``), "conflict", action.Failure{Message: "Shop responded with 409 Conflict"}},
		"not JSON":       {answer(500, `<html>`), "unavailable", action.Failure{Message: "Shop responded with 500 Internal Server Error", Retryable: true}},
		"too many":       {answer(429, `{}`, "Retry-After", "3"), "rate_limited", action.Failure{Message: "Shop responded with 429 Too Many Requests", Retryable: true, RetryAfter: 3 * time.Second}},
		"the credential": {answer(401, `{}`), "reconnect", action.Failure{Message: "Shop responded with 401 Unauthorized", Rejected: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, manifest, tc.answer)
			_, _, err := h.run(t, "get", request(map[string]any{"id": "1"}))
			if tc.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			got := wantFailure(t, err, tc.code)
			if got.Message != tc.want.Message || got.Retryable != tc.want.Retryable || got.RetryAfter != tc.want.RetryAfter || got.Rejected != tc.want.Rejected {
				t.Errorf("got %+v", *got)
			}
		})
	}
}

// What people enter stays one segment of the path, and cannot leave it out.
func TestPaths(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  get:
    title: Get
    input: {id: {type: any}}
    request: {path: "/orders/${{ input.id }}/lines"}
`
	for id, target := range map[string]string{
		`"a"`: "/orders/a/lines", `7`: "/orders/7/lines", `"a/b?c#d e"`: "/orders/a%2Fb%3Fc%23d%20e/lines", `["a", "b/c"]`: "/orders/a/b%2Fc/lines",
		`""`: "", `".."`: "", `["a", ""]`: "", `[]`: "", `null`: "", `{}`: "",
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			var input any
			if err := json.Unmarshal([]byte(id), &input); err != nil {
				t.Fatal(err)
			}
			h := newHarness(t, manifest, answer(200, `{}`))
			_, _, err := h.run(t, "get", request(map[string]any{"id": input}))
			if target == "" {
				wantFailure(t, err, action.InvalidInput)
				return
			}
			want(t, "request", fmt.Sprint(h.service.sent), "[GET https://api.shop.example/v1"+target+"]")
		})
	}
}

// A request whose outcome is not known is repeated, looked for or not repeated, as the
// manifest says.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  repeat: {title: R, request: {method: POST, path: /pay, json: {}}}
  safe: {title: S, request: {method: POST, path: /pay, json: {}, idempotency: safe, on_unknown: fail}}
  fail: {title: F, request: {method: POST, path: /pay, json: {}, on_unknown: fail}}
  remembered: {title: M, request: {method: POST, path: /pay, json: {key: "${{ step.key }}"}, idempotency: {remembered: 24h}, on_unknown: fail}}
  find: {title: N, request: {method: POST, path: /pay, json: {}, idempotency: {find: {path: /payments, output: "${{ body.found }}"}}}}
`
	lost := &egress.Error{Code: egress.ConnectionFailed, Message: "the connection was closed", Retryable: true}
	paid := func() *egress.Response { return answer(200, `{"id": 1}`) }
	for name, tc := range map[string]struct {
		operation string
		change    func(*action.Request)
		answers   []any
		code      string // "" for success
		sent      string
	}{
		"lost, may be repeated":             {"repeat", nil, []any{lost}, "connection_failed", "POST /pay"},
		"lost, must not be repeated":        {"fail", nil, []any{lost}, operation.OutcomeUnknown, "POST /pay"},
		"504, must not be repeated":         {"fail", nil, []any{answer(504, "")}, operation.OutcomeUnknown, "POST /pay"},
		"500 is an answer":                  {"fail", nil, []any{answer(500, "")}, "unavailable", "POST /pay"},
		"interrupted, may be repeated":      {"repeat", interrupted, []any{paid()}, "", "POST /pay"},
		"interrupted, safe":                 {"safe", interrupted, []any{paid()}, "", "POST /pay"},
		"interrupted, must not be repeated": {"fail", interrupted, nil, operation.OutcomeUnknown, ""},
		"retried after an answer":           {"fail", retried, []any{paid()}, "", "POST /pay"},
		"interrupted, remembered":           {"remembered", interrupted, []any{paid()}, "", "POST /pay"},
		"interrupted, no longer remembered": {"remembered", func(r *action.Request) { interrupted(r); r.Began = r.Now.Add(-25 * time.Hour) }, nil, operation.OutcomeUnknown, ""},
		"interrupted, found":                {"find", interrupted, []any{answer(200, `{"found": {"id": 1}}`)}, "", "GET /payments"},
		"interrupted, not found":            {"find", interrupted, []any{answer(200, `{}`), paid()}, "", "GET /payments POST /pay"},
		"retried, found":                    {"find", retried, []any{answer(200, `{"found": {"id": 1}}`)}, "", "GET /payments"},
		"a first attempt does not look":     {"find", nil, []any{paid()}, "", "POST /pay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, manifest, tc.answers...)
			req := request(nil)
			if tc.change != nil {
				tc.change(&req)
			}
			output, _, err := h.run(t, tc.operation, req)
			if tc.code != "" {
				wantFailure(t, err, tc.code)
			} else if err != nil {
				t.Fatal(err)
			} else {
				want(t, "output", asJSON(t, output), `{"id":1}`)
			}
			want(t, "requests", strings.ReplaceAll(strings.Join(h.service.sent, " "), "https://api.shop.example/v1", ""), tc.sent)
		})
	}
}

func interrupted(r *action.Request) { r.Interrupted = true }
func retried(r *action.Request)     { r.Retried = true }

// If the service says that the progress is void, the operation begins anew, but not for
// ever.
func TestRestarts(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  send:
    title: Send
    do:
      - {id: session, method: POST, path: /sessions, json: {}}
      - {id: send, method: PUT, path: "/sessions/${{ results.session.id }}", json: {}, errors: [{when: "status == 410", kind: restart}]}
    output: ${{ results.send }}
`
	h := newHarness(t, manifest, answer(200, `{"id": "s1"}`), answer(410, ``), answer(200, `{"id": "s2"}`), answer(200, `{"ok": true}`))
	output, _, err := h.run(t, "send", request(nil))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "output", asJSON(t, output), `{"ok":true}`)
	want(t, "the last request", h.service.sent[3], "PUT https://api.shop.example/v1/sessions/s2")

	var gone []any
	for range 10 {
		gone = append(gone, answer(200, `{"id": "s"}`), answer(410, ``))
	}
	h = newHarness(t, manifest, gone...)
	_, _, err = h.run(t, "send", request(nil))
	wantFailure(t, err, "restart")
}

// Members that the manifest writes are left out if they are nil; values of people are not.
func TestNilMembers(t *testing.T) {
	t.Parallel()
	h := newHarness(t, `
operations:
  put:
    title: Put
    input: {name: {type: string}, row: {type: object}, tags: {type: list, items: {type: any}}}
    request: {method: POST, path: /rows, query: {name: "${{ input.name }}", tag: "${{ input.tags }}"}, json: {name: "${{ input.name }}", row: "${{ input.row }}", list: ["${{ input.name }}"]}}
`, answer(200, `{}`))
	if _, _, err := h.run(t, "put", request(map[string]any{"row": map[string]any{"a": nil}, "tags": []any{"x", "y"}})); err != nil {
		t.Fatal(err)
	}
	want(t, "body", h.service.bodies[0], `{"list":[null],"row":{"a":null}}`)
	want(t, "request", h.service.sent[0], "POST https://api.shop.example/v1/rows?tag=x&tag=y")
}

// Requests wait for their turn as the rates of the service say. A long wait is one of the
// step, so that it needs no worker.
func TestRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const manifest = `
rate: [{remaining: "int(headers['x-left'])", reset: "int(headers['x-reset'])"}]
operations:
  send: {title: Send, input: {to: {type: string}}, request: {method: POST, path: /send, json: {}}, rate: [{requests: 2, every: 4s, per: input.to}]}
`
		h := newHarness(t, manifest, answer(200, `{}`), answer(200, `{}`), answer(200, `{}`), answer(200, `{}`), answer(200, `{}`, "X-Left", "0", "X-Reset", "60"))
		began := time.Now()
		send := func(to string) action.Result {
			t.Helper()
			result, err := h.entry("send").Action.Run(t.Context(), request(map[string]any{"to": to}))
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		for i, after := range []time.Duration{0, 0, 2 * time.Second} {
			if send("a"); time.Since(began) != after {
				t.Errorf("message %d was sent after %s, want %s", i+1, time.Since(began), after)
			}
		}
		send("b") // another receiver has a rate of its own
		send("c")
		if time.Since(began) != 2*time.Second {
			t.Errorf("messages to others were sent after %s", time.Since(began))
		}
		if result := send("d"); result.Wait == nil || result.Wait.For != time.Minute || result.Checkpoint == nil {
			t.Errorf("without any requests left, the result is %+v", result)
		}
	})
}

// What an answer says about the requests that are left is about what the rate applies to.
func TestLearnedRateOfAChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const manifest = `
operations:
  send: {title: Send, input: {to: {type: string}}, request: {method: POST, path: /send, json: {}}, rate: [{remaining: "int(headers['x-left'])", reset: "int(headers['x-reset'])", per: input.to}]}
`
		h := newHarness(t, manifest, answer(200, `{}`, "X-Left", "0", "X-Reset", "60"), answer(200, `{}`, "X-Left", "4", "X-Reset", "60"))
		for _, message := range []struct {
			to    string
			waits bool
		}{{"a", false}, {"a", true}, {"b", false}} {
			result, err := h.entry("send").Action.Run(t.Context(), request(map[string]any{"to": message.to}))
			if err != nil || (result.Wait != nil) != message.waits {
				t.Errorf("a message to %s: %+v, %v, want it to wait: %t", message.to, result.Wait, err, message.waits)
			}
		}
	})
}

// A request that has to wait takes nothing from the other rates.
func TestRatesOfARequestThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const manifest = `
rate: [{remaining: "int(headers['x-left'])", reset: "int(headers['x-reset'])"}]
operations:
  send: {title: Send, request: {method: POST, path: /send, json: {}}, rate: [{requests: 2, every: 1m}]}
`
		h := newHarness(t, manifest, answer(200, `{}`, "X-Left", "0", "X-Reset", "3"), answer(200, `{}`))
		for i, waits := range []bool{false, true, false} {
			result, err := h.entry("send").Action.Run(t.Context(), request(nil))
			if err != nil || (result.Wait != nil) != waits {
				t.Fatalf("request %d: %+v, %v", i+1, result.Wait, err)
			}
			if waits {
				time.Sleep(result.Wait.For)
			}
		}
	})
}

// Calls that only read are made again after a crash. The request after them may have been
// sent nevertheless.
func TestInterruptedAfterReading(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  find:
    title: Find
    do:
      - {id: account, path: /account}
      - {id: skipped, if: results.account.closed == true, path: /closed}
      - {id: paid, method: POST, path: /pay, json: {}, idempotency: {find: {path: /payments, output: "${{ body.found }}"}}}
  fail:
    title: Fail
    do:
      - {id: account, path: /account}
      - {id: paid, method: POST, path: /pay, json: {}, on_unknown: fail}
`
	h := newHarness(t, manifest, answer(200, `{}`), answer(200, `{"found": {"id": 1}}`), answer(200, `{}`))
	req := request(nil)
	req.Interrupted = true
	if _, _, err := h.run(t, "find", req); err != nil {
		t.Fatal(err)
	}
	_, _, err := h.run(t, "fail", req)
	wantFailure(t, err, operation.OutcomeUnknown)
	want(t, "requests", strings.ReplaceAll(strings.Join(h.service.sent, " "), "https://api.shop.example/v1", ""), "GET /account GET /payments GET /account")
}

// Input is checked before an operation begins. A list can need items: without filters, a
// service might delete everything.
func TestInput(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  clear: {title: Clear, input: {filters: {type: list, items: {type: string}, min: 1, max: 2}, since: {type: time}}, request: {method: DELETE, path: /items}}
`
	entry := newHarness(t, manifest).entry("clear")
	actions, err := action.NewCatalog(entry)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		filters     int
		since, want string
	}{
		{0, "2026-11-19T09:00:00Z", "/filters needs at least 1, not 0"},
		{1, "2026-11-19T09:00:00+01:00", ""},
		{3, "2026-11-19T09:00:00Z", "/filters can have at most 2, not 3"},
		{2, "tomorrow", "/since must be a time with its offset, such as 2026-11-19T09:00:00+01:00"},
	} {
		got := ""
		input := map[string]any{"filters": slices.Repeat([]any{"a"}, tc.filters), "since": tc.since}
		for _, found := range actions.Check(entry.Spec.Name, input, func(string) bool { return false }) {
			got += found.Pointer + " " + found.Message
		}
		want(t, fmt.Sprintf("%d filters since %s", tc.filters, tc.since), got, tc.want)
	}
}

// The call that looks for the effect of a request knows the key of that request, also of a
// part of a batch.
func TestKeyOfFind(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  create:
    title: Create
    input: {items: {type: list, items: {type: string}}}
    do:
      - id: made
        method: POST
        path: /items
        json: {key: "${{ step.key }}"}
        batch: {of: input.items, size: 1}
        idempotency: {find: {path: /items, query: {key: "${{ step.key }}"}, output: "${{ body.found }}"}}
        output: ["${{ body.id }}"]
`
	h := newHarness(t, manifest, answer(200, `{}`), answer(200, `{"id": 1}`))
	req := request(map[string]any{"items": []any{"a"}})
	req.Interrupted = true
	if _, _, err := h.run(t, "create", req); err != nil {
		t.Fatal(err)
	}
	var sent struct{ Key string }
	if err := json.Unmarshal([]byte(h.service.bodies[1]), &sent); err != nil {
		t.Fatal(err)
	}
	want(t, "look-up", h.service.sent[0], "GET https://api.shop.example/v1/items?key="+url.QueryEscape(sent.Key))
}

// An error is read as what it is, also if the answer would be text.
func TestErrorInsteadOfText(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  export: {title: Export, request: {path: /export, response: text, errors: [{when: "status >= 400", code: "${{ body.code }}"}]}, output: {text: "${{ body }}"}}
`
	h := newHarness(t, manifest, answer(200, `{"a": 1}`), answer(403, `{"code": "too_large"}`))
	output, _, err := h.run(t, "export", request(nil))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "output", asJSON(t, output), `{"text":"{\"a\": 1}"}`)
	_, _, err = h.run(t, "export", request(nil))
	if failure := wantFailure(t, err, "denied"); failure.Output["service_code"] != "too_large" {
		t.Errorf("the failure is %+v", failure)
	}
}

// A step gets nothing done with a connection of another service.
func TestConnectionOfAnotherService(t *testing.T) {
	t.Parallel()
	h := newHarness(t, orders)
	req := request(nil)
	req.Connection.Integration = "other"
	_, _, err := h.run(t, "list_orders", req)
	wantFailure(t, err, action.InvalidInput)
}

func TestGraphQL(t *testing.T) {
	t.Parallel()
	const manifest = `
operations:
  get: {title: Get, input: {id: {type: string}}, request: {path: /graphql, graphql: "query($id: ID!) { order(id: $id) { id } }", variables: {id: "${{ input.id }}"}, output: "${{ body.data.order }}"}}
`
	h := newHarness(t, manifest, answer(200, `{"data": {"order": {"id": "7"}}}`), answer(200, `{"data": null, "errors": [{"message": "no such order"}, {"message": "really"}]}`))
	output, _, err := h.run(t, "get", request(map[string]any{"id": "7"}))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "output", asJSON(t, output), `{"id":"7"}`)
	want(t, "body", h.service.bodies[0], `{"query":"query($id: ID!) { order(id: $id) { id } }","variables":{"id":"7"}}`)
	_, _, err = h.run(t, "get", request(maps.Clone(map[string]any{"id": "7"})))
	if failure := wantFailure(t, err, "failed"); failure.Message != "no such order; really" {
		t.Errorf("the message is %q", failure.Message)
	}
}
