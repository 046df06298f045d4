package httprequest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
)

// call runs the action against a test server with the real client.
func call(t *testing.T, handler http.HandlerFunc, with map[string]any) (map[string]any, *action.Failure) {
	t.Helper()
	return callWith(t, nil, serve(t, handler), with)
}

// echo returns the request in its response.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Method", r.Method)
	w.Header().Set("X-Uri", r.URL.RequestURI())
	w.Header().Set("X-Type", r.Header.Get("Content-Type"))
	w.Header().Set("X-Key", r.Header.Get("Idempotency-Key"))
	w.Header().Set("X-Depth", r.Header.Get("X-Service-Depth"))
	w.Header().Set("X-Token", r.Header.Get("X-Custom"))
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write(body)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		with map[string]any
		want map[string]string
		body string
	}{
		"a plain GET carries the key of the step and the depth of the run": {
			map[string]any{"url": "/x"},
			map[string]string{"x-depth": "4", "x-method": "GET", "x-uri": "/x", "x-key": "run_1/step", "x-type": ""}, "",
		},
		"an object is sent as JSON": {
			map[string]any{"url": "/x", "method": "POST", "body": map[string]any{"n": 9007199254740993, "t": "<&>"}},
			map[string]string{"x-method": "POST", "x-type": "application/json"}, `{"n":9007199254740993,"t":"<&>"}`,
		},
		"a string is sent as text": {
			map[string]any{"url": "/x", "method": "PUT", "body": "hello"},
			map[string]string{"x-method": "PUT", "x-type": "text/plain; charset=utf-8"}, "hello",
		},
		"XML is sent as XML": {
			map[string]any{"url": "/x", "method": "POST", "xml": "<a>é</a>"},
			map[string]string{"x-method": "POST", "x-type": "application/xml; charset=utf-8"}, "<a>é</a>",
		},
		"XML with another type": {
			map[string]any{"url": "/x", "method": "POST", "xml": "<a/>", "headers": map[string]any{"content-type": "application/soap+xml"}},
			map[string]string{"x-type": "application/soap+xml"}, "<a/>",
		},
		"text with another type": {
			map[string]any{"url": "/x", "method": "POST", "body": "a,b\r\n", "headers": map[string]any{"Content-Type": "text/csv"}},
			map[string]string{"x-type": "text/csv"}, "a,b\r\n",
		},
		"a form is sent as a form": {
			map[string]any{"url": "/x", "method": "POST", "form": map[string]any{"a": "1&2", "b": []any{1, true}}},
			map[string]string{"x-type": "application/x-www-form-urlencoded"}, "a=1%262&b=1&b=true",
		},
		"query fields are added and escaped, null is omitted": {
			map[string]any{"url": "/x?a=1", "query": map[string]any{"b": "x y&z", "c": nil, "d": []any{1, 2.5}}},
			map[string]string{"x-uri": "/x?a=1&b=x+y%26z&d=1&d=2.5"}, "",
		},
		"headers of the step take precedence, except the depth": {
			map[string]any{"url": "/x", "method": "POST", "body": "<a/>", "headers": map[string]any{"Content-Type": "application/xml", "Idempotency-Key": "mine", "X-Custom": 7, "x-service-depth": 0}},
			map[string]string{"x-type": "application/xml", "x-key": "mine", "x-token": "7", "x-depth": "4"}, "<a/>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, failure := call(t, echo, test.with)
			if failure != nil {
				t.Fatal(failure)
			}
			headers, _ := output["headers"].(map[string]any)
			for header, want := range test.want {
				got, _ := headers[header].(string)
				if got != want {
					t.Errorf("%s = %q, want %q", header, got, want)
				}
			}
			if output["body"] != test.body || output["status"] != 200 {
				t.Errorf("got %v", output)
			}
		})
	}
}

func TestFailureStatuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status    int
		failOn    any
		fails     bool
		retryable bool
	}{
		{200, nil, false, false}, {204, nil, false, false}, {399, nil, false, false},
		{400, nil, true, false}, {401, nil, true, false}, {404, nil, true, false}, {422, nil, true, false},
		{408, nil, true, true}, {425, nil, true, true}, {429, nil, true, true}, {500, nil, true, true}, {503, nil, true, true},
		{404, ">=500", false, false}, {503, ">=500", true, true}, {503, "never", false, false}, {201, ">=200", true, false},
	} {
		with := map[string]any{"url": "/secret?token=abc"}
		if test.failOn != nil {
			with["fail_on"] = test.failOn
		}
		_, failure := call(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.status) }, with)
		if (failure != nil) != test.fails {
			t.Errorf("%d with %v: %v", test.status, test.failOn, failure)
			continue
		}
		if failure == nil {
			continue
		}
		if failure.Code != transfer.HTTPError || failure.Retryable != test.retryable || strings.Contains(failure.Message, "token") {
			t.Errorf("%d with %v: %+v", test.status, test.failOn, failure)
		}
	}
}

func TestFailureContainsTheResponse(t *testing.T) {
	t.Parallel()
	_, failure := call(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"reason": "out of memory"}`)
	}, map[string]any{"url": "/"})
	want := map[string]any{
		"status": 500, "body": map[string]any{"reason": "out of memory"},
		"headers": map[string]any{"content-type": "application/json", "content-length": "27"},
	}
	if failure == nil {
		t.Fatal("status 500 is not a failure")
	}
	if diff := cmp.Diff(want, failure.Output); diff != "" {
		t.Error(diff)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]time.Duration{
		"120":                  {120 * time.Second, 120 * time.Second},
		"":                     {0, 0},
		"-5":                   {0, 0},
		"soon":                 {0, 0},
		"99999999999999999999": {0, 0},
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat):       {0, 0},
		time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat): {9 * time.Minute, 10 * time.Minute},
	} {
		_, failure := call(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", text)
			w.WriteHeader(http.StatusTooManyRequests)
		}, map[string]any{"url": "/"})
		if failure.RetryAfter < want[0] || failure.RetryAfter > want[1] {
			t.Errorf("Retry-After %q: got %s", text, failure.RetryAfter)
		}
	}
}

func TestClientErrors(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]action.Failure{
		"http://10.0.0.1/":            {Code: "egress_denied"},
		"http://127.0.0.1:1/":         {Code: "connection_failed", Retryable: true},
		"http://user:pass@127.0.0.1/": {Code: "egress_denied"},
		"http://127.0.0.1:1/\x7f":     {Code: "invalid_request"},
	} {
		_, failure := call(t, echo, map[string]any{"url": url})
		if failure == nil || failure.Code != want.Code || failure.Retryable != want.Retryable {
			t.Errorf("%q: %+v", url, failure)
		}
	}
}

func TestAllCodesAreDeclared(t *testing.T) {
	t.Parallel()
	var declared []string
	for _, code := range httprequest.Entry(nil).Spec.Codes {
		declared = append(declared, code.Name)
	}
	want := []string{transfer.HTTPError, "pagination_failed"}
	for _, code := range egress.Codes() {
		want = append(want, string(code))
	}
	if diff := cmp.Diff(want, declared); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidValues(t *testing.T) {
	t.Parallel()
	for _, with := range []map[string]any{
		{"url": "/", "query": map[string]any{"a": map[string]any{}}},
		{"url": "/", "headers": map[string]any{"A": []any{1}}},
		{"url": "/", "form": map[string]any{"a": []any{[]any{1}}}},
	} {
		if _, failure := call(t, echo, with); failure == nil || failure.Code != action.InvalidInput {
			t.Errorf("%v: %+v", with, failure)
		}
	}
	if _, failure := call(t, echo, map[string]any{"url": "/", "headers": map[string]any{"A": "x\r\nB: y"}}); failure == nil || failure.Retryable {
		t.Errorf("a line break in a header is accepted: %+v", failure)
	}
}

func TestOnlyOneBody(t *testing.T) {
	t.Parallel()
	check := httprequest.Entry(nil).Spec.Check
	for _, test := range []struct {
		with map[string]any
		want []action.Problem
	}{
		{map[string]any{"xml": "<a/>"}, nil},
		{map[string]any{"body": nil, "form": map[string]any{}}, nil},
		{map[string]any{"body": "a", "form": map[string]any{}}, []action.Problem{{Pointer: "/form", Message: "cannot be sent together with body"}}},
		{map[string]any{"xml": "<a/>", "form": map[string]any{}}, []action.Problem{{Pointer: "/xml", Message: "cannot be sent together with form"}}},
		{map[string]any{"xml": "<a/>", "body": 1}, []action.Problem{{Pointer: "/xml", Message: "cannot be sent together with body"}}},
	} {
		if diff := cmp.Diff(test.want, check(test.with)); diff != "" {
			t.Errorf("%v:\n%s", test.with, diff)
		}
	}
}
