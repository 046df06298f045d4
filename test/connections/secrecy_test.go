package connections_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/certificate"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// mirror is a service that repeats everything it receives, in several encodings, with
// responses of many kinds. The first part of a path names the connection.
type mirror struct {
	*httptest.Server
	elsewhere *httptest.Server // a host that no credential belongs to

	mu     sync.Mutex
	seen   map[string]string // requests to /echo, by connection
	issued []string          // tokens of service accounts
	strays []string          // what the other host received
}

func newMirror(t *testing.T) *mirror {
	m := &mirror{seen: map[string]string{}}
	m.elsewhere = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.strays = append(m.strays, fmt.Sprint(r.URL, r.Header))
	}))
	m.Server = httptest.NewServer(m)
	t.Cleanup(func() { m.CloseClientConnections(); m.Close(); m.elsewhere.Close() })
	return m
}

// answers are the last parts of the paths that a mirror serves.
var answers = []string{"echo", "404", "500", "401", "redirect", "away", "malformed", "broken", "hang"}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	name, how, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	auth := r.Header.Get("Authorization")
	switch how {
	case "token":
		token := "issued-" + rand.Text()
		m.mu.Lock()
		m.issued = append(m.issued, token)
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "expires_in": 3600})
		return
	case "redirect":
		http.Redirect(w, r, "/"+name+"/redirected?"+r.URL.RawQuery+"&was="+url.QueryEscape(auth), http.StatusTemporaryRedirect)
		return
	case "away":
		http.Redirect(w, r, m.elsewhere.URL+"/"+name, http.StatusPermanentRedirect)
		return
	case "malformed", "broken":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		head := "HTTP/1.1 " + auth + " " + r.URL.RawQuery + "\r\n\r\n"
		if how == "broken" {
			head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nX-Echo: " + auth + "\r\n\r\n" + auth
		}
		_, _ = io.WriteString(conn, head)
		return
	case "hang":
		<-r.Context().Done()
		return
	case "echo":
		m.mu.Lock()
		m.seen[name] = fmt.Sprint(r.URL.RawQuery, r.Header)
		m.mu.Unlock()
	}
	status := map[string]int{"404": 404, "500": 500, "401": 401}[how]
	text := fmt.Sprint(auth, r.URL.RawQuery, r.Header)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo", auth)
	w.WriteHeader(max(status, http.StatusOK))
	_ = json.NewEncoder(w).Encode(map[string]any{
		"headers": r.Header, "url": r.URL.String(), "query": r.URL.Query(), "body": string(body),
		"base64": base64.StdEncoding.EncodeToString([]byte(text)), "hex": hex.EncodeToString([]byte(text)), "escaped": url.QueryEscape(text),
	})
}

// keyFile returns the key file of a service account, and a part of the key.
func keyFile(t *testing.T, tokenURL string) (file, part string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "robot@example.com", "private_key_id": "one", "private_key": text, "token_uri": tokenURL,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(content), strings.Split(text, "\n")[5]
}

// canaries are secrets that were used, and must not be found anywhere.
type canaries struct{ values []string }

// forms returns the encodings of a secret. In base64, the characters that depend on
// what is around it are left out.
func forms(secret string) [][]byte {
	quoted, _ := json.Marshal(secret)
	out := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1 : len(quoted)-1]), hex.EncodeToString([]byte(secret))}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text := encoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
			out = append(out, text[(shift*8+5)/6:len(text)-1])
		}
	}
	all := make([][]byte, len(out))
	for i, form := range out {
		all[i] = []byte(form)
	}
	return all
}

func (c canaries) look(t *testing.T, where string, text []byte) {
	t.Helper()
	for _, secret := range c.values {
		for _, form := range forms(secret) {
			if i := bytes.Index(text, form); i >= 0 {
				t.Errorf("%s contains %s as %s: … %.200s", where, secret, form, text[max(0, i-100):])
				break
			}
		}
	}
}

func (c canaries) lookInFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		c.look(t, path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// readable lists the GET routes of the contract without streams and redirects.
func readable(t *testing.T, s *harness.Server) []string {
	t.Helper()
	contract := string(s.Expect(t, http.StatusOK, "GET", "/v1/openapi.yaml", nil).Body)
	var paths []string
	path := ""
	for line := range strings.Lines(contract) {
		if found := regexp.MustCompile(`^  (/v1/\S+):$`).FindStringSubmatch(strings.TrimRight(line, "\n")); found != nil {
			path = found[1]
		}
		if line == "    get:\n" && path != "" && !strings.HasSuffix(path, "/stream") && path != "/v1/runs/{id}/events" {
			paths = append(paths, path)
			path = ""
		}
	}
	if len(paths) < 40 {
		t.Fatalf("only %d routes: %v", len(paths), paths)
	}
	return paths
}

// unpack returns the content of an export.
func unpack(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ids returns the ids in a list.
func ids(t *testing.T, s *harness.Server, path string) []string {
	t.Helper()
	var list struct {
		Data []struct{ ID, Name string }
	}
	s.Expect(t, http.StatusOK, "GET", path, nil).Decode(t, &list)
	var out []string
	for _, item := range list.Data {
		out = append(out, item.ID)
	}
	return out
}

// lookInAPI reads every route with every id that there is.
func (c canaries) lookInAPI(t *testing.T, s *harness.Server) {
	t.Helper()
	values := map[string][]string{
		"/v1/workflows/{id}": ids(t, s, "/v1/workflows?limit=100"), "/v1/runs/{id}": ids(t, s, "/v1/runs?limit=100"),
		"/v1/webhooks/{id}": ids(t, s, "/v1/webhooks"), "/v1/connections/{id}": ids(t, s, "/v1/connections"), "/v1/oauth-apps/{id}": ids(t, s, "/v1/oauth-apps"),
		"/v1/api-keys/{id}": ids(t, s, "/v1/api-keys"), "/v1/workspaces/{id}": ids(t, s, "/v1/workspaces"), "/v1/members/{id}": ids(t, s, "/v1/members"),
		"/v1/actions/{name}": {"http.request"}, "/v1/integrations/{id}": {"slack"},
	}
	for _, hook := range values["/v1/webhooks/{id}"] {
		values["/v1/deliveries/{id}"] = append(values["/v1/deliveries/{id}"], ids(t, s, "/v1/webhooks/"+hook+"/deliveries?limit=100")...)
	}
	values["/v1/workflows/{workflow_id}"] = values["/v1/workflows/{id}"]
	read := 0
	for _, path := range readable(t, s) {
		targets, rest := []string{path}, ""
		if prefix, after, found := strings.Cut(path, "{"); found {
			parameter, behind, _ := strings.Cut(after, "}")
			targets, rest = nil, behind
			for _, value := range values[prefix+"{"+parameter+"}"] {
				targets = append(targets, prefix+value)
			}
		}
		var rests []string
		for _, step := range answers {
			rests = append(rests, strings.NewReplacer("{step_id}", "s_"+step, "{n}", "2", "{trigger_id}", "x", "{trigger}", "new_message").Replace(rest))
		}
		if !strings.Contains(rest, "{step_id}") {
			rests = rests[:1]
		}
		for _, target := range targets {
			for _, rest := range rests {
				query := ""
				if path == "/v1/search" {
					query = "?q=canary"
				}
				answer, err := s.Do(t.Context(), "GET", target+rest+query, nil)
				if err != nil {
					t.Fatal(err)
				}
				c.look(t, target+rest, append(answer.Body, fmt.Sprint(answer.Header)...))
				if answer.Status == http.StatusOK {
					read++
				}
			}
		}
	}
	t.Logf("%d responses", read)
}

// TestCredentialsStayAtTheirService uses credentials of every kind, with responses that
// repeat them, and then looks for them in everything that Stepmill returns, sends,
// prints and stores.
func TestCredentialsStayAtTheirService(t *testing.T) {
	t.Parallel()
	harness.EmbeddedOnly(t, "it reads the files of the data directory")
	oauth, service := oauthserver.Start(t), newMirror(t)
	var sent bytes.Buffer
	var mu sync.Mutex
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent.Write(body)
		fmt.Fprintln(&sent, r.Header)
	}))
	t.Cleanup(receiver.Close)
	received := func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Clone(sent.Bytes())
	}

	args := []string{allowLoopback, "--log-level", "debug", "--metrics-listen", "127.0.0.1:0"}
	s := harness.StartWith(t, harness.Options{Dir: t.TempDir(), Args: args, Env: []string{"GOTRACEBACK=all"}})
	metrics := s.Metrics(t)
	person := signUp(t, s, s.AwaitSetupToken(t))
	s.Expect(t, http.StatusCreated, "POST", "/v1/webhooks", map[string]any{
		"url": receiver.URL, "events": []string{"run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated", "workflow.paused", "connection.broken", "connection.ending"},
	})
	file, part := keyFile(t, service.URL+"/robot/token")
	c := canaries{[]string{part, oauthserver.ClientSecret}}
	secret := func(text string) string {
		c.values = append(c.values, text)
		return text
	}
	s.Expect(t, http.StatusCreated, "POST", "/v1/oauth-apps", map[string]any{
		"integration": "slack", "client_id": "1234.5678", "client_secret": secret("canary of an app"),
	})
	cc := map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret}
	shown, private := certificate.NewAuthority(t).Client(t, "flows", time.Now().Add(time.Hour))
	secret(strings.Split(private, "\n")[1]) // a line of it: it has several, which JSON escapes
	kinds := []struct {
		name, auth string
		fields     map[string]string
		definition map[string]any
		sends      string // what the service must receive
	}{
		{"header", "api_key", map[string]string{"key": secret("canary-in-a-header/+=")}, map[string]any{"apply": map[string]any{"headers": map[string]string{"X-Key": "${{ secret.key }}"}}}, "canary-in-a-header/+="},
		{"query", "api_key", map[string]string{"key": secret(`canary "in" a&query ü`)}, map[string]any{"apply": map[string]any{"query": map[string]string{"key": "${{ secret.key }}"}}}, url.QueryEscape(`canary "in" a&query ü`)},
		{"token", "bearer", map[string]string{"token": secret("canary-of-a-bearer")}, nil, "Bearer canary-of-a-bearer"},
		{"certificate", "bearer", map[string]string{"token": secret("canary-beside-a-certificate"), "client_certificate": shown, "client_key": private}, nil, "Bearer canary-beside-a-certificate"},
		{"password", "basic", map[string]string{"username": "ada", "password": secret("canary-password")}, nil, base64.StdEncoding.EncodeToString([]byte("ada:canary-password"))},
		{"machine", "oauth2", cc, map[string]any{"token_url": oauth.URL + "/token"}, "Bearer access-"},
		{"robot", "service_account", map[string]string{"key": file}, map[string]any{"token_url": service.URL + "/robot/token", "scopes": []string{"all"}}, "Bearer issued-"},
		{"aws", "aws_sigv4", map[string]string{"access_key_id": "AKIDEXAMPLE", "secret_access_key": secret("canary/of+aws"), "session_token": secret("canary-session"), "region": "eu-central-1"}, map[string]any{"service": "sqs"}, "canary-session"},
	}
	for _, kind := range kinds {
		definition := map[string]any{"hosts": []string{service.URL}, "test_url": service.URL + "/" + kind.name + "/401"}
		maps.Copy(definition, kind.definition)
		var made struct{ ID string }
		s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
			"name": kind.name, "auth": kind.auth, "fields": kind.fields, "definition": definition,
		}).Decode(t, &made)
		c.look(t, "a test", s.Expect(t, http.StatusOK, "POST", "/v1/connections/"+made.ID+"/test", nil).Body)
	}
	person.connect(t, oauth, service.URL)
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": "resource", "auth": "oauth2", "fields": cc, "definition": map[string]any{"hosts": []string{oauth.URL}, "token_url": oauth.URL + "/token"},
	})

	call := func(connection string) string {
		var steps []map[string]any
		for _, how := range answers {
			timeout := "1m"
			if how == "hang" {
				timeout = "1s"
			}
			steps = append(steps, map[string]any{
				"id": "s_" + how, "uses": "http.request", "connection": connection, "on_error": "continue", "timeout": timeout, "retry": map[string]any{"max_attempts": 1},
				"with": map[string]any{"url": service.URL + "/" + connection + "/" + how, "method": "POST", "body": map[string]any{"connection": connection}},
			}, flow.Set("t_"+how, "${{ steps.s_"+how+" }}"))
		}
		return startRuns(t, s.Client, flow.Define(t, s.Client, steps...), 1)[0]
	}
	var runs []string
	for _, kind := range kinds {
		runs = append(runs, call(kind.name))
	}
	runs = append(runs, call(name))
	awaitSuccess(t, s.Client, runs)
	service.mu.Lock()
	for _, kind := range kinds {
		if !strings.Contains(service.seen[kind.name], kind.sends) {
			t.Errorf("the service did not get the credential of %s: %s", kind.name, service.seen[kind.name])
		}
	}
	if !strings.Contains(service.seen[name], "Bearer access-") {
		t.Errorf("the service did not get the token: %s", service.seen[name])
	}
	if len(service.strays) != len(runs) {
		t.Errorf("%d requests were redirected to the other host", len(service.strays))
	}
	strays := strings.Join(service.strays, "\n")
	service.mu.Unlock()

	// The consent is revoked, with an error that repeats the request.
	oauth.Set(func(now *oauthserver.Settings) { now.Echoes = true })
	oauth.RevokeAll()
	broken := startRuns(t, s.Client, flow.Define(t, s.Client, flow.HTTP("s_echo", oauth.URL+"/resource", "connection", name)), 1)[0]
	harness.Eventually(t, "the run waits for its connection", func() bool { return get(t, s.Client, broken).WaitingFor != nil })
	harness.Eventually(t, "the webhook is told", func() bool { return bytes.Contains(received(), []byte("connection.broken")) })

	service.mu.Lock()
	c.values = append(append(c.values, oauth.Issued()...), service.issued...)
	service.mu.Unlock()
	c.look(t, "the other host", []byte(strays))
	c.look(t, "a webhook", received())
	c.look(t, "the log", []byte(s.Log()))
	c.lookInAPI(t, s)
	c.look(t, "the metrics", metrics.Expect(t, http.StatusOK, "GET", "/metrics", nil).Body)
	backup := filepath.Join(t.TempDir(), "backup")
	if result := harness.Run(t, nil, "backup", "--data-dir", s.Dir, backup); result.Code != 0 {
		t.Fatalf("%+v", result)
	}
	c.lookInFiles(t, filepath.Dir(backup))

	s.Signal(t, syscall.SIGABRT)
	s.Wait(t)
	if !strings.Contains(s.Log(), "goroutine ") {
		t.Error("the process died without a dump")
	}
	c.look(t, "the log", []byte(s.Log()))
	c.lookInFiles(t, s.Dir) // with the log of the database

	oauth.ExpireAll()
	dying := harness.StartProcess(t, harness.Options{Dir: s.Dir, Args: args, Env: []string{"GOTRACEBACK=all"}, Failpoint: "after_renewal:panic"})
	dying.AwaitListening(t)
	dying.AwaitReady(t)
	dying.Key = s.Key
	startRuns(t, dying.Client, flow.Define(t, dying.Client, flow.HTTP("call", oauth.URL+"/resource", "connection", "resource")), 1)
	if exit := dying.Wait(t); exit.Code == 0 || !strings.Contains(dying.Log(), "goroutine ") {
		t.Errorf("exit code %d: %s", exit.Code, dying.Log())
	}
	c.values = append(c.values, oauth.Issued()...)
	c.look(t, "the log", []byte(dying.Log()))
	c.lookInFiles(t, s.Dir)

	export := filepath.Join(t.TempDir(), "export")
	if result := harness.Run(t, nil, "export", export, "--data-dir", s.Dir); result.Code != 0 {
		t.Fatalf("%+v", result)
	}
	c.look(t, "the export", unpack(t, export))
}
