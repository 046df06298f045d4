package connections_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/certificate"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// recorder is a server that records what it receives. It says yes to everything: it
// issues tokens, and publishes the metadata of an issuer.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	received bytes.Buffer
	issued   int
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.issued++
	fmt.Fprintln(&r.received, request.Method, request.URL, request.Header, string(body))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": fmt.Sprintf("token-%d-of-%s", r.issued, r.Listener.Addr()), "expires_in": 3600,
		"issuer": r.URL, "authorization_endpoint": r.URL + "/authorize", "token_endpoint": r.URL + "/token",
	})
}

// take returns what was received since the last call.
func (r *recorder) take() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.received.Reset()
	return bytes.Clone(r.received.Bytes())
}

// subject is a connection whose secrets somebody wants to learn who may change it.
type subject struct {
	auth, integration string
	consent           bool
	fields, secrets   map[string]string
	definition        map[string]any
	channels          []channel
}

// channel is a change that might reveal the secrets of a connection.
type channel struct {
	name       string
	definition map[string]any // the members that change; nil removes one
	fields     map[string]string
	// sees is what the attacker receives if the change is accepted. It is "" if that takes
	// more than the change, such as another consent.
	sees string
}

// patch returns the request for a change, with secrets or without them.
func (s subject) patch(c channel, secrets map[string]string) map[string]any {
	out := map[string]any{}
	if c.definition != nil {
		definition := maps.Clone(s.definition)
		maps.Copy(definition, c.definition)
		maps.DeleteFunc(definition, func(_ string, value any) bool { return value == nil })
		out["definition"] = definition
	}
	fields := map[string]string{}
	maps.Copy(fields, c.fields)
	maps.Copy(fields, secrets)
	if len(fields) > 0 {
		out["fields"] = fields
	}
	return out
}

// attack is the scene of the attempts to learn secrets.
type attack struct {
	s        *harness.Server
	person   owner
	attacker *harness.Client // with a key that may write
	oauth    *oauthserver.Server
	service  *recorder // where credentials belong
	evil     *recorder // where they do not
	keyFile  string
	// A certificate of the service's client, and another one of the attacker.
	certificate, key           string
	otherCertificate, otherKey string
	authority                  string
	known                      canaries // what must not be learned
}

// subjects returns a connection of each kind, with the ways to learn its secrets.
func (a *attack) subjects() map[string]subject {
	service, evil := a.service.URL, a.evil.URL
	both := []string{service, evil}
	test := func(url string) map[string]any { return map[string]any{"hosts": both, "test_url": url} }
	// A user name with a colon is rejected: the message would answer the question.
	ask := func(question string) map[string]any {
		return map[string]any{"apply": map[string]any{"basic": map[string]string{"user": "${{ " + question + " ? ':' : 'x' }}", "password": "x"}}}
	}
	copied := func(secret string) map[string]any {
		return map[string]any{"hosts": both, "apply": map[string]any{"query": map[string]string{"copy": "${{ " + secret + " }}"}}}
	}
	key := map[string]any{"hosts": []string{service}, "test_url": service + "/me", "apply": map[string]any{"headers": map[string]string{"X-Key": "${{ secret.key }}"}}}
	plain := map[string]any{"hosts": []string{service}, "test_url": service + "/me"}
	token := map[string]any{"hosts": []string{service}, "test_url": service + "/me", "token_url": service + "/token", "scopes": []string{"read", "list"}}
	return map[string]subject{
		"api_key": {
			auth: "api_key", secrets: map[string]string{"key": "k3y-of-the-shop"}, definition: key, channels: []channel{
				{"one more host", map[string]any{"hosts": both}, nil, "decoy-of-the-attacker"},
				{"another host", map[string]any{"hosts": []string{evil}, "test_url": nil}, nil, "decoy-of-the-attacker"},
				{"a test elsewhere", test(evil + "/me"), nil, "decoy-of-the-attacker"},
				{"another path of the test", map[string]any{"test_url": service + "/echo"}, nil, ""},
				{"a query parameter", copied("secret.key"), nil, "decoy-of-the-attacker"},
				{"a question that is true", ask("secret.key startsWith 'k'"), nil, ""},
				{"a question that is false", ask("secret.key startsWith 'x'"), nil, ""},
				{"an expression that fails for other keys", map[string]any{"apply": map[string]any{"headers": map[string]string{"X-Key": "${{ len(secret.key) == 15 ? secret.key : fromJSON('') }}"}}}, nil, ""},
			},
		},
		"bearer": {
			auth: "bearer", secrets: map[string]string{"token": "t0ken-of-the-shop"}, definition: plain, channels: []channel{
				{"one more host", map[string]any{"hosts": both}, nil, "Bearer decoy-of-the-attacker"},
				{"a test elsewhere", test(evil + "/me"), nil, "Bearer decoy-of-the-attacker"},
				{"a query parameter", copied("secret.token"), nil, "decoy-of-the-attacker"},
				{"another authority", map[string]any{"ca": a.authority}, nil, ""},
				{"a certificate", nil, map[string]string{"client_certificate": a.otherCertificate, "client_key": a.otherKey}, ""},
				{"a question that is true", ask("secret.token startsWith 't'"), nil, ""},
				{"a question that is false", ask("secret.token startsWith 'x'"), nil, ""},
			},
		},
		"basic": {
			auth: "basic", fields: map[string]string{"username": "ada"}, secrets: map[string]string{"password": "p4ssword-of-ada"}, definition: plain, channels: []channel{
				{"one more host", map[string]any{"hosts": both}, nil, base64.StdEncoding.EncodeToString([]byte("ada:decoy-of-the-attacker"))},
				{"a test elsewhere", test(evil + "/me"), nil, "Basic "},
				{"another user", nil, map[string]string{"username": "eve"}, ""},
				{"a query parameter", copied("secret.password"), nil, "decoy-of-the-attacker"},
				{"a question that is true", ask("secret.password startsWith 'p'"), nil, ""},
				{"a question that is false", ask("secret.password startsWith 'x'"), nil, ""},
			},
		},
		"digest": {
			auth: "digest", fields: map[string]string{"username": "ada"}, secrets: map[string]string{"password": "d1gest-of-ada"}, definition: plain, channels: []channel{
				{"one more host", map[string]any{"hosts": both}, nil, "/call"},
				{"a test elsewhere", test(evil + "/me"), nil, "/me"},
				{"another user", nil, map[string]string{"username": "eve"}, ""},
			},
		},
		"client_certificate": {
			auth: "client_certificate", fields: map[string]string{"client_certificate": a.certificate}, secrets: map[string]string{"client_key": a.key},
			definition: map[string]any{"hosts": []string{"api.bank.example"}}, channels: []channel{
				{"one more host", map[string]any{"hosts": []string{"api.bank.example", "evil.example"}}, nil, ""},
				{"a test", map[string]any{"test_url": "https://api.bank.example/me"}, nil, ""},
				{"another authority", map[string]any{"ca": a.authority}, nil, ""},
			},
		},
		"oauth2 with a private key": {
			auth: "oauth2", fields: map[string]string{"client_id": "flows"}, secrets: map[string]string{"private_key": a.key},
			definition: map[string]any{"hosts": []string{service}, "token_url": service + "/token", "client_auth": "private_key_jwt"}, channels: []channel{
				{"another token endpoint", map[string]any{"token_url": evil + "/token"}, nil, "client_assertion="},
				{"another audience", map[string]any{"issuer": evil, "grant": "client_credentials"}, nil, ""},
				{"another client", nil, map[string]string{"client_id": "eve"}, ""},
				{"another id of the key", nil, map[string]string{"key_id": "two"}, ""},
				{"requests in JSON", map[string]any{"token_body": "json"}, nil, ""},
			},
		},
		"oauth2 with client credentials": {
			auth: "oauth2", fields: map[string]string{"client_id": "flows"}, secrets: map[string]string{"client_secret": "cl1ent-secret"}, definition: token, channels: []channel{
				{"one more host", map[string]any{"hosts": both}, nil, "Bearer token-"},
				{"another token endpoint", map[string]any{"token_url": evil + "/token"}, nil, base64.StdEncoding.EncodeToString([]byte("flows:decoy-of-the-attacker"))},
				{"another path of it", map[string]any{"token_url": service + "/echo"}, nil, ""},
				{"another endpoint to revoke", map[string]any{"revoke_url": evil + "/revoke"}, nil, ""},
				{"another issuer", map[string]any{"issuer": evil, "grant": "client_credentials", "token_url": nil}, nil, "POST /token"},
				{"a page for consent", map[string]any{"authorize_url": evil + "/authorize"}, nil, ""},
				{"a test elsewhere", test(evil + "/me"), nil, "Bearer token-"},
				{"one more scope", map[string]any{"scopes": []string{"read", "list", "admin"}}, nil, ""},
				{"no scopes", map[string]any{"scopes": nil}, nil, ""},
				{"another client", nil, map[string]string{"client_id": "eve"}, ""},
				{"the secret in the body", map[string]any{"client_auth": "body"}, nil, ""},
				{"requests in JSON", map[string]any{"token_body": "json"}, nil, ""},
				{"another audience", map[string]any{"token_params": map[string]string{"audience": evil}}, nil, ""},
				{"a question about the token", ask("token startsWith 't'"), nil, ""},
			},
		},
		"oauth2 with consent": {
			auth: "oauth2", consent: true, fields: map[string]string{"client_id": oauthserver.ClientID}, secrets: map[string]string{"client_secret": oauthserver.ClientSecret},
			definition: consented(a.oauth, service), channels: []channel{
				{"one more host", map[string]any{"hosts": []string{a.oauth.URL, service, evil}}, nil, ""},
				{"a page for consent", map[string]any{"authorize_url": evil + "/authorize"}, nil, ""},
				{"another token endpoint", map[string]any{"token_url": evil + "/token"}, nil, ""},
				{"another path of it", map[string]any{"token_url": a.oauth.URL + "/echo"}, nil, ""},
				{"another endpoint to revoke", map[string]any{"revoke_url": evil + "/revoke"}, nil, ""},
				{"another issuer", map[string]any{"issuer": evil, "authorize_url": nil, "token_url": nil}, nil, ""},
				{"a test elsewhere", map[string]any{"hosts": []string{a.oauth.URL, evil}, "test_url": evil}, nil, ""},
				{"a scope", map[string]any{"scopes": []string{"admin"}}, nil, ""},
				{"a parameter of the page", map[string]any{"params": map[string]string{"audience": evil}}, nil, ""},
				{"no consent", map[string]any{"authorize_url": nil}, nil, ""},
				{"another client", nil, map[string]string{"client_id": "eve"}, ""},
				{"a question that is true", ask("token startsWith 'access-'"), nil, ""},
				{"a question that is false", ask("token startsWith 'x'"), nil, ""},
			},
		},
		"service_account": {
			auth: "service_account", fields: map[string]string{"subject": "ada@example.com"}, secrets: map[string]string{"key": a.keyFile}, definition: token, channels: []channel{
				{"one more host", map[string]any{"hosts": both}, nil, "Bearer token-"},
				{"another token endpoint", map[string]any{"token_url": evil + "/token"}, nil, "assertion="},
				{"another path of it", map[string]any{"token_url": service + "/echo"}, nil, ""},
				{"a test elsewhere", test(evil + "/me"), nil, "Bearer token-"},
				{"one more scope", map[string]any{"scopes": []string{"read", "list", "admin"}}, nil, ""},
				{"another person to act for", nil, map[string]string{"subject": "eve@example.com"}, ""},
			},
		},
		"aws_sigv4": {
			auth: "aws_sigv4", fields: map[string]string{"access_key_id": "AKIDEXAMPLE", "region": "eu-central-1"},
			secrets:    map[string]string{"secret_access_key": "s3cret-access-key", "session_token": "s3ssion-token"},
			definition: map[string]any{"hosts": []string{service}, "service": "sqs", "test_url": service + "/me"}, channels: []channel{
				{"one more host", map[string]any{"hosts": both}, nil, "decoy-of-the-attacker"},
				{"a test elsewhere", test(evil + "/me"), nil, "AWS4-HMAC-SHA256"},
				{"another region", nil, map[string]string{"region": "us-east-1"}, ""},
				{"another key id", nil, map[string]string{"access_key_id": "AKIDOFEVE"}, ""},
				{"another service", map[string]any{"service": "iam"}, nil, ""},
			},
		},
		"the host of an integration": {
			integration: "gitlab", auth: "bearer", fields: map[string]string{"host": "git.example.com"}, secrets: map[string]string{"token": "glp4t-of-ada"}, channels: []channel{
				{"another host", nil, map[string]string{"host": "evil.example.com"}, ""},
				{"the default host", nil, map[string]string{"host": ""}, ""},
			},
		},
		"the subdomain of an integration": {
			integration: "shopify", auth: "api_key", fields: map[string]string{"shop": "my-store"}, secrets: map[string]string{"token": "shp4t-of-ada"}, channels: []channel{
				{"another shop", nil, map[string]string{"shop": "evil-store"}, ""},
			},
		},
	}
}

// make makes a connection under a name and returns its id.
func (a *attack) make(t *testing.T, s subject, as string) string {
	t.Helper()
	body := map[string]any{"name": as, "auth": s.auth}
	if s.integration != "" {
		body["integration"] = s.integration
	} else {
		body["definition"] = s.definition
	}
	fields := maps.Clone(s.secrets)
	maps.Copy(fields, s.fields)
	body["fields"] = fields
	if s.consent {
		return a.person.finish(t, a.person.begin(t, a.oauth, "connect", body))
	}
	var made struct{ ID string }
	a.s.Expect(t, http.StatusCreated, "POST", "/v1/connections", body).Decode(t, &made)
	return made.ID
}

// use tests a connection and executes a step with it that calls the attacker, as far as
// that is possible, and returns what the attacker has received.
func (a *attack) use(t *testing.T, id, as string) []byte {
	t.Helper()
	tested, err := a.attacker.Do(t.Context(), "POST", "/v1/connections/"+id+"/test", nil)
	if err != nil {
		t.Fatal(err)
	}
	a.known.look(t, "a test", tested.Body)
	workflow := flow.Define(t, a.attacker, flow.HTTP("call", a.evil.URL+"/call", "connection", as,
		"on_broken_connection", "fail", "retry", map[string]any{"max_attempts": 1}, "timeout", "1m"))
	run := startRuns(t, a.attacker, workflow, 1)[0]
	harness.Eventually(t, "the run ends", func() bool { return get(t, a.attacker, run).Status != "running" })
	a.known.look(t, "a run", a.attacker.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run, nil).Body)
	a.attacker.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
	return a.evil.take()
}

// problem is an error response.
type problem struct {
	Error struct {
		Code, Message string
		Details       []detail
	}
}

type detail struct{ Pointer, Message string }

// try makes one change without the secrets, and then with others. The first must be
// rejected and have no effect; the second shows that it would have had one.
func (a *attack) try(t *testing.T, s subject, c channel, as string) problem {
	t.Helper()
	id := a.make(t, s, as)
	at := "/v1/connections/" + id
	before := a.attacker.Expect(t, http.StatusOK, "GET", at, nil).Body
	empty, blank, decoys := map[string]string{}, map[string]string{}, map[string]string{}
	for field := range s.secrets {
		empty[field], blank[field], decoys[field] = "", "    ", "decoy-of-the-attacker"
	}
	for field, secret := range s.secrets {
		if strings.Contains(secret, "PRIVATE KEY") {
			decoys[field] = secret // anything but a key would be rejected
		}
	}
	answer := a.attacker.Expect(t, http.StatusBadRequest, "PATCH", at, s.patch(c, nil))
	var rejected problem
	answer.Decode(t, &rejected)
	for field := range s.secrets {
		if !slices.ContainsFunc(rejected.Error.Details, func(d detail) bool { return d.Pointer == "/fields/"+field }) {
			t.Errorf("the error does not ask for %s: %s", field, answer.Body)
		}
	}
	a.known.look(t, "an error", answer.Body)
	if after := a.attacker.Expect(t, http.StatusOK, "GET", at, nil).Body; !bytes.Equal(after, before) {
		t.Errorf("the connection has changed: %s", after)
	}
	a.wantNothing(t, a.use(t, id, as))

	// A connection that needs no secret loses the stored one. Blanks count as empty.
	for _, fields := range []map[string]string{empty, blank} {
		answer, err := a.attacker.Do(t.Context(), "PATCH", at, s.patch(c, fields))
		if err != nil {
			t.Fatal(err)
		}
		a.known.look(t, "an answer", answer.Body)
		a.wantNothing(t, a.use(t, id, as))
	}

	a.attacker.Expect(t, http.StatusOK, "PATCH", at, s.patch(c, decoys))
	received := a.use(t, id, as)
	if !bytes.Contains(received, []byte(c.sees)) {
		t.Errorf("with secrets, the attacker received no %s: %s", c.sees, received)
	}
	a.attacker.Expect(t, http.StatusNoContent, "DELETE", at, nil)
	received = append(received, a.evil.take()...)
	a.known.look(t, "the attacker's server", received)
	canaries{a.oauth.Issued()}.look(t, "the attacker's server", received)
	return rejected
}

// wantNothing checks that the attacker has received no credential.
func (a *attack) wantNothing(t *testing.T, received []byte) {
	t.Helper()
	a.known.look(t, "the attacker's server", received)
	if bytes.Contains(received, []byte("/call")) || bytes.Contains(received, []byte("Authorization")) {
		t.Errorf("the attacker received %s", received)
	}
}

func startAttack(t *testing.T) *attack {
	t.Helper()
	a := &attack{oauth: oauthserver.Start(t), service: newRecorder(t), evil: newRecorder(t)}
	a.s = harness.Start(t, t.TempDir(), allowLoopback)
	a.person = signUp(t, a.s, a.s.AwaitSetupToken(t))
	var made struct{ Key string }
	a.s.Expect(t, http.StatusCreated, "POST", "/v1/api-keys", map[string]any{"name": "attacker", "scopes": []string{"read", "write", "execute"}}).Decode(t, &made)
	a.attacker = a.s.With(made.Key)
	file, part := keyFile(t, a.service.URL+"/token")
	a.keyFile = file
	ca := certificate.NewAuthority(t)
	a.authority = ca.PEM
	a.certificate, a.key = ca.Client(t, "flows", time.Now().Add(time.Hour))
	a.otherCertificate, a.otherKey = ca.Client(t, "eve", time.Now().Add(time.Hour))
	a.known.values = []string{part, strings.Split(a.key, "\n")[1]}
	for _, s := range a.subjects() {
		for _, secret := range s.secrets {
			if !strings.Contains(secret, "PRIVATE KEY") {
				a.known.values = append(a.known.values, secret)
			}
		}
	}
	return a
}

// TestChangesRevealNoSecrets tries to learn the stored secrets of connections of each
// kind with a key that may change them, in every way that a change offers.
func TestChangesRevealNoSecrets(t *testing.T) {
	t.Parallel()
	a := startAttack(t)
	subjects, n := a.subjects(), 0
	for _, kind := range slices.Sorted(maps.Keys(subjects)) {
		s := subjects[kind]
		answers := map[string]string{}
		for _, c := range s.channels {
			n++
			t.Run(strings.ReplaceAll(kind+"/"+c.name, " ", "_"), func(t *testing.T) {
				rejected := a.try(t, s, c, fmt.Sprintf("subject-%d", n))
				answers[c.name] = fmt.Sprint(rejected.Error)
			})
		}
		if answers["a question that is true"] != answers["a question that is false"] {
			t.Errorf("%s: the answers tell whether it is true: %v", kind, answers)
		}
	}
}

// TestNoOtherWayToSecrets tries what is not a change of a connection.
func TestNoOtherWayToSecrets(t *testing.T) {
	t.Parallel()
	a := startAttack(t)
	subjects := a.subjects()
	key := subjects["api_key"]
	id := a.make(t, key, name)
	stolen := map[string]any{
		"name": name, "auth": "bearer", "fields": map[string]string{"token": "decoy-of-the-attacker"}, "definition": map[string]any{"hosts": []string{a.evil.URL}},
	}
	app := map[string]any{"integration": "slack", "client_id": "1234.5678", "client_secret": "s3cret-of-the-app"}
	var gitlab, made struct{ ID string }
	gitlab.ID = a.make(t, subjects["the host of an integration"], "git")
	a.s.Expect(t, http.StatusCreated, "POST", "/v1/oauth-apps", app).Decode(t, &made)
	for _, tc := range []struct {
		by           *harness.Client
		method, path string
		body         map[string]any
		status       int
		contains     string
	}{
		{a.attacker, "PATCH", "/v1/connections/" + id, map[string]any{"auth": "bearer"}, http.StatusBadRequest, "/auth"},
		{a.attacker, "PATCH", "/v1/connections/" + gitlab.ID, map[string]any{"definition": map[string]any{"hosts": []string{a.evil.URL}}}, http.StatusBadRequest, "/definition"},
		{a.attacker, "PATCH", "/v1/connections/" + gitlab.ID, map[string]any{"integration": "github"}, http.StatusBadRequest, "/integration"},
		{a.attacker, "POST", "/v1/connections", stolen, http.StatusConflict, "connection_exists"},
		{a.attacker, "POST", "/v1/oauth-apps", app, http.StatusForbidden, "insufficient_scope"},
		{a.attacker, "GET", "/v1/oauth-apps/" + made.ID, nil, http.StatusForbidden, "insufficient_scope"},
		{a.s.Client, "POST", "/v1/oauth-apps", map[string]any{"integration": "slack", "client_id": "eve"}, http.StatusBadRequest, "/client_secret"},
		{a.attacker, "POST", "/ui/v1/connections/" + id + "/reconnect", nil, http.StatusUnauthorized, ""},
	} {
		var body any
		if tc.body != nil {
			body = tc.body
		}
		answer := tc.by.Expect(t, tc.status, tc.method, tc.path, body)
		if !bytes.Contains(answer.Body, []byte(tc.contains)) {
			t.Errorf("%s %s: %s", tc.method, tc.path, answer.Body)
		}
		a.known.look(t, tc.path, answer.Body)
	}

	// A run finds its connection by name. What a new one of the name sends is its own.
	workflow := flow.Define(t, a.attacker, map[string]any{"id": "ask", "uses": "flow.approval"}, flow.HTTP("call", a.evil.URL+"/call", "connection", name))
	run := startRuns(t, a.attacker, workflow, 1)
	harness.Eventually(t, "the run waits", func() bool { return get(t, a.attacker, run[0]).WaitingFor != nil })
	a.attacker.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
	a.attacker.Expect(t, http.StatusNoContent, "DELETE", "/v1/connections/"+id, nil)
	a.attacker.Expect(t, http.StatusCreated, "POST", "/v1/connections", stolen)
	a.attacker.Expect(t, http.StatusOK, "POST", "/v1/runs/"+run[0]+"/steps/ask/resume", map[string]any{"approved": true})
	awaitSuccess(t, a.attacker, run)
	received := a.evil.take()
	a.known.look(t, "the attacker's server", received)
	if !bytes.Contains(received, []byte("Bearer decoy-of-the-attacker")) {
		t.Errorf("the attacker received %s", received)
	}
}

// TestMaskingConfirmsOnlyWholeSecrets lets a run show guesses of a secret. Which of them
// are masked says whether a guess is right, but nothing about a part of the secret.
func TestMaskingConfirmsOnlyWholeSecrets(t *testing.T) {
	t.Parallel()
	a := startAttack(t)
	subject := a.subjects()["api_key"]
	a.make(t, subject, name)
	secret := subject.secrets["key"]
	parts, whole := map[string]string{"wrong": secret[:len(secret)-1] + "\x7f"}, map[string]string{}
	for i := 1; i < len(secret); i++ {
		parts[fmt.Sprintf("first%d", i)], parts[fmt.Sprintf("last%d", i)] = secret[:i], secret[i:]
	}
	for how, encode := range encoders {
		whole[how] = encode(secret)
		parts[how+"_first"], parts[how+"_last"] = encode(secret[:len(secret)-1]), encode(secret[1:])
	}
	guesses := func(id string, values map[string]string) map[string]any {
		return map[string]any{"id": id, "uses": "data.set", "with": map[string]any{"values": values}}
	}
	run := startRuns(t, a.attacker, flow.Define(t, a.attacker,
		flow.HTTP("call", a.service.URL, "connection", name), guesses("parts", parts), guesses("whole", whole)), 1)
	awaitSuccess(t, a.attacker, run)
	for step, check := range map[string]func(how, shown string){
		"parts": func(how, shown string) {
			if shown != parts[how] {
				t.Errorf("%s: %q is shown as %q", how, parts[how], shown)
			}
		},
		"whole": func(how, shown string) {
			if !strings.Contains(shown, "***") {
				t.Errorf("%s: %q is not masked", how, shown)
			}
		},
	} {
		var shown struct{ Output map[string]string }
		a.attacker.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run[0]+"/steps/"+step, nil).Decode(t, &shown)
		if len(shown.Output) < len(whole) {
			t.Errorf("%s: %v", step, shown)
		}
		for how, text := range shown.Output {
			check(how, text)
		}
	}
}
