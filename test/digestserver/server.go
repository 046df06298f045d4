// Package digestserver is a server with HTTP digest authentication for tests. It does not
// share code with the product.
package digestserver

import (
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// The credentials that the server accepts.
const (
	User     = "ada"
	Password = "password-of-ada"
)

// Server is a server with digest authentication. Its nonces are numbers, each for one
// request.
type Server struct {
	*httptest.Server
	challenge string
	hash      func() hash.Hash

	mu       sync.Mutex
	nonce    int
	stale    int
	password string
	requests []Request
}

// Request is a request that the server has received.
type Request struct {
	Authorization string
	Accepted      bool
	Body          int64 // its length, if it was accepted
}

// Start starts a server on 127.0.0.1 that hashes with a function. The challenge is what
// its challenges have beside realm and nonce.
func Start(t *testing.T, hash func() hash.Hash, challenge string) *Server {
	t.Helper()
	s := &Server{challenge: challenge, hash: hash, password: Password}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// SetPassword changes the password that the server accepts.
func (s *Server) SetPassword(password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.password = password
}

// ExpireNonces makes the server reject the next n right answers as too old.
func (s *Server) ExpireNonces(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = n
}

// Requests returns the requests since the last call.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// Accepted counts the requests that were accepted.
func Accepted(requests []Request) (n int) {
	for _, r := range requests {
		if r.Accepted {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := Request{Authorization: r.Header.Get("Authorization")}
	isRight := s.isRight(r)
	if got.Accepted = isRight && s.stale == 0; got.Accepted {
		got.Body, _ = io.Copy(io.Discard, r.Body)
	}
	s.requests = append(s.requests, got)
	if got.Accepted {
		return
	}
	s.nonce++
	challenge := fmt.Sprintf(`Digest nonce="%d", realm="shop", %s`, s.nonce, s.challenge)
	if isRight {
		s.stale--
		challenge += ", stale=true"
	}
	w.Header().Add("WWW-Authenticate", `Basic realm="shop"`)
	w.Header().Add("WWW-Authenticate", challenge)
	w.WriteHeader(http.StatusUnauthorized)
}

var param = regexp.MustCompile(`(\w+)="?([^",]*)"?`)

// isRight reports whether a request has the right answer to the last challenge.
func (s *Server) isRight(r *http.Request) bool {
	got := map[string]string{}
	for _, match := range param.FindAllStringSubmatch(r.Header.Get("Authorization"), -1) {
		got[match[1]] = match[2]
	}
	h := func(parts ...string) string {
		sum := s.hash()
		sum.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(sum.Sum(nil))
	}
	want := h(h(User, "shop", s.password), fmt.Sprint(s.nonce), "00000001", got["cnonce"], "auth", h(r.Method, r.URL.RequestURI()))
	return got["response"] == want && got["uri"] == r.URL.RequestURI() && got["username"] == User
}
