package egress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// sink records the requests that reach any host of a test.
type sink struct {
	mu    sync.Mutex
	calls []call
}

type call struct {
	method, host, path, body string
	header                   http.Header
}

func (s *sink) handle(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		host, _, _ := net.SplitHostPort(r.Host)
		s.mu.Lock()
		s.calls = append(s.calls, call{r.Method, host, r.URL.Path, string(body), r.Header})
		s.mu.Unlock()
		next(w, r)
	}
}

func (s *sink) last(t *testing.T) call {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == 0 {
		t.Fatal("no call came")
	}
	return s.calls[len(s.calls)-1]
}

// redirector redirects requests for /start to the URL in the query, with the
// status in the query.
func redirector(t *testing.T, s *sink) (client *egress.Client, port uint16) {
	t.Helper()
	server := serve(t, outside, s.handle(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/start" {
			fmt.Fprint(w, "end")
			return
		}
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(status)
	}))
	resolver := names{"one.test": {outside}, "two.test": {outside}, "sub.one.test": {outside}, "private.test": {"127.0.0.1"}}
	return newClient(t, egress.Config{Policy: internet, Resolver: resolver}), portOf(server.Listener.Addr())
}

func start(port uint16, status int, to string) string {
	return fmt.Sprintf("http://one.test:%d/start?status=%d&to=%s", port, status, strings.NewReplacer("%", "%25", "&", "%26", "#", "%23", "+", "%2B", " ", "%20").Replace(to))
}

func TestRejectsRedirectsToReservedAddresses(t *testing.T) {
	t.Parallel()
	decoy := newDecoy(t)
	client, port := redirector(t, &sink{})
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f000001", "0177.0.0.1", "127.1",
		"private.test", "169.254.169.254", "10.0.0.1", "①②⑦.⓪.⓪.①", "user:pass@one.test", "93.184.216.34:22@one.test",
	} {
		for _, to := range []string{"http://" + host, "https://" + host, "//" + host} {
			for _, status := range []int{301, 302, 303, 307, 308} {
				_, err := client.Do(t.Context(), egress.Request{
					URL: start(port, status, fmt.Sprintf("%s:%d/", to, decoy.port)), FollowRedirects: true, Timeout: 3 * time.Minute,
				})
				wantError(t, err, egress.Denied)
			}
		}
	}
	for _, to := range []string{"file:///etc/passwd", "gopher://one.test/", "javascript:alert(1)", "http://one.test:0/"} {
		_, err := client.Do(t.Context(), egress.Request{URL: start(port, 302, to), FollowRedirects: true})
		wantError(t, err, egress.Denied)
	}
	_, err := client.Do(t.Context(), egress.Request{URL: start(port, 302, "http://%zz/"), FollowRedirects: true})
	wantError(t, err, egress.InvalidResponse)
}

func TestRedirectsAreReturnedUnlessFollowed(t *testing.T) {
	t.Parallel()
	s := &sink{}
	client, port := redirector(t, s)
	resp, err := client.Do(t.Context(), egress.Request{Method: "POST", URL: start(port, 307, "http://127.0.0.1/"), Body: []byte("x")})
	if err != nil || resp.Status != 307 || resp.Header.Get("Location") != "http://127.0.0.1/" || len(s.calls) != 1 {
		t.Fatalf("%+v, %v, %d calls", resp, err, len(s.calls))
	}
	for _, status := range []int{300, 304, 305, 306, 399} {
		resp, err := client.Do(t.Context(), egress.Request{URL: start(port, status, "/end"), FollowRedirects: true})
		if err != nil || resp.Status != status {
			t.Errorf("%d: %+v, %v", status, resp, err)
		}
	}
	resp, err = client.Do(t.Context(), egress.Request{URL: start(port, 302, ""), FollowRedirects: true})
	if err != nil || resp.Status != 302 {
		t.Errorf("without a Location: %+v, %v", resp, err)
	}
}

func TestRedirectsToOtherHostsDropCredentials(t *testing.T) {
	t.Parallel()
	s := &sink{}
	client, port := redirector(t, s)
	other := serve(t, outside, s.handle(hello))
	given := http.Header{
		"Authorization": {secret}, "cookie": {secret}, "X-Api-Key": {secret}, "Proxy-Authorization": {secret},
		"X-Anything": {secret}, "Referer": {secret}, "Idempotency-Key": {secret},
		"Accept": {"text/plain"}, "Content-Type": {"text/csv"}, "User-Agent": {"test"},
	}
	here := fmt.Sprintf("http://one.test:%d", port)
	for to, stays := range map[string]bool{
		"/end":        true,
		here + "/end": true,
		strings.ToUpper(here[:15]) + here[15:] + "/end":                      true,
		fmt.Sprintf("http://two.test:%d/end", port):                          false,
		fmt.Sprintf("http://sub.one.test:%d/end", port):                      false,
		fmt.Sprintf("http://%s:%d/end", outside, port):                       false,
		fmt.Sprintf("http://one.test:%d/end", portOf(other.Listener.Addr())): false,
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			_, err := client.Do(t.Context(), egress.Request{URL: start(port, status, to), Header: given, FollowRedirects: true, Method: "PUT", Body: []byte("b")})
			if err != nil {
				t.Fatal(err)
			}
			got := s.last(t)
			for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Anything", "Referer", "Idempotency-Key"} {
				if arrived := got.header.Get(name) != ""; arrived != stays {
					t.Errorf("%d to %s: %s arrived: %t", status, to, name, arrived)
				}
			}
			if got.header.Get("Proxy-Authorization") != "" || got.header.Get("Accept") != "text/plain" || got.header.Get("User-Agent") != "test" {
				t.Errorf("%d to %s: %v", status, to, got.header)
			}
		}
	}
	if s.calls[0].header.Get("Authorization") != secret {
		t.Error("the first host did not get its credentials")
	}
}

func TestCredentialsStayDroppedAfterRedirectingBack(t *testing.T) {
	t.Parallel()
	s := &sink{}
	client, port := redirector(t, s)
	back := fmt.Sprintf("http://one.test:%d/end", port)
	away := fmt.Sprintf("http://two.test:%d/start?status=307&to=%s", port, back)
	_, err := client.Do(t.Context(), egress.Request{
		Method: "POST", URL: start(port, 307, away), Header: http.Header{"Authorization": {secret}}, Body: []byte("body"), FollowRedirects: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.last(t); got.host != "one.test" || got.header.Get("Authorization") != "" || got.body != "body" {
		t.Errorf("the last call was %+v", got)
	}
	// A body that one redirect dropped is not sent again after the next.
	away = fmt.Sprintf("http://two.test:%d/start?status=307&to=%s", port, back)
	if _, err := client.Do(t.Context(), egress.Request{Method: "POST", URL: start(port, 303, away), Body: []byte("body"), FollowRedirects: true}); err != nil {
		t.Fatal(err)
	}
	if got := s.last(t); got.method != "GET" || got.body != "" {
		t.Errorf("the last call was %+v", got)
	}
}

func TestRedirectsMatchNetHTTP(t *testing.T) {
	t.Parallel()
	s := &sink{}
	client, port := redirector(t, s)
	std := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", outside, port))
	}}}
	defer std.CloseIdleConnections()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			url := start(port, status, "/end?a=b")
			header := http.Header{"Content-Type": {"text/csv"}, "X-Other": {"y"}}
			resp, err := client.Do(t.Context(), egress.Request{Method: method, URL: url, Header: header, Body: []byte("body"), FollowRedirects: true})
			if err != nil || !strings.HasSuffix(resp.URL, "/end?a=b") {
				t.Fatalf("%+v, %v", resp, err)
			}
			ours := s.last(t)
			req, _ := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("body"))
			req.Header = header.Clone()
			answer, err := std.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			theirs := s.last(t)
			if ours.method != theirs.method || ours.body != theirs.body || ours.header.Get("Content-Type") != theirs.header.Get("Content-Type") {
				t.Errorf("%s after %d: %+v, net/http has %+v", method, status, ours, theirs)
			}
		}
	}
}

func TestRedirectLimit(t *testing.T) {
	t.Parallel()
	var calls int
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		calls++
		left, _ := strconv.Atoi(r.URL.Path[1:])
		if left > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d?key=%s", left-1, secret), http.StatusFound)
		}
	})
	client := newClient(t, egress.Config{Policy: internet})
	do := func(hops int) error {
		calls = 0
		_, err := client.Do(t.Context(), egress.Request{URL: fmt.Sprintf("%s/%d", server.URL, hops), FollowRedirects: true})
		return err
	}
	if err := do(5); err != nil || calls != 6 {
		t.Errorf("five: %v, %d calls", err, calls)
	}
	wantError(t, do(6), egress.TooManyRedirects)
	wantError(t, do(1000), egress.TooManyRedirects)
	if calls != 6 {
		t.Errorf("%d calls", calls)
	}
}
