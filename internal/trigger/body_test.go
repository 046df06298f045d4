package trigger_test

import (
	"encoding/json"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
)

func contentType(media string) http.Header {
	h := http.Header{}
	if media != "" {
		h.Set("Content-Type", media)
	}
	return h
}

const form = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n" +
	"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\nhi\r\n" +
	"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ntwo\r\n--b--\r\n"

func TestParseBody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ media, body, want string }{
		"an object":                 {"application/json", `{"a": 9007199254740993}`, `{"a":9007199254740993}`},
		"an object after spaces":    {"application/json; charset=utf-8", " \r\n\t{}", `{}`},
		"another JSON value":        {"application/json", ` [1, "x"]`, `{"value":[1,"x"]}`},
		"null":                      {"application/json", `null`, `{"value":null}`},
		"a kind of JSON":            {"application/cloudevents+json", `{"a":1}`, `{"a":1}`},
		"nothing":                   {"application/json", ``, `{}`},
		"nothing at all":            {"", ``, `{}`},
		"a form":                    {"application/x-www-form-urlencoded", "a=1&b=2&b=3&c=%C3%A9+x&d", `{"a":"1","b":["2","3"],"c":"é x","d":""}`},
		"a form with three of one":  {"application/x-www-form-urlencoded", "b=1&b=2&b=3", `{"b":["1","2","3"]}`},
		"bytes in a form":           {"application/x-www-form-urlencoded", "a=%FF", `{"a":"` + "\uFFFD" + `"}`},
		"a form with a file":        {`multipart/form-data; boundary=b`, form, `{"a":["one","two"],"f":{"base64":"aGk=","content_type":"text/plain","filename":"x.txt"}}`},
		"text":                      {"text/plain", "hello <b>", `{"value":"hello <b>"}`},
		"text that looks like JSON": {"text/plain", `{"a":1}`, `{"value":"{\"a\":1}"}`},
		"XML":                       {"application/atom+xml", "<a/>", `{"value":"<a/>"}`},
		"text that is none":         {"text/plain", "\xff\x00", `{"base64":"/wA="}`},
		"bytes":                     {"application/octet-stream", "hi", `{"base64":"aGk="}`},
		"a picture":                 {"image/png", "\x89PNG", `{"base64":"iVBORw=="}`},
		"JSON without a type":       {"", `{"a":1}`, `{"a":1}`},
		"text without a type":       {"", "a=1", `{"value":"a=1"}`},
		"bytes without a type":      {"", "\xff", `{"base64":"/w=="}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload, err := trigger.ParseBody(contentType(test.media), []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(payload, &got); err != nil {
				t.Fatalf("%s: %v", payload, err)
			}
			_ = json.Unmarshal([]byte(test.want), &want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseBodyErrors(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for name, test := range map[string]struct {
		media, body string
		want        fault.Code
	}{
		"half a JSON value":       {"application/json", `{"a":`, fault.InvalidJSON},
		"two JSON values":         {"application/json", `{} {}`, fault.InvalidJSON},
		"a key twice":             {"application/json", `{"a":1,"a":2}`, fault.InvalidJSON},
		"bytes in JSON":           {"application/json", "{\"a\":\"\xff\"}", fault.InvalidJSON},
		"a bomb of depth":         {"application/json", deep, fault.InvalidJSON},
		"a bomb of elements":      {"application/json", "[" + strings.Repeat("1,", 1_000_000) + "1]", fault.InvalidJSON},
		"a bomb of digits":        {"application/json", strings.Repeat("9", 100_000), fault.InvalidJSON},
		"a bomb of one key":       {"application/json", `{"` + strings.Repeat("k", 1<<20) + `":1}`, fault.InvalidJSON},
		"a bomb of fields":        {"application/x-www-form-urlencoded", strings.Repeat("a=1&", 200_000), fault.InvalidRequest},
		"a form that is none":     {"application/x-www-form-urlencoded", "a=%zz", fault.InvalidRequest},
		"multipart of no parts":   {"multipart/form-data", form, fault.InvalidRequest},
		"multipart that is cut":   {"multipart/form-data; boundary=b", form[:40], fault.InvalidRequest},
		"a field without a name":  {"multipart/form-data; boundary=b", "--b\r\n\r\nx\r\n--b--\r\n", fault.InvalidRequest},
		"too many parts":          {"multipart/form-data; boundary=b", strings.Repeat("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n", 1001) + "--b--\r\n", fault.InvalidRequest},
		"a type that is none":     {"a b c", "x", fault.UnsupportedMediaType},
		"a boundary that is none": {"multipart/form-data; boundary=", form, fault.UnsupportedMediaType},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := trigger.ParseBody(contentType(test.media), []byte(test.body)); !fault.Is(err, test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	packed := contentType("application/json")
	packed.Set("Content-Encoding", "gzip")
	if _, err := trigger.ParseBody(packed, []byte("{}")); !fault.Is(err, fault.UnsupportedMediaType) {
		t.Errorf("got %v", err)
	}
}

// A body without a content type is tried as JSON first, which must be cheap. Not
// parallel: it measures what the process allocates.
func TestParseBodyNestingBomb(t *testing.T) {
	body, least := []byte(strings.Repeat("[", 1<<20)), uint64(math.MaxUint64)
	for range 5 { // other goroutines only add to a measurement
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := trigger.ParseBody(contentType(""), body); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if least > 20<<20 {
		t.Errorf("%d bytes", least)
	}
}

func TestHeadersAndQuery(t *testing.T) {
	t.Parallel()
	h := http.Header{
		"X-Github-Event": {"push"}, "Accept": {"a", "b"}, "Authorization": {"Bearer x"}, "Cookie": {"s=1"}, "Proxy-Authorization": {"x"},
		"Connection": {"close"}, "X-Token": {"t"}, "X-Bytes": {"\xff"},
	}
	want := map[string]any{"x-github-event": "push", "accept": "a, b", "x-bytes": "\uFFFD"}
	if diff := cmp.Diff(want, trigger.HeaderValues(h, "x-token")); diff != "" {
		t.Error(diff)
	}
	for raw, want := range map[string]map[string]any{
		"":                              {},
		"a=1&b=2&b=3":                   {"a": "1", "b": []any{"2", "3"}},
		"a=%zz&b=1":                     {"b": "1"},
		"a=1;b=2&c=3":                   {"c": "3"},
		strings.Repeat("a=1&", 100_000): {},
	} {
		if diff := cmp.Diff(want, trigger.ParseQuery(raw)); diff != "" {
			t.Error(diff)
		}
	}
}

// Every payload is an object that strictjson accepts, because it is stored and
// read again.
func FuzzParseBody(f *testing.F) {
	for _, seed := range []struct{ media, body string }{
		{"application/json", `{"a": [1, null]}`}, {"application/x-www-form-urlencoded", "a=1&a=2"}, {"multipart/form-data; boundary=b", form},
		{"text/plain", "x"}, {"", "\xff"}, {"image/png", "x"}, {"multipart/form-data; boundary=\"", ""},
	} {
		f.Add(seed.media, seed.body, "a=1&b=%ff")
	}
	f.Fuzz(func(t *testing.T, media, body, query string) {
		if strings.ContainsAny(media, "\r\n") {
			return
		}
		payload, err := trigger.ParseBody(contentType(media), []byte(body))
		if err != nil {
			if _, ok := fault.As(err); !ok {
				t.Fatalf("got %v", err)
			}
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(payload, &object); err != nil || object == nil {
			t.Fatalf("%q: %v", payload, err)
		}
		if _, err := strictjson.Encode(trigger.ParseQuery(query)); err != nil {
			t.Fatal(err)
		}
	})
}
