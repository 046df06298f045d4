package connections_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/installation"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/oauthserver"
	"github.com/stepmill/stepmill/test/postgres"
)

// The refresh tokens of these tests are valid once, so a token that is issued and not
// stored costs the connection.

// storeFails is what a server logs about its database.
const storeFails = "(the store failed; retrying)"

// flag is a file that changes what a failpoint does while it exists.
type flag string

func newFlag(t *testing.T, name string) flag { return flag(filepath.Join(t.TempDir(), name)) }

func (f flag) set(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(string(f), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f flag) clear(t *testing.T) {
	t.Helper()
	if err := os.Remove(string(f)); err != nil {
		t.Fatal(err)
	}
}

// startRenewal starts runs whose token has expired, and returns when the service has
// issued the next one. It calls started in between.
func startRenewal(t *testing.T, s *harness.Server, oauth *oauthserver.Server, workflow string, started func()) (ids []string) {
	t.Helper()
	before := oauth.Requests("refresh_token")
	oauth.ExpireAll()
	ids = startRuns(t, s.Client, workflow, lane.Pick(5, 50))
	started()
	harness.Eventually(t, "a token is issued", func() bool { return oauth.Requests("refresh_token") == before+1 })
	return ids
}

// wantRenewedOnce checks that runs succeed with the token that was issued last, and that
// the connection works.
func wantRenewedOnce(t *testing.T, s *harness.Server, oauth *oauthserver.Server, connection string, ids []string, requests int) {
	t.Helper()
	awaitSuccess(t, s.Client, ids)
	wantOnce(t, oauth, ids)
	if n := oauth.Requests("refresh_token"); n != requests {
		t.Errorf("INVARIANT: %d refresh tokens were used, want %d", n, requests)
	}
	if c := show(t, s, connection); c.Status != "connected" {
		t.Errorf("INVARIANT: the connection is %+v", c)
	}
}

// wantReconnect checks that runs wait for a connection whose token is lost, and go on when
// a person reconnects it.
func wantReconnect(t *testing.T, s *harness.Server, person owner, oauth *oauthserver.Server, connection string, ids []string) {
	t.Helper()
	awaitWaiting(t, s, ids, "connection")
	harness.Eventually(t, "the connection says that it has to be reconnected", func() bool {
		c := show(t, s, connection)
		return c.Status == "needs_reconnect" && c.Problem != nil
	})
	person.at(s).reconnect(t, oauth, connection)
	awaitSuccess(t, s.Client, ids)
	wantOnce(t, oauth, ids)
}

// TestFullDiskDuringRenewal fills the disk after the service has issued a token and before
// it is stored. The server keeps the token until there is space. If it is killed before
// that, the connection has to be reconnected. No run fails.
func TestFullDiskDuringRenewal(t *testing.T) {
	t.Parallel()
	harness.EmbeddedOnly(t, "the disk of the database")
	oauth, held, full := oauthserver.Start(t), newFlag(t, "held"), newFlag(t, "full")
	options := harness.Options{
		Dir: t.TempDir(), Args: []string{allowLoopback},
		Failpoint: fmt.Sprintf("after_renewal:block=%s,before_flush:fail=%s", held, full),
	}
	s := harness.StartWith(t, options)
	person := signUp(t, s, s.AwaitSetupToken(t))
	id, workflow := person.connect(t, oauth), define(t, s.Client, oauth)
	fill := func() []string {
		held.set(t)
		ids := startRenewal(t, s, oauth, workflow, func() {})
		full.set(t)
		held.clear(t)
		s.AwaitLog(t, storeFails)
		return ids
	}
	for range lane.Pick(1, 10) {
		before := oauth.Requests("refresh_token")
		ids := fill()
		time.Sleep(lane.Pick(time.Second, 10*time.Second)) // it tries again and again
		full.clear(t)
		wantRenewedOnce(t, s, oauth, id, ids, before+1)
	}
	for range lane.Pick(1, 10) {
		key, ids := s.Key, fill()
		s.Kill(t)
		full.clear(t)
		s = harness.StartWith(t, options)
		s.Key = key
		wantReconnect(t, s, person, oauth, id, ids)
	}
}

// TestFullDiskDuringConsent fills the disk after the service has issued the first token of
// a connection. The person is told, and the connection is made when there is space.
func TestFullDiskDuringConsent(t *testing.T) {
	t.Parallel()
	harness.EmbeddedOnly(t, "the disk of the database")
	oauth, full := oauthserver.Start(t), newFlag(t, "full")
	s := harness.StartWith(t, harness.Options{Dir: t.TempDir(), Args: []string{allowLoopback}, Failpoint: "before_flush:fail=" + string(full)})
	person := signUp(t, s, s.AwaitSetupToken(t))
	back := person.begin(t, oauth, "connect", map[string]any{
		"name": name, "auth": "oauth2", "fields": map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret},
		"definition": consented(oauth),
	})
	oauth.Set(func(now *oauthserver.Settings) { now.Before = func(*http.Request) { full.set(t) } })
	if done := person.callback(t, back); done.Get("error") != "unavailable" || done.Get("message") == "" {
		t.Errorf("the consent ended with %v", done)
	}
	full.clear(t)
	oauth.Set(func(now *oauthserver.Settings) { now.Before = nil })
	harness.Eventually(t, "the connection is made", func() bool {
		var all struct {
			Data []struct{ Name, Status string }
		}
		s.Expect(t, http.StatusOK, "GET", "/v1/connections", nil).Decode(t, &all)
		return len(all.Data) == 1 && all.Data[0].Name == name && all.Data[0].Status == "connected"
	})
	ids := startRuns(t, s.Client, define(t, s.Client, oauth), 5)
	awaitSuccess(t, s.Client, ids)
	wantOnce(t, oauth, ids)
}

// TestDatabaseRestartDuringRenewal crashes PostgreSQL after the service has issued a token
// and before it is stored. The node keeps the token until the database is back. If the
// node is killed before that, another one asks for a reconnect.
func TestDatabaseRestartDuringRenewal(t *testing.T) {
	t.Parallel()
	oauth, held := oauthserver.Start(t), newFlag(t, "held")
	server := postgres.Start(t, postgres.Options{})
	dir, database := t.TempDir(), server.NewDatabase(t)
	if err := harness.WriteMasterKey(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	start := func() *harness.Server {
		return harness.StartWith(t, harness.Options{
			Dir: dir, Database: database, Args: []string{allowLoopback, "--node-lease", "3s", "--database-timeout", "20s"},
			Failpoint: "after_renewal:block=" + string(held),
		})
	}
	s := start()
	s.Key = s.AwaitKey(t)
	person := signUp(t, s, s.AwaitSetupToken(t))
	id, workflow := person.connect(t, oauth), define(t, s.Client, oauth)
	crash := func() []string {
		held.set(t)
		ids := startRenewal(t, s, oauth, workflow, func() {})
		server.StopImmediate()
		held.clear(t)
		s.AwaitLog(t, storeFails)
		return ids
	}
	for range lane.Pick(1, 10) {
		before := oauth.Requests("refresh_token")
		ids := crash()
		server.Start()
		wantRenewedOnce(t, s, oauth, id, ids, before+1)
	}
	for range lane.Pick(1, 5) {
		key, ids := s.Key, crash()
		s.Kill(t)
		server.Start()
		s = start()
		s.Key = key
		wantReconnect(t, s, person, oauth, id, ids)
	}
}

// isStopped reports whether a process is stopped by a signal.
func isStopped(t *testing.T, pid int) bool {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, state, _ := bytes.Cut(text, []byte(") "))
	return bytes.HasPrefix(state, []byte("T"))
}

// TestNodePausedDuringRenewal pauses a node, in the long lane for longer than its claim is
// valid, while the service answers its request for a token. Another node takes over its runs, tries the
// same refresh token, which is used up, and asks for a reconnect. When the node continues,
// it stores the answer, and the runs go on.
func TestNodePausedDuringRenewal(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"it continues", "the other node is killed", "it is killed"} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			oauth, installed := oauthserver.Start(t), installation.New(t)
			start := func() *harness.Server {
				s := harness.StartWith(t, harness.Options{
					Dir: installed.Dir, Database: installed.URL,
					Args: []string{allowLoopback, "--node-lease", "3s", "--database-timeout", harness.Timeout.String()},
				})
				s.Key = installed.AdminKey
				return s
			}
			s := start()
			person := signUp(t, s, s.AwaitSetupToken(t))
			id, workflow := person.connect(t, oauth), define(t, s.Client, oauth)
			var once sync.Once
			started := make(chan struct{})
			oauth.Set(func(now *oauthserver.Settings) {
				now.Before = func(*http.Request) {
					once.Do(func() {
						<-started
						s.Signal(t, syscall.SIGSTOP)
						harness.Eventually(t, "the node is paused", func() bool { return isStopped(t, s.Pid()) })
					})
				}
			})
			ids := startRenewal(t, s, oauth, workflow, func() { close(started) })
			paused := time.Now()
			other := start()
			awaitWaiting(t, other, ids, "connection")
			if c := show(t, other, id); c.Status != "needs_reconnect" {
				t.Fatalf("%+v", c)
			}
			if lane.Long() { // longer than a request may take, and than a claim is valid
				time.Sleep(time.Until(paused.Add(2 * time.Minute)))
			}
			switch then {
			case "it is killed":
				s.Kill(t)
				wantReconnect(t, other, person, oauth, id, ids)
				return
			case "the other node is killed":
				other.Kill(t)
			}
			s.Signal(t, syscall.SIGCONT)
			wantRenewedOnce(t, s, oauth, id, ids, 2)
		})
	}
}
