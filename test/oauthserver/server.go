// Package oauthserver is an OAuth 2 server for tests. Its access tokens are short-lived,
// its refresh tokens rotate and are valid once, and it can be told to be slow, to fail
// and to revoke what it issued. It also serves a protected resource.
package oauthserver

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The client that is registered at the server.
const (
	ClientID     = "client-of-stepmill"
	ClientSecret = "secret-of-the-client"
)

// Server is an OAuth 2 server.
type Server struct {
	URL string

	mu sync.Mutex
	// life is how long access tokens are valid.
	life time.Duration
	// delay is how long the token endpoint takes.
	delay time.Duration
	// fails is the error of the token endpoint, or "".
	fails string
	// before is called for each request to the token endpoint if it is not nil.
	before func(*http.Request)
	// respond replaces the token endpoint if it is not nil.
	respond http.HandlerFunc
	// rotates reports whether a refresh token is valid only once.
	rotates bool
	// echoes reports whether errors repeat the request.
	echoes bool
	// interval is the seconds between two requests of a device.
	interval int
	// revokeStatus is the status of the revocation endpoint.
	revokeStatus int
	// secret is that of the client, and key its public key if it signs assertions instead.
	secret string
	key    crypto.PublicKey
	public bool            // it may also have none
	jtis   map[string]bool // of the assertions that were used

	codes    map[string]grant     // by code
	devices  map[string]*device   // by device code
	tooFast  int                  // requests for a token before the interval had passed
	access   map[string]time.Time // access tokens, with their expiry
	refresh  map[string]bool      // refresh tokens
	issued   []string
	requests map[string]int        // to the token endpoint, by grant type
	forms    map[string]url.Values // of the last of them
	media    string                // of the last request to the token or the revocation endpoint
	served   map[string]int        // requests for the resource that were allowed, by idempotency key
	rejected int                   // and those that were not
	revoked  []string              // the tokens that were sent to the revocation endpoint
}

type grant struct{ challenge, redirect string }

// device is a code that a person is asked to enter.
type device struct {
	userCode string
	answer   string // of the token endpoint, until the person consents: "" then
	askedAt  time.Time
}

// Start starts a server on a free port of the loopback interface.
func Start(t *testing.T) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), life: time.Hour, rotates: true, revokeStatus: http.StatusOK, secret: ClientSecret,
		codes: map[string]grant{}, devices: map[string]*device{}, interval: 1, access: map[string]time.Time{}, refresh: map[string]bool{}, requests: map[string]int{}, forms: map[string]url.Values{}, jtis: map[string]bool{}, served: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /device", s.device)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", s.revoke)
	mux.HandleFunc("/resource", s.resource)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// Set changes how the server behaves.
func (s *Server) Set(change func(*Settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := Settings{
		Life: s.life, Delay: s.delay, Fails: s.fails, Before: s.before, Respond: s.respond, Rotates: s.rotates, Echoes: s.echoes, RevokeStatus: s.revokeStatus, Secret: s.secret, Key: s.key,
		Interval: s.interval, Public: s.public,
	}
	change(&now)
	s.life, s.delay, s.fails, s.before, s.respond = now.Life, now.Delay, now.Fails, now.Before, now.Respond
	s.interval, s.public = now.Interval, now.Public
	s.rotates, s.echoes, s.revokeStatus, s.secret, s.key = now.Rotates, now.Echoes, now.RevokeStatus, now.Secret, now.Key
}

// Settings is how the server behaves.
type Settings struct {
	Life  time.Duration // of access tokens; zero: they have no expires_in
	Delay time.Duration // of the token endpoint
	Fails string        // the error of the token endpoint; "" for none
	// Before, if not nil, is called for each request to the token endpoint, which has no
	// effect and gets no answer before it returns.
	Before func(*http.Request)
	// Respond, if not nil, replaces the token endpoint.
	Respond http.HandlerFunc
	Rotates bool // a refresh token is valid only once
	Echoes  bool // errors of the token endpoint repeat the request
	// RevokeStatus is the status of the revocation endpoint, which revokes nothing
	// unless it is 200.
	RevokeStatus int
	Secret       string // of the client; ClientSecret at first
	// Key is the public key of a client that authenticates with signed assertions, for
	// the token URL, and not with its secret.
	Key crypto.PublicKey
	// Public reports whether the client may name itself without a secret.
	Public   bool
	Interval int // seconds between two requests of a device
}

// RevokeAll makes every token that was issued invalid.
func (s *Server) RevokeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	clear(s.refresh)
}

// ExpireAll makes every access token invalid. Refresh tokens stay valid.
func (s *Server) ExpireAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
}

// Requests returns the number of requests to the token endpoint with a grant type.
func (s *Server) Requests(grantType string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[grantType]
}

// Form returns the parameters of the last request to the token endpoint with a grant type.
func (s *Server) Form(grantType string) url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forms[grantType]
}

// Media returns the content type of the last request to the token or the revocation
// endpoint.
func (s *Server) Media() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.media
}

// Served returns how many requests for the resource were allowed, by their idempotency
// key.
func (s *Server) Served() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.served)
}

// Rejected returns how many requests for the resource had no valid token.
func (s *Server) Rejected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejected
}

// Issued returns every token that was ever issued, to look for where none must be.
func (s *Server) Issued() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.issued...)
}

// Revoked returns the tokens that were sent to the revocation endpoint by the client.
func (s *Server) Revoked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.revoked...)
}

// Consent does what a person and a browser do at an authorize URL: it consents and
// returns the parameters that the server sends back to the redirect URL.
func (s *Server) Consent(t *testing.T, authorizeURL string) url.Values {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(authorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	location, err := resp.Location()
	if err != nil {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return location.Query()
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || query.Get("client_id") != ClientID || query.Get("response_type") != "code" || query.Get("state") == "" {
		http.Error(w, "invalid request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	s.mu.Lock()
	s.codes[code] = grant{query.Get("code_challenge"), query.Get("redirect_uri")}
	s.mu.Unlock()
	params := back.Query()
	params.Set("code", code)
	params.Set("state", query.Get("state"))
	back.RawQuery = params.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// device issues a code for a person. Scopes and other parameters are ignored.
func (s *Server) device(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := parseParams(r); err != nil || r.PostForm.Get("client_id") != ClientID || !s.isClient(r) {
		fail(w, "invalid_client", "the client is unknown")
		return
	}
	s.forms["device"] = r.PostForm
	code, userCode := s.issue("device"), rand.Text()[:8]
	s.devices[code] = &device{userCode: userCode, answer: "authorization_pending", askedAt: time.Now()}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"device_code": code, "user_code": userCode, "verification_uri": s.URL + "/enter", "verification_uri_complete": s.URL + "/enter?code=" + userCode,
		"expires_in": 600, "interval": s.interval,
	})
}

// Decide does what a person does who enters a code. The answer is the error of the token
// endpoint from then on, or "" if the person consents.
func (s *Server) Decide(t *testing.T, userCode, answer string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if d.userCode == userCode {
			d.answer = answer
			return
		}
	}
	t.Fatalf("there is no code %q", userCode)
}

// TooFast returns how often a device has asked before its interval had passed.
func (s *Server) TooFast() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tooFast
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if err := parseParams(r); err != nil {
		fail(w, "invalid_request", err.Error())
		return
	}
	s.mu.Lock()
	delay, before := s.delay, s.before
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return
	}
	if before != nil {
		before(r)
	}
	if r.Context().Err() != nil { // the client has given up
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[r.PostForm.Get("grant_type")]++
	s.forms[r.PostForm.Get("grant_type")] = r.PostForm
	s.media = r.Header.Get("Content-Type")
	if s.respond != nil {
		s.respond(w, r)
		return
	}
	description := "the test server says so"
	if s.echoes {
		description = fmt.Sprint(r.Header.Get("Authorization"), " ", r.PostForm.Encode(), " ", r.PostForm)
	}
	if s.fails != "" {
		fail(w, s.fails, description)
		return
	}
	if code := s.check(r); code != "" {
		fail(w, code, description)
		return
	}
	answer := map[string]any{"access_token": s.issue("access"), "token_type": "Bearer"}
	s.access[answer["access_token"].(string)] = time.Now().Add(cmp.Or(s.life, time.Hour))
	if s.life > 0 {
		answer["expires_in"] = int(s.life.Seconds())
	}
	if r.PostForm.Get("grant_type") != "client_credentials" {
		next := s.issue("refresh")
		s.refresh[next] = true
		answer["refresh_token"] = next
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// parseParams reads the parameters of a request, which are a form or JSON, into its form.
func parseParams(r *http.Request) error {
	if r.Header.Get("Content-Type") != "application/json" {
		return r.ParseForm()
	}
	var members map[string]string
	err := json.NewDecoder(r.Body).Decode(&members)
	r.PostForm = url.Values{}
	for name, value := range members {
		r.PostForm.Set(name, value)
	}
	return err
}

// check returns the error of a request for a token, or "".
func (s *Server) check(r *http.Request) string {
	if !s.isClient(r) {
		return "invalid_client"
	}
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		code := r.PostForm.Get("code")
		given, ok := s.codes[code]
		delete(s.codes, code)
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		challenge := base64.RawURLEncoding.EncodeToString(sum[:])
		if !ok || given.redirect != r.PostForm.Get("redirect_uri") || given.challenge != "" && given.challenge != challenge {
			return "invalid_grant"
		}
	case "refresh_token":
		old := r.PostForm.Get("refresh_token")
		if !s.refresh[old] {
			return "invalid_grant"
		}
		if s.rotates {
			delete(s.refresh, old)
		}
	case "urn:ietf:params:oauth:grant-type:device_code":
		return s.checkDevice(r.PostForm.Get("device_code"))
	case "client_credentials":
	default:
		return "unsupported_grant_type"
	}
	return ""
}

func (s *Server) checkDevice(code string) string {
	d, ok := s.devices[code]
	if !ok {
		return "invalid_grant"
	}
	if time.Since(d.askedAt) < time.Duration(s.interval)*time.Second-100*time.Millisecond {
		s.tooFast++
	}
	d.askedAt = time.Now()
	if d.answer == "" {
		delete(s.devices, code) // it can be used once
	}
	return d.answer
}

// isClient reports whether a request has the credentials of the client.
func (s *Server) isClient(r *http.Request) bool {
	if s.key != nil {
		return s.isSigned(r)
	}
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	return id == ClientID && (secret == s.secret || s.public && secret == "" && !basic)
}

// isSigned reports whether a request has a valid assertion of the client, by the rules of
// RFC 7523, section 3. An assertion can be used once.
func (s *Server) isSigned(r *http.Request) bool {
	all := []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}
	token, err := jwt.ParseSigned(r.PostForm.Get("client_assertion"), all)
	if err != nil {
		return false
	}
	var claims jwt.Claims
	if token.Claims(s.key, &claims) != nil {
		return false
	}
	expected := jwt.Expected{Issuer: ClientID, Subject: ClientID, AnyAudience: jwt.Audience{s.URL + "/token"}, Time: time.Now()}
	isFresh := claims.ID != "" && !s.jtis[claims.ID] && claims.Expiry != nil && time.Until(claims.Expiry.Time()) < 10*time.Minute
	s.jtis[claims.ID] = true
	return isFresh && len(claims.Audience) == 1 && claims.Validate(expected) == nil && !r.PostForm.Has("client_secret") && r.Header.Get("Authorization") == "" &&
		r.PostForm.Get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
}

func (s *Server) issue(kind string) string {
	token := fmt.Sprintf("%s-%s", kind, rand.Text())
	s.issued = append(s.issued, token)
	return token
}

func fail(w http.ResponseWriter, code, description string) {
	status := http.StatusBadRequest
	switch code {
	case "invalid_client":
		status = http.StatusUnauthorized
	case "server_error":
		status = http.StatusInternalServerError
	case "temporarily_unavailable":
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": description})
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := parseParams(r); err != nil || !s.isClient(r) {
		fail(w, "invalid_client", "the client is unknown")
		return
	}
	token := r.PostForm.Get("token")
	s.revoked, s.media = append(s.revoked, token), r.Header.Get("Content-Type")
	if s.revokeStatus == http.StatusOK {
		delete(s.access, token)
		delete(s.refresh, token)
	}
	w.WriteHeader(s.revokeStatus)
}

// resource requires an access token.
func (s *Server) resource(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if expiry, ok := s.access[token]; !ok || time.Now().After(expiry) {
		s.rejected++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.served[r.Header.Get("Idempotency-Key")]++
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"account": "ada@example.com", "method": r.Method, "key": r.Header.Get("Idempotency-Key")})
}
