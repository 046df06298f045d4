package api_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/config"
)

// provider is a small identity provider that authenticates everyone with the
// claims of the test.
type provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu     sync.Mutex
	down   bool           // codes cannot be exchanged
	claims map[string]any // claims of the next user
	codes  map[string]url.Values
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeTestJSON(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		public := p.key.PublicKey
		writeTestJSON(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": base64URL(public.N.Bytes()), "e": base64URL(big.NewInt(int64(public.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func base64URL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func writeTestJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// authorize acts as a browser at the provider: it returns the callback URL with
// a code.
func (p *provider) authorize(t *testing.T, address string) (back *url.URL) {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, p.URL+"/authorize?") {
		t.Fatalf("the browser is sent to %s", address)
	}
	query := to.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": "stepmill", "code_challenge_method": "S256", "scope": "openid email profile"} {
		if got := query.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = query
	p.mu.Unlock()
	back, err = url.Parse(query.Get("redirect_uri"))
	if err != nil {
		t.Fatal(err)
	}
	back.RawQuery = url.Values{"code": {code}, "state": {query.Get("state")}, "session_state": {"x"}, "iss": {p.URL}}.Encode()
	return back
}

// token exchanges a code for an ID token, once, if verifier and secret are
// right.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		panic(http.ErrAbortHandler)
	}
	code := r.FormValue("code")
	query, known := p.codes[code]
	delete(p.codes, code)
	id, secret, _ := r.BasicAuth()
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !known || base64URL(challenge[:]) != query.Get("code_challenge") || id != "stepmill" || secret != "s3cret" || r.FormValue("redirect_uri") != query.Get("redirect_uri") {
		http.Error(w, `{"error": "invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": "stepmill", "sub": "1", "nonce": query.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, p.claims)
	header, body := must(json.Marshal(map[string]string{"alg": "RS256", "kid": "1"})), must(json.Marshal(claims))
	signed := base64URL(header) + "." + base64URL(body)
	sum := sha256.Sum256([]byte(signed))
	signature := must(rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:]))
	if claims["forged"] == true {
		signature[0] ^= 1
	}
	writeTestJSON(w, map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": signed + "." + base64URL(signature)})
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// setClaims sets the claims of the next user.
func (p *provider) setClaims(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// newServerWithProvider starts a server with the provider.
func newServerWithProvider(t *testing.T, p *provider, role string) *server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return newServer(t, func(c *config.Serve) {
		c.OIDC = config.OIDC{Issuer: p.URL, ClientID: "stepmill", ClientSecret: file, Role: role}
	})
}

// startSignIn returns the provider's URL and the flow cookie.
func startSignIn(t *testing.T, s *server, next string) (address, cookie string) {
	t.Helper()
	path := "/ui/v1/oidc/start"
	if next != "" {
		path += "?next=" + url.QueryEscape(next)
	}
	a := s.anonymous(t).call("GET", path, "").wantStatus(302)
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	return a.header.Get("Location"), cookie
}

// callbackClient accepts undocumented query parameters, which providers send.
func callbackClient(t *testing.T, s *server) client {
	t.Helper()
	c := s.anonymous(t)
	c.lenient = true
	return c
}

// callbackSession returns a client with the session that a callback started. The flow
// cookie must be gone.
func callbackSession(a *response) client {
	a.t.Helper()
	var token string
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.Name == "__Host-stepmill" {
			token = c.Value
		} else if c.MaxAge >= 0 {
			a.t.Errorf("%s stays", c.Name)
		}
	}
	return client{t: a.t, server: a.server, token: token}
}

func TestOIDCSignIn(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := newServerWithProvider(t, p, "operator")
	if a := s.anonymous(t).call("GET", "/ui/v1/welcome", "").wantStatus(200); !strings.Contains(string(a.body), `"oidc":true`) {
		t.Errorf("%s", a.body)
	}
	enter := func(next string, claims map[string]any) *response {
		p.setClaims(claims)
		address, cookie := startSignIn(t, s, next)
		return callbackClient(t, s).call("GET", p.authorize(t, address).RequestURI(), "", "Cookie", cookie).wantStatus(302)
	}
	a := enter("/runs?status=failed", map[string]any{"email": "Grace@Example.com", "email_verified": true, "name": "Grace"})
	if got := a.header.Get("Location"); got != s.url+"/runs?status=failed" {
		t.Errorf("the browser is sent to %s", got)
	}
	session := callbackSession(a).call("GET", "/ui/v1/session", "").wantStatus(200)
	if session.str("role") != "operator" || !strings.Contains(string(session.body), `"email":"grace@example.com","name":"Grace","has_password":false`) {
		t.Errorf("%s", session.body)
	}
	// The same subject is the same user.
	enter("", map[string]any{"email": "grace@example.com", "email_verified": "true"})
	if rows := s.query(t, `SELECT count(*) FROM users`); rows[0][0] != "1" {
		t.Errorf("there are %s users", rows[0][0])
	}
	enter("", map[string]any{"aud": []string{"stepmill", "another"}, "azp": "stepmill"})
	// Even with another e-mail address, verified or not.
	if got := enter("/runs", map[string]any{"email": "hopper@example.com"}).header.Get("Location"); got != s.url+"/runs" {
		t.Errorf("with another address the browser is sent to %s", got)
	}
	for name, claims := range map[string]map[string]any{
		"oidc_unverified":   {"sub": "2", "email": "ada@example.com"},
		"oidc_unknown_user": {"sub": "2", "email": "grace@example.com", "email_verified": true}, // her address, now of another subject
		"oidc_failed":       {"sub": "2", "email": "ada@example.com", "email_verified": true, "nonce": "another"},
	} {
		if got := enter("", claims).header.Get("Location"); got != s.url+"/sign-in?error="+name {
			t.Errorf("%v: the browser is sent to %s", claims, got)
		}
	}
	for _, claims := range []map[string]any{
		{"aud": "another"}, {"azp": "another"}, {"aud": []string{"stepmill", "another"}}, {"iss": "https://evil.example"}, {"exp": 1}, {"forged": true}, {"sub": "2", "email": "no address"}, {"sub": ""},
	} {
		maps.Copy(claims, map[string]any{"email_verified": true})
		if got := enter("", claims).header.Get("Location"); !strings.Contains(got, "/sign-in?error=oidc_failed") {
			t.Errorf("%v: the browser is sent to %s", claims, got)
		}
	}
	for next, want := range map[string]string{"//evil.example": "/", "https://evil.example/": "/", "/\\evil.example": "/", "runs": "/", "/runs": "/runs"} {
		if got := enter(next, map[string]any{"email": "grace@example.com", "email_verified": true}).header.Get("Location"); got != s.url+want {
			t.Errorf("%s leads to %s", next, got)
		}
	}
	if rows := s.query(t, `SELECT count(*) FROM users`); rows[0][0] != "1" {
		t.Errorf("there are %s users", rows[0][0])
	}
}

// Callbacks that do not belong to a sign-in of this browser are rejected.
func TestInvalidOIDCCallbacks(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := newServerWithProvider(t, p, "viewer")
	p.setClaims(map[string]any{"email": "grace@example.com", "email_verified": true})
	failed := func(path, cookie, code string) {
		t.Helper()
		a := callbackClient(t, s).call("GET", path, "", "Cookie", cookie).wantStatus(302)
		if got := a.header.Get("Location"); got != s.url+"/sign-in?error="+code || strings.Contains(fmt.Sprint(a.header["Set-Cookie"]), "__Host-stepmill=") {
			t.Errorf("%s: the browser is sent to %s with %v", path, got, a.header["Set-Cookie"])
		}
	}
	address, cookie := startSignIn(t, s, "")
	back := p.authorize(t, address)
	failed(back.RequestURI(), "", "oidc_failed")
	failed(back.RequestURI(), "__Host-stepmill-oidc=e30", "oidc_failed")
	_, other := startSignIn(t, s, "")
	failed(back.RequestURI(), other, "oidc_failed")
	query := back.Query()
	query.Set("iss", "https://evil.example")
	failed(back.Path+"?"+query.Encode(), cookie, "oidc_failed")
	failed(back.Path+"?error=access_denied&state="+query.Get("state"), cookie, "oidc_denied")
	failed(back.Path+"?code=made-up&state="+query.Get("state"), cookie, "oidc_failed")
	failed(back.Path, cookie, "oidc_failed")
	callbackClient(t, s).call("GET", back.RequestURI(), "", "Cookie", cookie).wantStatus(302)
	failed(back.RequestURI(), cookie, "oidc_failed") // the code is used up
}

// Without a role only existing users can sign in; without a provider the routes
// do not exist.
func TestOIDCWithoutRole(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := newServerWithProvider(t, p, "")
	w := s.newTestWorkspace(t)
	user := w.addUser("editor")
	enter := func(subject, email, want string) {
		t.Helper()
		p.setClaims(map[string]any{"sub": subject, "email": email, "email_verified": true})
		address, cookie := startSignIn(t, s, "")
		if got := callbackClient(t, s).call("GET", p.authorize(t, address).RequestURI(), "", "Cookie", cookie).wantStatus(302).header.Get("Location"); got != s.url+want {
			t.Errorf("%s, %s, is sent to %s", subject, email, got)
		}
	}
	const unknown = "/sign-in?error=oidc_unknown_user"
	enter("0", "stranger@example.com", unknown)
	enter("1", user.email, "/")
	enter("1", "renamed@example.com", "/")
	enter("2", user.email, unknown) // the address now belongs to another subject
	// Another provider uses other subjects.
	s.query(t, `UPDATE users SET identity = 'https://before.example 7' WHERE email = ?`, user.email)
	enter("2", user.email, "/")
	enter("1", user.email, unknown)
	if got := s.query(t, `SELECT count(*) FROM audit WHERE action = 'user.updated' AND details LIKE '%' || ? || '%'`, p.URL)[0][0]; got != "2" {
		t.Errorf("%s entries in the audit log", got)
	}
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	address, cookie := startSignIn(t, s, "")
	if got := callbackClient(t, s).call("GET", p.authorize(t, address).RequestURI(), "", "Cookie", cookie).wantStatus(302).header.Get("Location"); got != s.url+"/sign-in?error=oidc_failed" {
		t.Errorf("the browser is sent to %s", got)
	}
	sharedServer(t).anonymous(t).call("GET", "/ui/v1/oidc/start", "").wantStatus(404, "not_found")
	sharedServer(t).anonymous(t).call("POST", "/ui/v1/invitations/accept-with-provider", `{"token": "x"}`).wantStatus(404, "not_found")
	sharedServer(t).anonymous(t).call("GET", "/ui/v1/oidc/callback?code=x&state=y", "").wantStatus(404, "not_found")
}

// A person who has no password accepts an invitation through the provider.
func TestAcceptInvitationWithProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := newServerWithProvider(t, p, "")
	w := s.newTestWorkspace(t)
	const address = "grace@example.com"
	token := linkToken(t, w.call("POST", "/v1/invitations", fmt.Sprintf(`{"email": %q, "role": "editor"}`, address)).wantStatus(201).str("link"))
	start := func(token string) *response {
		return s.anonymous(t).call("POST", "/ui/v1/invitations/accept-with-provider", fmt.Sprintf(`{"token": %q}`, token))
	}
	accept := func(query string, claims map[string]any) *response {
		t.Helper()
		p.setClaims(claims)
		begun := start(token).wantStatus(200)
		cookie, _, _ := strings.Cut(begun.header.Get("Set-Cookie"), ";")
		back := p.authorize(t, begun.str("url"))
		if query != "" {
			back.RawQuery = query + "&state=" + back.Query().Get("state")
		}
		return callbackClient(t, s).call("GET", back.RequestURI(), "", "Cookie", cookie).wantStatus(302)
	}
	for want, claims := range map[string]map[string]any{
		"oidc_other_address": {"email": "stranger@example.com", "email_verified": true},
		"oidc_unverified":    {"email": address},
		"oidc_failed":        {"email": address, "email_verified": true, "nonce": "another"},
	} {
		if got := accept("", claims).header.Get("Location"); got != s.url+"/invitation?error="+want {
			t.Errorf("%v: the browser is sent to %s", claims, got)
		}
	}
	if got := accept("error=access_denied", nil).header.Get("Location"); got != s.url+"/invitation?error=oidc_denied" {
		t.Errorf("without consent the browser is sent to %s", got)
	}
	accepted := accept("", map[string]any{"email": address, "email_verified": true, "name": "Grace"})
	if got := accepted.header.Get("Location"); got != s.url+"/workflows" {
		t.Errorf("the browser is sent to %s", got)
	}
	session := callbackSession(accepted).call("GET", "/ui/v1/session", "").wantStatus(200)
	if session.str("role") != "editor" || !strings.Contains(string(session.body), w.id) || !strings.Contains(string(session.body), `"name":"Grace"`) {
		t.Errorf("%s", session.body)
	}
	start(token).wantStatus(404, "link_not_found")
}
