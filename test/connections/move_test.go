package connections_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// TestCredentialsSurviveMoves checks that connections and OAuth apps work after a
// restore of a backup, after an import of an export and after a rotation of the master
// key: a run uses them, also to renew a token.
func TestCredentialsSurviveMoves(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	harness.EmbeddedOnly(t, "it restores a backup of the data directory")
	oauth, service := oauthserver.Start(t), newMirror(t)
	oauth.Set(func(now *oauthserver.Settings) { now.Rotates = false }) // copies of the installation use the same refresh token
	s := harness.Start(t, t.TempDir(), allowLoopback)
	person, key := signUp(t, s, s.AwaitSetupToken(t)), s.Key
	person.connect(t, oauth)
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": "static", "auth": "bearer", "fields": map[string]string{"token": "a static token"}, "definition": map[string]any{"hosts": []string{service.URL}},
	})
	s.Expect(t, http.StatusCreated, "POST", "/v1/oauth-apps", map[string]any{"integration": "slack", "client_id": "1234.5678", "client_secret": "the secret of an app"})
	workflow := flow.Define(t, s.Client, flow.HTTP("call", oauth.URL+"/resource", "connection", name), flow.HTTP("static", service.URL+"/static/echo", "connection", "static"))

	// check uses the credentials of an installation and stops it.
	check := func(t *testing.T, dir string) {
		t.Helper()
		s := harness.Start(t, dir, allowLoopback)
		s.Key = key
		oauth.ExpireAll()
		service.mu.Lock()
		delete(service.seen, "static")
		service.mu.Unlock()
		ids := startRuns(t, s.Client, workflow, 1)
		awaitSuccess(t, s.Client, ids)
		wantOnce(t, oauth, ids)
		service.mu.Lock()
		if service.seen["static"] == "" {
			t.Error("the static token was not sent")
		}
		service.mu.Unlock()
		var begun struct {
			AuthorizeURL string `json:"authorize_url"`
		}
		signIn(t, s).post(t, http.StatusOK, "/ui/v1/connections/connect", map[string]any{
			"name": "team", "integration": "slack", "auth": "oauth2",
		}).Decode(t, &begun)
		if u, err := url.Parse(begun.AuthorizeURL); err != nil || u.Query().Get("client_id") != "1234.5678" {
			t.Errorf("the OAuth app was not used: %s, %v", begun.AuthorizeURL, err)
		}
		s.Stop(t)
	}
	run := func(args ...string) {
		t.Helper()
		if result := harness.Run(t, nil, args...); result.Code != 0 {
			t.Fatalf("%v: %+v", args, result)
		}
	}
	// copied returns a new data directory with the same master key.
	copied := func() string {
		dir := t.TempDir()
		key, err := os.ReadFile(filepath.Join(s.Dir, "master.key"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "master.key"), key, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}

	files := t.TempDir()
	backup, export := filepath.Join(files, "backup"), filepath.Join(files, "export")
	run("backup", "--data-dir", s.Dir, backup)
	s.Stop(t)
	run("export", export, "--data-dir", s.Dir)
	restored, imported := copied(), copied()
	run("restore", "--data-dir", restored, backup)
	run("import", export, "--data-dir", imported)
	t.Run("restored", func(t *testing.T) { check(t, restored) })
	t.Run("imported", func(t *testing.T) { check(t, imported) })
	run("master-key", "rotate", "--data-dir", s.Dir)
	t.Run("with another master key", func(t *testing.T) { check(t, s.Dir) })
}
