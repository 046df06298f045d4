package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/uid"
)

const password = "correct horse battery"

// passwordCost is the cost of new passwords on test servers. It differs from
// that of cheapPasswordHash.
var passwordCost = account.Cost{Memory: 16, Passes: 1, Threads: 1}

// cheapPasswordHash is the password above, hashed as fast as possible.
var cheapPasswordHash = func() string {
	salt := []byte("0123456789abcdef")
	key := argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$%s$%s", text(salt), text(key))
}()

// person is a user with a session in a workspace.
type person struct {
	client
	id, email string
}

// addUser stores a user with a role, bypassing the server.
func (w *testWorkspace) addUser(role string) person {
	w.t.Helper()
	id := uid.New(uid.User)
	p := person{client: client{t: w.t, server: w.server}, id: id, email: strings.TrimPrefix(id, "usr_") + "@example.com"}
	now := time.Now().UnixMicro()
	w.server.query(w.t, `INSERT INTO users (id, email, name, password, created_at) VALUES (?, ?, ?, ?, ?)`, id, p.email, "P. Erson", cheapPasswordHash, now)
	w.addMember(p, role)
	return w.session(p)
}

// addMember makes a user a member of the workspace.
func (w *testWorkspace) addMember(p person, role string) {
	w.t.Helper()
	w.server.query(w.t, `INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES (?, ?, ?, ?)`, w.id, p.id, role, time.Now().UnixMicro())
}

// session stores a session, bypassing the server.
func (w *testWorkspace) session(p person) person {
	w.t.Helper()
	sum := sha256.Sum256([]byte(uid.New(uid.Request)))
	p.token = base64.RawURLEncoding.EncodeToString(sum[:])
	hash := sha256.Sum256([]byte(p.token))
	now := time.Now()
	w.server.query(w.t, `INSERT INTO sessions (id, hash, user_id, workspace_id, created_at, seen_at, expires_at, address, agent) VALUES (?, ?, ?, ?, ?, ?, ?, '127.0.0.1', 'test')`,
		uid.New(uid.Session), hash[:], p.id, w.id, now.UnixMicro(), now.UnixMicro(), now.Add(24*time.Hour).UnixMicro())
	return p
}

// sessionClient returns a client with the session that the response started.
func (a *response) sessionClient(status int) client {
	a.t.Helper()
	a.wantStatus(status)
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 {
		a.t.Fatalf("there are %d cookies", len(cookies))
	}
	c := cookies[0]
	if c.Name != "__Host-stepmill" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || len(c.Value) != 43 {
		a.t.Errorf("the cookie is %s", c.Raw)
	}
	return client{t: a.t, server: a.server, token: c.Value}
}

func setupMember(w *testWorkspace) {
	w.t.Helper()
	p := w.addUser("viewer")
	w.names["member"], w.names["token"] = p.id, p.token
}

func setupInvitation(w *testWorkspace) {
	w.t.Helper()
	made := w.create("invitation", "/v1/invitations", `{"email": "given@example.com", "role": "viewer"}`)
	w.names["invited"] = linkToken(w.t, made.str("link"))
}

// linkToken returns the fragment of a link.
func linkToken(t *testing.T, link string) string {
	t.Helper()
	_, token, found := strings.Cut(link, "#token=")
	if !found || len(token) != 43 {
		t.Fatalf("the link is %q", link)
	}
	return token
}
