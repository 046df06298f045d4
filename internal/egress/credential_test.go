package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// testCredential puts a secret into a header and the query of requests to its hosts.
type testCredential struct {
	hosts []string // with their ports
	move  string   // where it tries to send the request
	err   error
	tls   egress.TLS
}

func (c testCredential) Allows(u *url.URL) bool { return slices.Contains(c.hosts, u.Host) }

func (c testCredential) TLS() egress.TLS { return c.tls }

func (c testCredential) Apply(r *http.Request) error {
	r.Header.Set("Authorization", "Bearer "+secret)
	query := r.URL.Query()
	query.Set("key", secret)
	u := *r.URL
	u.RawQuery = query.Encode()
	if c.move != "" {
		u.Host = c.move
	}
	r.URL = &u
	return c.err
}

// request is what a server has received.
type request struct{ host, authorization, key, body string }

// credentialed starts a server that records its requests, and redirects those for
// /to/<status> to the URL in the query.
func credentialed(t *testing.T) (address string, received func() []request) {
	t.Helper()
	var (
		mu  sync.Mutex
		got []request
	)
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, request{r.Host, strings.Join(r.Header.Values("Authorization"), ","), strings.Join(r.URL.Query()["key"], ","), string(body)})
		mu.Unlock()
		var status int
		if n, _ := fmt.Sscanf(r.URL.Path, "/to/%d", &status); n == 1 {
			w.Header().Set("Location", r.URL.Query().Get("url"))
			w.WriteHeader(status)
		}
	})
	return server.Listener.Addr().String(), func() []request {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// TestCredentialOnRedirects checks that only hosts of a credential receive it, whatever
// redirects there.
func TestCredentialOnRedirects(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet})
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, listed := range map[string]bool{"to another host": false, "to a listed host": true} {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				t.Parallel()
				first, atFirst := credentialed(t)
				second, atSecond := credentialed(t)
				credential := testCredential{hosts: []string{first}}
				want := request{host: second}
				if listed {
					credential.hosts = append(credential.hosts, second)
					want.authorization, want.key = "Bearer "+secret, secret
				}
				if status >= 307 {
					want.body = "body"
				}
				resp, err := client.Do(t.Context(), egress.Request{
					Workspace: "w", Method: http.MethodPost, URL: fmt.Sprintf("http://%s/to/%d?url=http://%s/end?a=b", first, status, second), Body: []byte("body"),
					Credential: credential, FollowRedirects: true, Timeout: 3 * time.Minute, Header: http.Header{"Authorization": {"Basic of the user"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := atFirst(); len(got) != 1 || got[0] != (request{first, "Bearer " + secret, secret, "body"}) {
					t.Errorf("the first host received %+v", got)
				}
				if got := atSecond(); len(got) != 1 || got[0] != want {
					t.Errorf("the second host received %+v", got)
				}
				if resp.URL != "http://"+second+"/end?a=b" {
					t.Errorf("the response is from %s", resp.URL)
				}
			})
		}
	}
}

// TestCredentialComesBack checks a redirect that leaves the hosts and returns.
func TestCredentialComesBack(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet})
	first, atFirst := credentialed(t)
	second, atSecond := credentialed(t)
	back := url.QueryEscape("http://" + first + "/end")
	resp, err := client.Do(t.Context(), egress.Request{
		Workspace: "w", URL: fmt.Sprintf("http://%s/to/302?url=%s", first, url.QueryEscape("http://"+second+"/to/302?url="+back)),
		Credential: testCredential{hosts: []string{first}}, FollowRedirects: true, Timeout: 3 * time.Minute,
	})
	if err != nil || resp.URL != "http://"+first+"/end" {
		t.Fatalf("%+v, %v", resp, err)
	}
	if got := atSecond(); len(got) != 1 || got[0].authorization != "" || got[0].key != "" {
		t.Errorf("the other host received %+v", got)
	}
	if got := atFirst(); len(got) != 2 || got[1].authorization != "Bearer "+secret || got[1].key != secret {
		t.Errorf("the host received %+v", got)
	}
}

// TestCredentialForAnotherHost checks that a request to a host that must not receive the
// credential is rejected before anything is sent.
func TestCredentialForAnotherHost(t *testing.T) {
	t.Parallel()
	d := newDecoy(t)
	target := net.JoinHostPort(outside, fmt.Sprint(d.port))
	client := newClient(t, egress.Config{Policy: internet})
	for name, credential := range map[string]testCredential{
		"not one of its hosts":      {hosts: []string{"api.example.com"}},
		"no hosts":                  {},
		"it changes the host":       {hosts: []string{target}, move: "127.1.0.2:1"},
		"it cannot be added":        {hosts: []string{target}, err: errors.New("no key")},
		"the same host, other port": {hosts: []string{outside}},
	} {
		for _, follow := range []bool{false, true} {
			_, err := client.Do(t.Context(), egress.Request{
				Workspace: "w", URL: "http://" + target + "/", Credential: credential, FollowRedirects: follow, Timeout: 3 * time.Minute,
			})
			code := egress.Denied
			if credential.err != nil {
				code = egress.InvalidRequest
			}
			if failure := wantError(t, err, code); failure.Message == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// tlsCredential is a credential for hosts with TLS only.
type tlsCredential struct{ testCredential }

func (c tlsCredential) Allows(u *url.URL) bool {
	return u.Scheme == "https" && c.testCredential.Allows(u)
}

// TestCredentialNamesTheScheme checks that the error about a host says which scheme it was
// used with, and that the scheme alone is wrong if it is.
func TestCredentialNamesTheScheme(t *testing.T) {
	t.Parallel()
	d := newDecoy(t)
	target := net.JoinHostPort(outside, fmt.Sprint(d.port))
	client := newClient(t, egress.Config{Policy: internet})
	for want, hosts := range map[string][]string{
		"the host " + target + " of the connection means https":                     {target},
		"must not be used for http://" + target + ", which is not one of its hosts": {"api.example.com"},
	} {
		credential := tlsCredential{testCredential{hosts: hosts}}
		_, err := client.Do(t.Context(), egress.Request{Workspace: "w", URL: "http://" + target + "/", Credential: credential, Timeout: 3 * time.Minute})
		if failure := wantError(t, err, egress.Denied); !strings.Contains(failure.Message, want) {
			t.Errorf("message %q does not contain %q", failure.Message, want)
		}
	}
}

// TestCredentialIsNotShown checks that a credential in the query is neither in the URL
// of the response nor in errors.
func TestCredentialIsNotShown(t *testing.T) {
	t.Parallel()
	client := newClient(t, egress.Config{Policy: internet})
	address, received := credentialed(t)
	for _, follow := range []bool{false, true} {
		resp, err := client.Do(t.Context(), egress.Request{
			Workspace: "w", URL: "http://" + address + "/a?key=of-the-user&b=c", Credential: testCredential{hosts: []string{address}}, FollowRedirects: follow, Timeout: 3 * time.Minute,
			Header: http.Header{"Authorization": {"Basic of the user", "Basic twice"}},
		})
		if err != nil || resp.URL != "http://"+address+"/a?key=of-the-user&b=c" {
			t.Errorf("%+v, %v", resp, err)
		}
	}
	for _, got := range received() {
		if got.authorization != "Bearer "+secret || got.key != secret {
			t.Errorf("what the user gave was not replaced: %+v", got)
		}
	}

	garbage := strings.TrimPrefix(rawServer(t, func(conn net.Conn) { fmt.Fprint(conn, "garbage\r\n\r\n") }), "http://")
	cut := strings.TrimPrefix(rawServer(t, func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx") }), "http://")
	loop := strings.TrimPrefix(rawServer(t, func(conn net.Conn) {
		fmt.Fprint(conn, "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")
	}), "http://")
	for name, tc := range map[string]struct {
		host string
		code egress.Code
	}{
		"nobody listens":       {outside + refusing, egress.ConnectionFailed},
		"no HTTP":              {garbage, egress.InvalidResponse},
		"a body cut short":     {cut, egress.ConnectionFailed},
		"a loop of redirects":  {loop, egress.TooManyRedirects},
		"a cancelled request":  {address, egress.Cancelled},
		"a name that is wrong": {"nobody.example", egress.ConnectionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.code == egress.Cancelled {
				cancel()
			}
			client := newClient(t, egress.Config{Policy: internet, Resolver: names{}})
			_, err := client.Do(ctx, egress.Request{
				Workspace: "w", URL: "http://" + tc.host + "/a", Credential: testCredential{hosts: []string{tc.host}}, FollowRedirects: true, Timeout: 3 * time.Minute,
			})
			for cause := err; cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(cause.Error(), secret) {
					t.Errorf("%v reveals the credential", cause)
				}
			}
			wantError(t, err, tc.code)
		})
	}
}
