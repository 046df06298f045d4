package egress_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/egress"
)

func TestRejectsHeadersThatWouldSplitARequest(t *testing.T) {
	t.Parallel()
	s := &sink{}
	server := serve(t, outside, s.handle(hello))
	client := newClient(t, egress.Config{Policy: internet})
	for _, header := range []http.Header{
		{"X-A": {secret + "\r\nX-B: c"}},
		{"X-A": {"fine", secret + "\n"}},
		{"X-A": {secret + "\r"}},
		{"X-A": {secret + "\x00"}},
		{"X-A": {secret + "\x7f"}},
		{"X-A: " + secret + "\r\nX-B": {"c"}},
		{"Authorization: " + secret: {""}},
		{"": {"a"}},
		{"X A": {"a"}},
		{"Ä": {"a"}},
		{":authority": {"a"}},
		{"Host": {"other.test"}},
		{"host": {"other.test"}},
		{"Transfer-Encoding": {"chunked\r\n"}},
	} {
		_, err := client.Do(t.Context(), egress.Request{URL: server.URL, Header: header})
		wantError(t, err, egress.InvalidRequest)
	}
	for _, method := range []string{"CONNECT", "G T", "GET\r\n", "GET /", "Ä"} {
		_, err := client.Do(t.Context(), egress.Request{URL: server.URL, Method: method})
		wantError(t, err, egress.InvalidRequest)
	}
	if len(s.calls) != 0 {
		t.Errorf("%d calls arrived", len(s.calls))
	}
}

func TestDropsConnectionHeaders(t *testing.T) {
	t.Parallel()
	s := &sink{}
	server := serve(t, outside, s.handle(hello))
	client := newClient(t, egress.Config{Policy: internet, UserAgent: "Stepmill/1.2"})
	given := http.Header{
		"Connection": {"close, X-Kept"}, "Keep-Alive": {"x"}, "Proxy-Connection": {"x"}, "Proxy-Authorization": {secret}, "TE": {"trailers"},
		"Trailer": {"X-T"}, "transfer-encoding": {"chunked"}, "Upgrade": {"websocket"}, "Content-Length": {"999"}, "expect": {"100-continue"},
		"x-kept": {"a", "ä"}, "Authorization": {"Bearer x"}, "Empty": {""},
	}
	if _, err := client.Do(t.Context(), egress.Request{Method: "POST", URL: server.URL + "/p", Header: given, Body: []byte("body")}); err != nil {
		t.Fatal(err)
	}
	got := s.last(t)
	if got.body != "body" || got.path != "/p" {
		t.Errorf("arrived: %+v", got)
	}
	expected := map[string]string{
		"Accept-Encoding": "gzip", "Authorization": "Bearer x", "Content-Length": "4", "Empty": "", "User-Agent": "Stepmill/1.2", "X-Kept": "a|ä",
	}
	for name, values := range got.header {
		if value, ok := expected[name]; !ok || value != strings.Join(values, "|") {
			t.Errorf("%s: %q arrived", name, values)
		}
		delete(expected, name)
	}
	if len(expected) > 0 {
		t.Errorf("did not arrive: %v", expected)
	}
	if given.Get("Connection") == "" || len(given) != 13 {
		t.Errorf("the caller's header was changed: %v", given)
	}
}

func TestDefaultHeaders(t *testing.T) {
	t.Parallel()
	s := &sink{}
	server := serve(t, outside, s.handle(hello))
	client := newClient(t, egress.Config{Policy: internet})
	resp, err := client.Do(t.Context(), egress.Request{URL: server.URL + "/a b?c#fragment"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.last(t); got.method != "GET" || got.header.Get("User-Agent") != "Stepmill" || got.body != "" {
		t.Errorf("arrived: %+v", got)
	}
	if resp.Status != 200 || string(resp.Body) != "hello" || !strings.HasPrefix(resp.URL, server.URL+"/a%20b?c") || resp.Truncated {
		t.Errorf("answered: %+v", resp)
	}
	own := http.Header{"User-Agent": {"mine"}, "Accept-Encoding": {"identity"}}
	if _, err := client.Do(t.Context(), egress.Request{URL: server.URL, Header: own}); err != nil {
		t.Fatal(err)
	}
	if got := s.last(t); fmt.Sprint(got.header["User-Agent"], got.header["Accept-Encoding"]) != "[mine] [identity]" {
		t.Errorf("arrived: %v", got.header)
	}
}
