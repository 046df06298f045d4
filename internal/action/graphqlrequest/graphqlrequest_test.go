package graphqlrequest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/graphql-go/graphql"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/graphqlrequest"
	"github.com/stepmill/stepmill/internal/action/pages"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/mask"
)

// shop is a step that calls a GraphQL server, as the engine does: again with the state of
// each checkpoint.
type shop struct {
	t       *testing.T
	server  *httptest.Server
	bodies  []string
	headers []http.Header
	logs    []string
	req     action.Request
}

// newShop starts a server with five orders, whose ids are 0 to 4.
func newShop(t *testing.T) *shop {
	t.Helper()
	schema := shopSchema(t)
	return newServer(t, func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			Query         string
			OperationName string
			Variables     map[string]any
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/graphql-response+json; charset=utf-8")
		result := graphql.Do(graphql.Params{Schema: schema, RequestString: call.Query, OperationName: call.OperationName, VariableValues: call.Variables})
		_ = json.NewEncoder(w).Encode(result)
	})
}

func newServer(t *testing.T, handler http.HandlerFunc) *shop {
	t.Helper()
	s := &shop{t: t}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.bodies, s.headers = append(s.bodies, string(body)), append(s.headers, r.Header)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		handler(w, r)
	}))
	t.Cleanup(s.server.Close)
	return s
}

func shopSchema(t *testing.T) graphql.Schema {
	t.Helper()
	order := graphql.NewObject(graphql.ObjectConfig{Name: "Order", Fields: graphql.Fields{
		"id": {Type: graphql.Int},
		"customer": {Type: graphql.String, Resolve: func(p graphql.ResolveParams) (any, error) {
			return nil, errors.New("the customers are not available")
		}},
	}})
	info := graphql.NewObject(graphql.ObjectConfig{Name: "PageInfo", Fields: graphql.Fields{
		"endCursor": {Type: graphql.String}, "hasNextPage": {Type: graphql.Boolean},
	}})
	list := graphql.NewObject(graphql.ObjectConfig{Name: "Orders", Fields: graphql.Fields{
		"nodes": {Type: graphql.NewList(order)}, "pageInfo": {Type: info},
	}})
	orderField := &graphql.Field{
		Type: order, Args: graphql.FieldConfigArgument{"id": {Type: graphql.NewNonNull(graphql.Int)}},
		Resolve: func(p graphql.ResolveParams) (any, error) { return map[string]any{"id": p.Args["id"]}, nil },
	}
	schema, err := graphql.NewSchema(graphql.SchemaConfig{
		Query: graphql.NewObject(graphql.ObjectConfig{Name: "Query", Fields: graphql.Fields{"order": orderField, "orders": {
			Type: list, Args: graphql.FieldConfigArgument{"first": {Type: graphql.Int}, "after": {Type: graphql.String}}, Resolve: resolveOrders,
		}}}),
		Mutation: graphql.NewObject(graphql.ObjectConfig{Name: "Mutation", Fields: graphql.Fields{"pay": orderField}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func resolveOrders(p graphql.ResolveParams) (any, error) {
	first, _ := p.Args["first"].(int)
	after, _ := p.Args["after"].(string)
	from, _ := strconv.Atoi(after)
	var nodes []any
	for id := from; id < min(from+first, 5); id++ {
		nodes = append(nodes, map[string]any{"id": id})
	}
	return map[string]any{"nodes": nodes, "pageInfo": map[string]any{"endCursor": strconv.Itoa(from + len(nodes)), "hasNextPage": from+first < 5}}, nil
}

// run runs the step. The URL is that of the server unless with has one.
func (s *shop) run(with map[string]any) (map[string]any, *action.Failure) {
	s.t.Helper()
	client := egress.New(egress.Config{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	s.t.Cleanup(client.Close)
	if with["url"] == nil {
		with["url"] = s.server.URL + "/graphql?token=abc"
	}
	req := s.req
	req.Input, req.Now, req.Workspace, req.IdempotencyKey, req.Run.Depth = with, time.Now(), "ws_a", "run_1/step", 4
	req.Log = func(_ action.Level, message string) { s.logs = append(s.logs, message) }
	req.Mask = func(output map[string]any) (map[string]any, error) { return output, nil }
	for {
		result, err := graphqlrequest.Entry(client).Action.Run(s.t.Context(), req)
		if failure, ok := errors.AsType[*action.Failure](err); ok {
			delete(failure.Output, "headers")
			return nil, failure
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if result.Checkpoint == nil {
			output, _ := result.Output.(map[string]any)
			if headers, _ := output["headers"].(map[string]any); headers["content-type"] == nil {
				s.t.Errorf("the headers are %v", headers)
			}
			delete(output, "headers")
			return output, nil
		}
		if err := req.Resume(*result.Checkpoint); err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	output, failure := s.run(map[string]any{
		"query": "query Q($id: Int!) { order(id: $id) { id } } mutation M($id: Int!) { pay(id: $id) { id } }", "operation_name": "M",
		"variables": map[string]any{"id": 7}, "headers": map[string]any{"X-Shop": "north"},
	})
	if failure != nil {
		t.Fatal(failure)
	}
	want := map[string]any{"data": map[string]any{"pay": map[string]any{"id": 7}}, "extensions": map[string]any{}, "status": 200}
	if diff := cmp.Diff(want, output); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/graphql-response+json, application/json",
		"Idempotency-Key": "run_1/step", "X-Service-Depth": "4", "X-Shop": "north",
	} {
		if got := s.headers[0].Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// What is not given is not sent.
	if _, failure := s.run(map[string]any{"query": "{ order(id: 1) { id } }"}); failure != nil || s.bodies[1] != `{"query":"{ order(id: 1) { id } }"}` {
		t.Errorf("%v, sent %s", failure, s.bodies[1])
	}
}

func TestErrorsFailTheStep(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const query = "{ order(id: 1) { id customer } }"
	partial := map[string]any{"order": map[string]any{"id": 1, "customer": nil}}
	_, failure := s.run(map[string]any{"query": query})
	if failure == nil || failure.Code != graphqlrequest.GraphQLErrors || failure.Retryable || failure.Message != s.server.URL+"/graphql returned errors: the customers are not available" {
		t.Fatalf("got %+v", failure)
	}
	list, _ := failure.Output["errors"].([]any)
	if diff := cmp.Diff(partial, failure.Output["data"]); diff != "" || len(list) != 1 || failure.Output["status"] != 200 {
		t.Errorf("the output is %v", failure.Output)
	}

	output, failure := s.run(map[string]any{"query": query, "errors": "return"})
	if failure != nil {
		t.Fatal(failure)
	}
	list, _ = output["errors"].([]any)
	if diff := cmp.Diff(partial, output["data"]); diff != "" || len(list) != 1 {
		t.Errorf("the output is %v", output)
	}
	output, _ = s.run(map[string]any{"query": "{ order(id: 1) { id } }", "errors": "return"})
	if diff := cmp.Diff([]any{}, output["errors"]); diff != "" {
		t.Errorf("without errors: %s", diff)
	}

	// The server rejects what it does not know.
	if _, failure := s.run(map[string]any{"query": "{ a: invoice { id } }"}); failure == nil || !strings.Contains(failure.Message, "invoice") {
		t.Errorf("got %v", failure)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	const query, mutation = "{ a }", "mutation { a b }"
	limited := func(code string) string {
		return fmt.Sprintf(`{"errors": [{"message": "slow down", "extensions": {"code": %q}}]}`, code)
	}
	for name, test := range map[string]struct {
		status    int
		body      string
		query     string
		errors    string
		code      string
		retryable bool
		message   string
	}{
		"data":                                  {200, `{"data": {"a": 1}}`, query, "", "", false, ""},
		"null":                                  {200, `{"data": null}`, query, "", "", false, ""},
		"no errors":                             {200, `{"data": {"a": 1}, "errors": []}`, query, "", "", false, ""},
		"errors of the request":                 {400, `{"errors": [{"message": "no"}, {}]}`, query, "", "graphql_errors", false, "returned errors: no; an error without a message"},
		"errors of the request, returned":       {400, `{"errors": [{"message": "no"}]}`, query, "return", "", false, ""},
		"errors that are text":                  {403, `{"errors": "[API] Invalid key"}`, query, "", "graphql_errors", false, "returned errors: [API] Invalid key"},
		"THROTTLED":                             {200, limited("THROTTLED"), query, "", "graphql_errors", true, "slow down"},
		"RATELIMITED":                           {400, limited("RATELIMITED"), query, "", "graphql_errors", true, "slow down"},
		"rate_limited":                          {200, limited("rate_limited"), query, "", "graphql_errors", true, "slow down"},
		"TOO_MANY_REQUESTS":                     {200, limited("TOO_MANY_REQUESTS"), query, "", "graphql_errors", true, "slow down"},
		"another code":                          {200, limited("FORBIDDEN"), query, "", "graphql_errors", false, "slow down"},
		"the type of an error":                  {200, `{"errors": [{"message": "slow down", "type": "RATE_LIMITED"}]}`, query, "", "graphql_errors", true, "slow down"},
		"a rate limit, although it is returned": {200, limited("THROTTLED"), query, "return", "graphql_errors", true, "slow down"},
		"a rate limit of a mutation":            {200, `{"data": {"a": null}, "errors": [{"extensions": {"code": "THROTTLED"}}]}`, mutation, "", "graphql_errors", true, ""},
		"a rate limit of half a mutation":       {200, `{"data": {"a": 1, "b": null}, "errors": [{"extensions": {"code": "THROTTLED"}}]}`, mutation, "", "graphql_errors", false, ""},
		"a rate limit of half a query":          {200, `{"data": {"a": 1, "b": null}, "errors": [{"extensions": {"code": "THROTTLED"}}]}`, query, "", "graphql_errors", true, ""},
		"429 with errors":                       {429, `{"errors": [{"message": "later"}]}`, query, "return", "graphql_errors", true, "later"},
		"429 without an answer":                 {429, `later`, mutation, "", "http_error", true, "429 Too Many Requests"},
		"503 without an answer":                 {503, `<html>`, query, "return", "http_error", true, "503 Service Unavailable"},
		"500 with data":                         {500, `{"data": {"a": 1}}`, mutation, "", "http_error", false, "500"},
		"404 of a page":                         {404, `<html>`, query, "", "http_error", false, "404"},
		"401":                                   {401, `{"errors": [{"message": "who?"}]}`, query, "", "graphql_errors", false, "who?"},
		"a page":                                {200, `<html>`, query, "return", "invalid_response", false, "returned text/html instead of the answer to a GraphQL request"},
		"other JSON":                            {200, `{"ok": true}`, query, "", "invalid_response", false, "check that the URL is that of the GraphQL endpoint"},
		"nothing":                               {204, ``, query, "", "invalid_response", false, "an empty response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8") // wrong for JSON
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			with := map[string]any{"query": test.query}
			if test.errors != "" {
				with["errors"] = test.errors
			}
			output, failure := s.run(with)
			if test.code == "" {
				if failure != nil || output["status"] != test.status {
					t.Errorf("got %v, %v", output, failure)
				}
				return
			}
			if failure == nil || failure.Code != test.code || failure.Retryable != test.retryable || failure.Output["status"] != test.status ||
				!strings.Contains(failure.Message, test.message) || strings.Contains(failure.Message, "token") {
				t.Fatalf("got %+v, %+v", output, failure)
			}
			if failure.Retryable != (failure.RetryAfter == 7*time.Second) && test.code != transfer.HTTPError {
				t.Errorf("it is retried after %s", failure.RetryAfter)
			}
		})
	}
}

func TestMessageIsBounded(t *testing.T) {
	t.Parallel()
	var all []any
	for range 300 {
		all = append(all, map[string]any{"message": strings.Repeat("é", 290) + "s3cr3t-and-more" + strings.Repeat("é", 1000)})
	}
	body, err := json.Marshal(map[string]any{"errors": all})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	s.req.Secrets = mask.New([]string{strings.Repeat("é", 290) + "s3cr3t-and-more"})
	_, failure := s.run(map[string]any{"query": "{ a }"})
	if failure == nil || len(failure.Message) > 4000 || strings.Contains(failure.Message, "s3") || !strings.HasSuffix(failure.Message, "é…; and 295 more") {
		t.Errorf("got %v", failure)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	const query = "query ($after: String) { orders(first: 2, after: $after) { nodes { id } pageInfo { endCursor hasNextPage } } }"
	paginate := map[string]any{"items": "map(data.orders.nodes, .id)", "next": "data.orders.pageInfo.endCursor", "more": "data.orders.pageInfo.hasNextPage"}
	s := newShop(t)
	output, failure := s.run(map[string]any{"query": query, "variables": map[string]any{"x": 1}, "paginate": paginate})
	if failure != nil {
		t.Fatal(failure)
	}
	if diff := cmp.Diff(map[string]any{"items": []any{0, 1, 2, 3, 4}, "pages": 3, "more": false, "status": 200}, output); diff != "" {
		t.Error(diff)
	}
	for i, want := range []string{`{"x":1}`, `{"after":"2","x":1}`, `{"after":"4","x":1}`} {
		if !strings.HasSuffix(s.bodies[i], `"variables":`+want+"}") {
			t.Errorf("page %d: %s, want %s", i+1, s.bodies[i], want)
		}
		if key := s.headers[i].Get("Idempotency-Key"); key != fmt.Sprintf("run_1/step/%d", i+1) {
			t.Errorf("page %d has the key %s", i+1, key)
		}
	}

	paginate["max_pages"] = 2
	output, _ = s.run(map[string]any{"query": query, "paginate": paginate})
	if output["more"] != true || output["pages"] != 2 || len(s.logs) != 1 {
		t.Errorf("with max_pages: %v, %v", output, s.logs)
	}
	// This server has a cursor after its last page, too.
	delete(paginate, "more")
	paginate["max_pages"] = 100
	if _, failure := s.run(map[string]any{"query": query, "paginate": paginate}); failure == nil || failure.Code != pages.Failed {
		t.Errorf("without more: %v", failure)
	}
	if _, failure := s.run(map[string]any{"query": strings.Replace(query, "id }", "id customer }", 1), "paginate": paginate}); failure == nil || failure.Code != graphqlrequest.GraphQLErrors {
		t.Errorf("with errors: %v", failure)
	}
}

func TestCursorInsideAVariable(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		next := "null"
		if !strings.Contains(string(body), "s3cr3t") {
			next = `"s3cr3t"`
		}
		_, _ = fmt.Fprintf(w, `{"data": {"list": [%s], "next": %s}, "extensions": {"cost": 3}}`, next, next)
	})
	s.req.Secrets = mask.New([]string{"s3cr3t"})
	output, failure := s.run(map[string]any{
		"query": "query ($page: Page) { list(page: $page) next }", "variables": map[string]any{"page": map[string]any{"size": 2}},
		"paginate": map[string]any{"variable": "page.from", "items": "concat(data.list, [page.number, page.cursor, extensions.cost, status])", "next": "data.next"},
	})
	if failure != nil {
		t.Fatal(failure)
	}
	// The next page may need a secret, items must not have one.
	if diff := cmp.Diff([]any{"***", 1, nil, 3, 200, nil, 2, "***", 3, 200}, output["items"]); diff != "" {
		t.Error(diff)
	}
	if len(s.bodies) != 2 || !strings.Contains(s.bodies[1], `{"page":{"from":"s3cr3t","size":2}}`) {
		t.Errorf("sent %q", s.bodies)
	}
}

// key is a credential for one host.
type key struct{ host string }

func (k key) Allows(u *url.URL) bool { return u.Host == k.host }

func (k key) TLS() egress.TLS { return egress.TLS{} }

func (k key) Apply(r *http.Request) error {
	r.Header.Set("X-Key", "key")
	return nil
}

func TestRejectedCredential(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"errors": [{"message": "the key is not valid"}]}`)
	})
	u, err := url.Parse(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, accepted := range []bool{false, true} {
		for _, mode := range []string{"fail", "return"} {
			s.req.Connection = &action.Connection{Name: "shop", Credential: key{u.Host}, Accepted: accepted}
			_, failure := s.run(map[string]any{"query": "{ a }", "errors": mode})
			if failed := failure != nil; failed != (mode == "fail" || !accepted) || failed && failure.Rejected == accepted {
				t.Errorf("accepted %t, errors: %s: got %+v", accepted, mode, failure)
			}
		}
	}
	if s.headers[0].Get("X-Key") != "key" {
		t.Error("the credential was not sent")
	}
	s.req.Connection.Credential = key{"other.example"}
	if _, failure := s.run(map[string]any{"query": "{ a }"}); failure == nil || len(s.headers) != 4 {
		t.Errorf("another host: %v after %d requests", failure, len(s.headers))
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	paginate := map[string]any{"items": "data.a", "next": "data.b"}
	for name, test := range map[string]struct {
		with map[string]any
		want string // pointer and message
	}{
		"valid":                   {map[string]any{"query": "{ a }"}, ""},
		"valid pages":             {map[string]any{"query": "query ($after: String) { a(after: $after) }", "paginate": paginate}, ""},
		"an address without host": {map[string]any{"query": "{ a }", "url": "/graphql"}, "/url must be an absolute http or https URL"},
		"invalid syntax":          {map[string]any{"query": "{\n a(\n}"}, `/query is not valid GraphQL: line 3: unexpected "}"`},
		"a subscription":          {map[string]any{"query": "subscription { a }"}, "/query a subscription cannot be sent: a step gets one answer to each request"},
		"one of several":          {map[string]any{"query": "subscription A { a } query B { b }", "operation_name": "B"}, ""},
		"not clear which":         {map[string]any{"query": "query A { a } query B { b }"}, "/operation_name is required, because the query has several operations: A, B"},
		"pages of a mutation":     {map[string]any{"query": "mutation ($after: Int) { a(x: $after) }", "paginate": paginate}, "/paginate needs a query: a mutation cannot be sent page by page"},
		"an undeclared variable":  {map[string]any{"query": "{ a }", "paginate": paginate}, "/paginate/variable the query does not declare the variable $after"},
		"returned errors of pages": {
			map[string]any{"query": "query ($after: String) { a(after: $after) }", "errors": "return", "paginate": paginate},
			"/errors cannot be return together with paginate",
		},
		"an expression of the run": {
			map[string]any{"query": "query ($after: String) { a(after: $after) }", "paginate": map[string]any{"items": "body.a", "next": "data.b"}}, "/paginate/items",
		},
	} {
		if test.with["url"] == nil {
			test.with["url"] = "https://shop.example/graphql"
		}
		entry := graphqlrequest.Entry(nil)
		problems := entry.Spec.Check(test.with)
		switch {
		case test.want == "" && len(problems) > 0, test.want != "" && len(problems) != 1:
			t.Errorf("%s: %+v", name, problems)
			continue
		case test.want == "":
			continue
		}
		if got := problems[0].Pointer + " " + problems[0].Message; !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
		if _, err := entry.Action.Run(t.Context(), action.Request{Input: test.with}); err == nil || !strings.HasPrefix(err.Error(), action.InvalidInput) {
			t.Errorf("%s runs: %v", name, err)
		}
	}
}

// A value in the text of a query could change what the query does.
func TestQueryCannotContainExpressions(t *testing.T) {
	t.Parallel()
	catalog, err := action.NewCatalog(graphqlrequest.Entry(nil))
	if err != nil {
		t.Fatal(err)
	}
	with := map[string]any{"url": "https://shop.example/graphql", "query": `{ order(id: "${{ trigger.payload.id }}") { id } }`}
	problems := catalog.Check("graphql.request", with, func(pointer string) bool { return pointer == "/query" })
	want := []action.Problem{{
		Pointer: "/query", Message: "cannot contain expressions", Hint: "declare a variable, as in query ($id: ID!), and give its value in variables",
	}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}
}

func TestAllCodesAreDeclared(t *testing.T) {
	t.Parallel()
	var declared []string
	for _, code := range graphqlrequest.Entry(nil).Spec.Codes {
		declared = append(declared, code.Name)
	}
	want := []string{graphqlrequest.GraphQLErrors, transfer.HTTPError, pages.Failed}
	for _, code := range egress.Codes() {
		want = append(want, string(code))
	}
	if diff := cmp.Diff(want, declared); diff != "" {
		t.Error(diff)
	}
}
