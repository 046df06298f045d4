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

	"github.com/stepmill/stepmill/internal/uid"
)

const password = "correct horse battery"

// cheap is the password above, hashed as fast as possible.
var cheap = func() string {
	salt := []byte("0123456789abcdef")
	key := argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$%s$%s", text(salt), text(key))
}()

// person is a user who is signed in to a workspace.
type person struct {
	client
	id, email string
}

// person puts a user with a role into the workspace, beside the server.
func (w *world) person(role string) person {
	w.t.Helper()
	id := uid.New(uid.User)
	p := person{client: client{t: w.t, server: w.server}, id: id, email: strings.TrimPrefix(id, "usr_") + "@example.com"}
	now := time.Now().UnixMicro()
	w.server.rows(w.t, `INSERT INTO users (id, email, name, password, created_at) VALUES (?, ?, ?, ?, ?)`, id, p.email, "P. Erson", cheap, now)
	w.join(p, role)
	return w.session(p)
}

// join makes a person a member of the workspace.
func (w *world) join(p person, role string) {
	w.t.Helper()
	w.server.rows(w.t, `INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES (?, ?, ?, ?)`, w.id, p.id, role, time.Now().UnixMicro())
}

// session signs a person in to the workspace, beside the server.
func (w *world) session(p person) person {
	w.t.Helper()
	sum := sha256.Sum256([]byte(uid.New(uid.Request)))
	p.token = base64.RawURLEncoding.EncodeToString(sum[:])
	hash := sha256.Sum256([]byte(p.token))
	now := time.Now()
	w.server.rows(w.t, `INSERT INTO sessions (id, hash, user_id, workspace_id, created_at, seen_at, expires_at, address, agent) VALUES (?, ?, ?, ?, ?, ?, ?, '127.0.0.1', 'test')`,
		uid.New(uid.Session), hash[:], p.id, w.id, now.UnixMicro(), now.UnixMicro(), now.Add(24*time.Hour).UnixMicro())
	return p
}

// signedIn is a client with the session that an answer has begun.
func (a *answer) signedIn(status int) client {
	a.t.Helper()
	a.want(status)
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

func givenMember(w *world) {
	w.t.Helper()
	p := w.person("viewer")
	w.names["member"], w.names["token"] = p.id, p.token
}

func givenInvitation(w *world) {
	w.t.Helper()
	made := w.make("invitation", "/v1/invitations", `{"email": "given@example.com", "role": "viewer"}`)
	w.names["invited"] = tokenOf(w.t, made.text("link"))
}

// tokenOf is what stands behind the # of a link.
func tokenOf(t *testing.T, link string) string {
	t.Helper()
	_, token, found := strings.Cut(link, "#token=")
	if !found || len(token) != 43 {
		t.Fatalf("the link is %q", link)
	}
	return token
}
