package httprequest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
)

// pages is a step that reads pages from a test server. It calls the action as the
// engine does: again with the state of each checkpoint.
type pages struct {
	t           *testing.T
	server      *httptest.Server
	calls       []string // method, URI, body
	keys        []string
	logs        []string
	checkpoints int
	maxOutput   int
	files       *actiontest.Files // nil for none
	held        []int             // how many files each checkpoint has
	chunks      []string
	state       string // to begin with
	secrets     *mask.Masker
}

func newPages(t *testing.T, handler http.HandlerFunc) *pages {
	t.Helper()
	p := &pages{t: t}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.calls = append(p.calls, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		p.keys = append(p.keys, r.Header.Get("Idempotency-Key"))
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		w.Header().Set("Content-Type", "application/json")
		handler(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// read runs the step. The URL in with is relative to the test server.
func (p *pages) read(with map[string]any) (map[string]any, *action.Failure) {
	p.t.Helper()
	client := egress.New(egress.Config{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	p.t.Cleanup(client.Close)
	with["url"] = p.server.URL + with["url"].(string)
	req := action.Request{
		Input: with, Now: time.Now(), Workspace: "ws_a", IdempotencyKey: "run_1/step", MaxOutput: p.maxOutput,
		Log:  func(_ action.Level, message string) { p.logs = append(p.logs, message) },
		Mask: hideTokens, Secrets: p.secrets,
	}
	if p.state != "" {
		req.State = []byte(p.state)
	}
	if p.files != nil {
		req.Files = p.files
	}
	for {
		result, err := httprequest.Entry(client).Action.Run(p.t.Context(), req)
		if failure, ok := errors.AsType[*action.Failure](err); ok {
			return nil, failure
		}
		if err != nil {
			p.t.Fatal(err)
		}
		if result.Checkpoint == nil {
			output, _ := result.Output.(map[string]any)
			delete(output, "headers")
			return output, nil
		}
		p.checkpoints++
		p.held = append(p.held, len(result.Checkpoint.Files))
		p.chunks = append(p.chunks, string(result.Checkpoint.Chunk))
		if err := req.Resume(*result.Checkpoint); err != nil {
			p.t.Fatal(err)
		}
	}
}

// numbered responds with the numbers of a page of two, out of five.
func numbered(w http.ResponseWriter, from int, more string) {
	var items []string
	for n := from; n < min(from+2, 5); n++ {
		items = append(items, strconv.Itoa(n))
	}
	fmt.Fprintf(w, `{"items": [%s], %s}`, strings.Join(items, ","), more)
}

func byOffset(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	numbered(w, from, `"total": 5`)
}

func TestPaginationStyles(t *testing.T) {
	t.Parallel()
	five := []any{0, 1, 2, 3, 4}
	cursor := func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("after"), "c"))
		next := fmt.Sprintf(`"c%d"`, from+2)
		if from >= 4 {
			next = "null"
		}
		numbered(w, from, `"next": `+next)
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		with    map[string]any
		calls   []string
		items   []any
	}{
		"a cursor in the query": {
			cursor, map[string]any{"url": "/a?x=1", "query": map[string]any{"limit": 2}, "paginate": map[string]any{"style": "cursor", "param": "after", "items": "body.items", "next": "body.next"}},
			[]string{"GET /a?x=1&limit=2", "GET /a?x=1&after=c2&limit=2", "GET /a?x=1&after=c4&limit=2"}, five,
		},
		"a cursor in the body": {
			func(w http.ResponseWriter, r *http.Request) {
				var q struct{ Variables struct{ After, First int } }
				_ = json.NewDecoder(r.Body).Decode(&q)
				numbered(w, q.Variables.After, fmt.Sprintf(`"page": {"end": %d, "more": %t}`, q.Variables.After+2, q.Variables.After < 4))
			},
			map[string]any{
				"url": "/q", "method": "POST", "body": map[string]any{"variables": map[string]any{"first": 2}},
				"paginate": map[string]any{"style": "cursor", "param": "variables.after", "in": "body", "items": "body.items", "next": "body.page.end", "more": "body.page.more"},
			},
			[]string{`POST /q {"variables":{"first":2}}`, `POST /q {"variables":{"after":2,"first":2}}`, `POST /q {"variables":{"after":4,"first":2}}`}, five,
		},
		"a cursor in a form": {
			func(w http.ResponseWriter, r *http.Request) {
				from, _ := strconv.Atoi(r.PostFormValue("cursor"))
				numbered(w, from, fmt.Sprintf(`"next": %d, "more": %t`, from+2, from < 4))
			},
			map[string]any{
				"url": "/q", "method": "POST", "form": map[string]any{"a": "b"},
				"paginate": map[string]any{"style": "cursor", "in": "body", "items": "body.items", "next": "body.next", "more": "body.more"},
			},
			[]string{"POST /q a=b", "POST /q a=b&cursor=2", "POST /q a=b&cursor=4"}, five,
		},
		"page numbers until a page is empty": {
			func(w http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				numbered(w, (page-1)*2, `"x": 1`)
			},
			map[string]any{"url": "/a", "paginate": map[string]any{"style": "page", "items": "body.items"}},
			[]string{"GET /a?page=1", "GET /a?page=2", "GET /a?page=3", "GET /a?page=4"}, five,
		},
		"page numbers until a page is not full, from 0": {
			func(w http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("p"))
				numbered(w, page*2, `"x": 1`)
			},
			map[string]any{"url": "/a", "paginate": map[string]any{"style": "page", "param": "p", "start": 0, "size": 2, "items": "body.items"}},
			[]string{"GET /a?p=0", "GET /a?p=1", "GET /a?p=2"}, five,
		},
		"page numbers with the number of pages in a header": {
			func(w http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				w.Header().Set("X-Pages", "2")
				numbered(w, (page-1)*2, `"x": 1`)
			},
			map[string]any{"url": "/a", "paginate": map[string]any{"style": "page", "items": "body.items", "more": `page.number < int(headers["x-pages"])`}},
			[]string{"GET /a?page=1", "GET /a?page=2"}, five[:4],
		},
		"offsets": {
			byOffset,
			map[string]any{"url": "/a", "paginate": map[string]any{"style": "offset", "items": "body.items"}},
			[]string{"GET /a?offset=0", "GET /a?offset=2", "GET /a?offset=4", "GET /a?offset=5"}, five,
		},
		"offsets that grow by the size although items filters": {
			byOffset,
			map[string]any{"url": "/a", "paginate": map[string]any{"style": "offset", "size": 2, "items": "filter(body.items, # % 2 == 1)", "more": "page.offset + page.size < body.total"}},
			[]string{"GET /a?offset=0", "GET /a?offset=2", "GET /a?offset=4"}, []any{1, 3},
		},
		"the header Link": {
			func(w http.ResponseWriter, r *http.Request) {
				from, _ := strconv.Atoi(r.URL.Query().Get("from"))
				w.Header().Add("Link", `</first>; rel="first"`)
				if from < 4 {
					w.Header().Add("Link", fmt.Sprintf(`<?from=%d>; title="a, <b>"; rel="other Next"`, from+2))
				}
				numbered(w, from, `"x": 1`)
			},
			map[string]any{"url": "/list", "query": map[string]any{"from": 0}, "paginate": map[string]any{"style": "link", "items": "body.items"}},
			[]string{"GET /list?from=0", "GET /list?from=2", "GET /list?from=4"}, five,
		},
		"an absolute next URL": {
			func(w http.ResponseWriter, r *http.Request) {
				from, _ := strconv.Atoi(r.URL.Query().Get("from"))
				next := ""
				if from < 4 {
					next = fmt.Sprintf("http://%s/more?from=%d", r.Host, from+2)
				}
				numbered(w, from, fmt.Sprintf(`"next": {"href": %q}`, next))
			},
			map[string]any{"url": "/list", "query": map[string]any{"from": 0}, "paginate": map[string]any{"style": "next_url", "items": "body.items", "next": "body.next.href"}},
			[]string{"GET /list?from=0", "GET /more?from=2", "GET /more?from=4"}, five,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPages(t, test.handler)
			output, failure := p.read(test.with)
			if failure != nil {
				t.Fatal(failure)
			}
			if diff := cmp.Diff(test.calls, p.calls); diff != "" {
				t.Errorf("the calls differ:\n%s", diff)
			}
			want := map[string]any{"items": test.items, "pages": len(test.calls), "more": false, "status": 200}
			if diff := cmp.Diff(want, output); diff != "" {
				t.Errorf("the output differs:\n%s", diff)
			}
			if p.checkpoints != len(test.calls)-1 {
				t.Errorf("%d checkpoints after %d pages", p.checkpoints, len(test.calls))
			}
			for i, key := range p.keys {
				if want := fmt.Sprintf("run_1/step/%d", i+1); key != want {
					t.Errorf("page %d has the key %q, want %q", i+1, key, want)
				}
			}
		})
	}
}

func TestPaginationEnds(t *testing.T) {
	t.Parallel()
	t.Run("at max_pages, and says that there are more", func(t *testing.T) {
		t.Parallel()
		p := newPages(t, byOffset)
		output, failure := p.read(map[string]any{"url": "/a", "paginate": map[string]any{"style": "offset", "items": "body.items", "max_pages": 2}})
		if failure != nil {
			t.Fatal(failure)
		}
		if diff := cmp.Diff(map[string]any{"items": []any{0, 1, 2, 3}, "pages": 2, "more": true, "status": 200}, output); diff != "" {
			t.Error(diff)
		}
		if len(p.logs) != 1 || !strings.Contains(p.logs[0], "max_pages") {
			t.Errorf("the log is %q", p.logs)
		}
	})
	t.Run("with an empty list", func(t *testing.T) {
		t.Parallel()
		p := newPages(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
		output, failure := p.read(map[string]any{"url": "/a", "paginate": map[string]any{"style": "cursor", "items": "body.items", "next": "body.next"}})
		if failure != nil {
			t.Fatal(failure)
		}
		if diff := cmp.Diff(map[string]any{"items": []any{}, "pages": 1, "more": false, "status": 200}, output); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPaginationFailures(t *testing.T) {
	t.Parallel()
	cursor := func(next string) map[string]any {
		return map[string]any{"style": "cursor", "items": "body.items", "next": next}
	}
	nextURL := func(format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"items": [1], "next": %q}`, strings.ReplaceAll(format, "HOST", r.Host))
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		with    map[string]any
		code    string
		message string
		calls   int
	}{
		"a cursor that repeats": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				next := map[string]string{"": "a", "a": "b", "b": "a"}[r.URL.Query().Get("cursor")]
				fmt.Fprintf(w, `{"items": [1], "next": %q}`, next)
			},
			with: map[string]any{"paginate": cursor("body.next")},
			code: "pagination_failed", message: "page 3 has the same cursor of the next page as page 1", calls: 3,
		},
		"a URL that repeats": {
			handler: nextURL("/a?page=2"),
			with:    map[string]any{"paginate": map[string]any{"style": "next_url", "items": "body.items", "next": "body.next"}},
			code:    "pagination_failed", message: "page 2 has the same URL of the next page as page 1", calls: 2,
		},
		"a URL on another host": {
			handler: nextURL("https://elsewhere.example/a?token=s3cr3t"),
			with:    map[string]any{"headers": map[string]any{"Authorization": "Bearer s3cr3t"}, "paginate": map[string]any{"style": "next_url", "items": "body.items", "next": "body.next"}},
			code:    "pagination_failed", message: "the next page is on elsewhere.example", calls: 1,
		},
		"a URL with another port": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", `<http://127.0.0.1:1/a>; rel=next`)
				fmt.Fprint(w, `[1]`)
			},
			with: map[string]any{"paginate": map[string]any{"style": "link", "items": "body"}},
			code: "pagination_failed", message: "the next page is on 127.0.0.1:1", calls: 1,
		},
		"a URL with another scheme": {
			handler: nextURL("ftp://HOST/a"),
			with:    map[string]any{"paginate": map[string]any{"style": "next_url", "items": "body.items", "next": "body.next"}},
			code:    "egress_denied", message: "must use http or https", calls: 1,
		},
		"a cursor that is an object": {
			handler: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items": [1], "next": {}}`) },
			with:    map[string]any{"paginate": cursor("body.next")},
			code:    "pagination_failed", message: "the cursor must be a string, a number or a boolean", calls: 1,
		},
		"items that are no list": {
			handler: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items": {}}`) },
			with:    map[string]any{"paginate": cursor("body.next")},
			code:    "expression_failed", message: "paginate/items: ", calls: 1,
		},
		"a failure of a page": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("cursor") {
					w.WriteHeader(http.StatusBadGateway)
				}
				fmt.Fprint(w, `{"items": [1], "next": 2}`)
			},
			with: map[string]any{"paginate": cursor("body.next")},
			code: "http_error", message: "502", calls: 2,
		},
		"a text body that should contain the cursor": {
			handler: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items": [1], "next": 2}`) },
			with:    map[string]any{"method": "POST", "body": "text", "paginate": map[string]any{"style": "cursor", "in": "body", "items": "body.items", "next": "body.next"}},
			code:    "invalid_input", message: "an object or a form", calls: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPages(t, test.handler)
			test.with["url"] = "/a"
			_, failure := p.read(test.with)
			if failure == nil || failure.Code != test.code || !strings.Contains(failure.Message, test.message) {
				t.Errorf("the failure is %v, want %s: %s", failure, test.code, test.message)
			}
			if failure != nil && strings.Contains(failure.Message, "s3cr3t") {
				t.Errorf("%v reveals a secret", failure)
			}
			if len(p.calls) != test.calls {
				t.Errorf("the calls are %q, want %d", p.calls, test.calls)
			}
		})
	}
}

// A page that fails is requested again with the same cursor and key.
func TestPageIsRepeatedAfterFailure(t *testing.T) {
	t.Parallel()
	handler := func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		fmt.Fprintf(w, `{"items": [%d], "next": %d, "more": %t}`, n, n+1, n < 2)
	}
	p := newPages(t, handler)
	with := map[string]any{"url": p.server.URL + "/a", "paginate": map[string]any{"style": "cursor", "items": "body.items", "next": "body.next", "more": "body.more"}}
	client := egress.New(egress.Config{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	t.Cleanup(client.Close)
	req := action.Request{Input: with, Workspace: "ws_a", IdempotencyKey: "k"}
	first, err := httprequest.Entry(client).Action.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := req.Resume(*first.Checkpoint); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the result of the first call is lost
		if _, err = httprequest.Entry(client).Action.Run(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"GET /a", "GET /a?cursor=1", "GET /a?cursor=1"}, p.calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"k/1", "k/2", "k/2"}, p.keys); diff != "" {
		t.Error(diff)
	}
}

// A checkpoint writes the page, not what was read before it.
func TestChunkOfPage(t *testing.T) {
	t.Parallel()
	p := newPages(t, byOffset)
	p.read(map[string]any{"url": "/a", "paginate": map[string]any{"style": "offset", "items": "body.items", "size": 2}})
	if diff := cmp.Diff([]string{"\n[0,1]", "\n[2,3]"}, p.chunks); diff != "" {
		t.Error(diff)
	}
}

// A step that an earlier release has begun, whose state has no chunks, continues.
func TestStateWithoutChunks(t *testing.T) {
	t.Parallel()
	p := newPages(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		fmt.Fprintf(w, `{"items": [%d], "next": %d}`, n, (n+1)%4)
	})
	sum := func(cursor string) string {
		hash := sha256.Sum256([]byte(cursor))
		return base64.RawURLEncoding.EncodeToString(hash[:6])
	}
	p.state = fmt.Sprintf(`{"pages": 2, "items": [0, 1], "cursor": 2, "offset": 2, "seen": %q}`, sum("1")+sum("2"))
	paginate := map[string]any{"style": "cursor", "items": "body.items", "next": "body.next", "max_pages": 4}
	output, failure := p.read(map[string]any{"url": "/a", "paginate": paginate})
	if diff := cmp.Diff([]any{0, 1, 2, 3}, output["items"]); failure != nil || diff != "" {
		t.Error(failure, diff)
	}
	paginate["max_pages"] = 10
	_, failure = p.read(map[string]any{"url": "/a", "paginate": paginate})
	if failure == nil || !strings.Contains(failure.Message, "page 5 has the same cursor of the next page as page 1") {
		t.Errorf("the failure is %v", failure)
	}
}

func TestPaginationIsCheckedOnSave(t *testing.T) {
	t.Parallel()
	spec := httprequest.Entry(nil)
	catalog, err := action.NewCatalog(spec)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		paginate map[string]any
		want     []string
	}{
		"valid":                        {map[string]any{"style": "page", "items": "body", "size": 50}, nil},
		"an expression as the style":   {map[string]any{"style": "${{ vars.style }}", "items": "body"}, nil},
		"an unknown style":             {map[string]any{"style": "pages", "items": "body"}, []string{"/paginate/style: must be one of"}},
		"no items":                     {map[string]any{"style": "page"}, []string{"/paginate/items: is required"}},
		"no next":                      {map[string]any{"style": "cursor", "items": "body"}, []string{"/paginate/next: is required for the style cursor"}},
		"next of another style":        {map[string]any{"style": "link", "items": "body", "next": "body.next"}, []string{"/paginate/next: cannot be used with the style link"}},
		"an expression with a mistake": {map[string]any{"style": "page", "items": "body.["}, []string{"/paginate/items: "}},
		"a name of the workflow":       {map[string]any{"style": "page", "items": "steps.get.output"}, []string{"/paginate/items: unknown name steps; an expression can use body, headers, page, status"}},
		"too many pages":               {map[string]any{"style": "page", "items": "body", "max_pages": 10001}, []string{"/paginate/max_pages: "}},
		"an unknown member":            {map[string]any{"style": "page", "items": "body", "limit": 1}, []string{"/paginate/limit: unknown field"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := map[string]any{"url": "https://shop.example/", "paginate": test.paginate}
			problems := catalog.Check("http.request", with, func(pointer string) bool {
				return pointer == "/paginate/style" && strings.Contains(test.paginate["style"].(string), "${{")
			})
			if len(problems) != len(test.want) {
				t.Fatalf("the problems are %+v, want %q", problems, test.want)
			}
			for i, want := range test.want {
				if got := problems[i].Pointer + ": " + problems[i].Message; !strings.HasPrefix(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

// hideTokens masks the member token of each item.
func hideTokens(output map[string]any) (map[string]any, error) {
	path, err := mask.ParsePath("items.token")
	if err != nil {
		return nil, err
	}
	masked, _ := mask.Hide(output, []mask.Path{path}).(map[string]any)
	return masked, nil
}

// A list that is too large for the state is written to files in between, without masked
// values, and becomes a list file.
func TestLargeListBecomesAListFile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ size, last, files int }{{10, 5, 0}, {100, 20, 5}, {100, 21, 5}, {400, 7, 3}, {2000, 3, 3}} {
		p := newPages(t, func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			fmt.Fprintf(w, `{"items": [{"n": %d, "token": "s3cr3t", "text": %q}], "next": %d, "more": %t}`, n, strings.Repeat("x", tc.size), n+1, n < tc.last-1)
		})
		p.files, p.maxOutput = actiontest.NewFiles(), 1000
		output, failure := p.read(map[string]any{"url": "/a", "paginate": map[string]any{"style": "cursor", "items": "body.items", "next": "body.next", "more": "body.more"}})
		if failure != nil {
			t.Fatalf("%+v: %v", tc, failure)
		}
		if tc.files == 0 {
			if list, ok := output["items"].([]any); !ok || len(list) != tc.last {
				t.Errorf("%+v: got %v", tc, output)
			}
			continue
		}
		file, ok := output["items"].(*expr.File)
		if !ok || file.List == nil || file.List.Count != tc.last || output["pages"] != tc.last || output["status"] != 200 || output["more"] != false {
			t.Fatalf("%+v: got %v", tc, output)
		}
		if got := p.held[len(p.held)-1]; got != tc.files || len(p.files.Content) != got+1 {
			t.Errorf("%+v: the last checkpoint has %d files of %d", tc, got, len(p.files.Content))
		}
		lines := strings.Split(strings.TrimSuffix(string(p.files.Content[file.ID]), "\n"), "\n")
		for n, line := range lines {
			if want := fmt.Sprintf(`{"n":%d,"text":%q,"token":"***"}`, n, strings.Repeat("x", tc.size)); line != want {
				t.Errorf("%+v: line %d is %.80s", tc, n, line)
			}
		}
		if len(lines) != tc.last || len(p.calls) != tc.last || p.files.Unclosed > 0 || p.files.Aborted > 0 {
			t.Errorf("%+v: %d lines, %d calls, %d open, %d aborted", tc, len(lines), len(p.calls), p.files.Unclosed, p.files.Aborted)
		}
		for id, content := range p.files.Content {
			if strings.Contains(string(content), "s3cr3t") {
				t.Errorf("%s has a masked value", id)
			}
		}
	}
}

// The limits of files end a step that reads too much.
func TestLargeListExceedsTheLimitOfFiles(t *testing.T) {
	t.Parallel()
	p := newPages(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		fmt.Fprintf(w, `{"items": [%q], "next": %d}`, strings.Repeat("x", 100), n+1)
	})
	p.files, p.maxOutput = actiontest.NewFiles(), 1000
	p.files.Limit = 3000
	_, failure := p.read(map[string]any{"url": "/a", "paginate": map[string]any{"style": "cursor", "items": "body.items", "next": "body.next", "max_pages": 40}})
	if failure == nil || failure.Code != "file_too_large" {
		t.Errorf("the failure is %v", failure)
	}
}

// The expression for items sees no secrets, of which it could make anything. The one for
// the next page does, because it may need them.
func TestItemsAreMadeOfMaskedPages(t *testing.T) {
	t.Parallel()
	p := newPages(t, func(w http.ResponseWriter, r *http.Request) {
		next := ""
		if r.URL.Query().Get("key") == "" {
			next = "/?key=hunter22"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"secret": "hunter22", "next": next})
	})
	p.secrets = mask.New([]string{"hunter22"})
	output, failure := p.read(map[string]any{"url": "/", "paginate": map[string]any{"style": "next_url", "next": "body.next", "items": "split(body.secret, '')"}})
	if failure != nil {
		t.Fatal(failure)
	}
	if diff := cmp.Diff([]any{"*", "*", "*", "*", "*", "*"}, output["items"]); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if len(p.calls) != 2 || p.calls[1] != "GET /?key=hunter22" {
		t.Errorf("calls %q", p.calls)
	}
}
