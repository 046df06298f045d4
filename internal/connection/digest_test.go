package connection_test

import (
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/digestserver"
)

func (in *installation) createDigest(s *digestserver.Server) connection.Connection {
	in.t.Helper()
	c, err := in.Create(in.t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.Digest, Fields: map[string]string{"username": digestserver.User, "password": digestserver.Password},
		Definition: encoded(in.t, map[string]any{"hosts": []string{s.URL}, "test_url": s.URL + "/me?a=b"}),
	})
	if err != nil {
		in.t.Fatal(err)
	}
	return c
}

func TestDigest(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*digestserver.Server{
		"MD5":     digestserver.Start(t, md5.New, `qop="auth,auth-int", opaque="x"`),
		"SHA-256": digestserver.Start(t, sha256.New, `qop="auth", algorithm=SHA-256`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t)
			c := in.createDigest(s)
			for _, stale := range []int{0, 1} {
				s.ExpireNonces(stale)
				if err := in.use("shop", s.URL+"/orders?from=a%20b&to=%C3%BC"); err != nil {
					t.Error(err)
				}
			}
			if result, err := in.Test(t.Context(), in.owner, c.ID); err != nil || result.Problem != "" || result.Connection.Status != connection.Connected {
				t.Errorf("%+v, %v", result, err)
			}
			requests := s.Requests()
			if n := digestserver.Accepted(requests); n != 3 || len(requests) != 2+3+2 {
				t.Errorf("%d of %d requests were accepted", n, len(requests))
			}
			for _, r := range requests {
				if r.Authorization != "" && !strings.HasPrefix(r.Authorization, "Digest ") || strings.Contains(r.Authorization, digestserver.Password) {
					t.Errorf("%s was sent", r.Authorization)
				}
			}
		})
	}
}

// TestDigestIsRejected checks that only the 401 after the answer says something about the
// credential.
func TestDigestIsRejected(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), digestserver.Start(t, md5.New, `qop="auth"`)
	c := in.createDigest(s)
	status := func() connection.Status {
		t.Helper()
		now, err := in.Get(t.Context(), in.owner, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.Status
	}
	if err := in.use("shop", s.URL); err != nil || status() != connection.Connected {
		t.Errorf("%s, %v", status(), err)
	}
	s.SetPassword("another one")
	s.Requests()
	err := in.use("shop", s.URL)
	if n := len(s.Requests()); n != 2+2 { // a request and a test, each with one answer
		t.Errorf("%d requests with a wrong password", n)
	}
	if failure, ok := errors.AsType[*action.Failure](err); !ok || !failure.Rejected || status() != connection.Failing {
		t.Errorf("%s, %v", status(), err)
	}
	s.SetPassword(digestserver.Password)
	if err := in.use("shop", s.URL); err != nil || status() != connection.Connected {
		t.Errorf("%s, %v", status(), err)
	}
}

// TestChallengeThatCannotBeAnswered checks that people are told what the server asks for.
func TestChallengeThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	for challenge, says := range map[string]string{
		"algorithm=SHA3-512": `the algorithm "SHA3-512" is not supported`,
		`qop="auth-conf"`:    `"auth-conf" is not supported`,
		`nonce="2"`:          "twice",
		`opaque="` + strings.Repeat("x", 9<<10) + `"`: "longer than 8 KiB",
	} {
		in, s := newInstallation(t), digestserver.Start(t, md5.New, challenge)
		c := in.createDigest(s)
		failure, ok := errors.AsType[*egress.Error](in.use("shop", s.URL))
		if !ok || failure.Code != egress.InvalidResponse || !strings.Contains(failure.Message, says) {
			t.Errorf("%v", failure)
		}
		result, err := in.Test(t.Context(), in.owner, c.ID)
		if err != nil || !strings.Contains(result.Problem, says) || result.Connection.Status != connection.Failing {
			t.Errorf("%+v, %v", result, err)
		}
	}
}

// TestDigestOnRedirects checks that a server behind a redirect gets no answer.
func TestDigestOnRedirects(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), digestserver.Start(t, md5.New, `qop="auth"`)
	first := httptest.NewServer(http.RedirectHandler(s.URL, http.StatusTemporaryRedirect))
	t.Cleanup(first.Close)
	if _, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.Digest, Fields: map[string]string{"username": digestserver.User, "password": digestserver.Password},
		Definition: encoded(t, map[string]any{"hosts": []string{first.URL}}),
	}); err != nil {
		t.Fatal(err)
	}
	err := in.use("shop", first.URL)
	if requests := s.Requests(); err == nil || len(requests) != 1 || requests[0].Authorization != "" {
		t.Errorf("%v, %+v", err, requests)
	}
}
