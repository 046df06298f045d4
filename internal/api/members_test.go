package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestInviteAndAccept(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	owner := w.addUser("owner")
	email := "invited." + owner.email
	made := owner.call("POST", "/ui/v1/invitations", fmt.Sprintf(`{"email": %q, "role": "operator"}`, strings.ToUpper(email))).wantStatus(201)
	if made.str("email") != email || made.str("created_by") != owner.id || !strings.HasPrefix(made.str("link"), w.server.url+"/invitation#token=") {
		t.Errorf("%s", made.body)
	}
	token := linkToken(t, made.str("link"))
	listed := w.call("GET", "/v1/invitations", "").wantStatus(200)
	if strings.Contains(string(listed.body), token) || !strings.Contains(string(listed.body), email) {
		t.Errorf("%s", listed.body)
	}
	anonymous := w.server.anonymous(t)
	look := anonymous.call("POST", "/ui/v1/invitations/look", fmt.Sprintf(`{"token": %q}`, token)).wantStatus(200)
	if look.str("role") != "operator" || look.str("invited_by") != "P. Erson" || look.object()["has_account"] != false || look.object()["workspace"].(map[string]any)["id"] != w.id {
		t.Errorf("%s", look.body)
	}
	accept := func(token, rest string) *response {
		return anonymous.call("POST", "/ui/v1/invitations/accept", fmt.Sprintf(`{"token": %q, %s}`, token, rest))
	}
	accept(token, `"password": "correct horse"`).wantStatus(400, "invalid_request")
	accept(token, `"name": "I", "password": "short"`).wantStatus(400, "invalid_request")
	if a := accept(token, `"name": "", "password": "short"`).wantStatus(400, "invalid_request"); !slices.Equal(a.pointers(), []string{"/name", "/password"}) {
		t.Errorf("not every problem is listed: %s", a.body)
	}
	member := accept(token, `"name": "Invited", "password": "correct horse"`).sessionClient(201)
	session := member.call("GET", "/ui/v1/session", "").wantStatus(200)
	if session.str("role") != "operator" || !strings.Contains(string(session.body), email) {
		t.Errorf("%s", session.body)
	}
	accept(token, `"name": "Invited", "password": "correct horse"`).wantStatus(404, "link_not_found")
	anonymous.call("POST", "/ui/v1/invitations/look", fmt.Sprintf(`{"token": %q}`, token)).wantStatus(404, "link_not_found")
	owner.call("POST", "/ui/v1/invitations", fmt.Sprintf(`{"email": %q, "role": "viewer"}`, email)).wantStatus(409, "already_member")

	// A user with an account has to enter its password.
	other := newTestWorkspace(t)
	elsewhere := linkToken(t, other.call("POST", "/v1/invitations", fmt.Sprintf(`{"email": %q, "role": "viewer"}`, email)).wantStatus(201).str("link"))
	if look := anonymous.call("POST", "/ui/v1/invitations/look", fmt.Sprintf(`{"token": %q}`, elsewhere)).wantStatus(200); look.object()["has_account"] != true || look.object()["invited_by"] != nil {
		t.Errorf("%s", look.body)
	}
	accept(elsewhere, `"password": "another one"`).wantStatus(401, "invalid_credentials")
	both := accept(elsewhere, `"password": "correct horse"`).sessionClient(201)
	if session := both.call("GET", "/ui/v1/session", "").wantStatus(200); session.str("role") != "viewer" || len(session.object()["workspaces"].([]any)) != 2 {
		t.Errorf("%s", session.body)
	}
}

func TestLastOwnerCannotLeave(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	first := w.addUser("owner")
	for range 3 {
		first.call("PATCH", "/ui/v1/members/"+first.id, `{"role": "viewer"}`).wantStatus(409, "last_owner")
		first.call("DELETE", "/ui/v1/members/"+first.id, "").wantStatus(409, "last_owner")
		w.call("DELETE", "/v1/members/"+first.id, "").wantStatus(409, "last_owner")
	}
	second := w.addUser("editor")
	if a := first.call("PATCH", "/ui/v1/members/"+second.id, `{"role": "owner"}`).wantStatus(200); a.str("role") != "owner" {
		t.Errorf("%s", a.body)
	}
	second.call("GET", "/ui/v1/members", "").wantStatus(200)
	second.call("PATCH", "/ui/v1/members/"+first.id, `{"role": "viewer"}`).wantStatus(200)
	first.call("GET", "/ui/v1/members", "").wantStatus(403, "insufficient_scope")
	first.call("DELETE", "/ui/v1/members/"+first.id, "").wantStatus(403, "insufficient_scope")
	second.call("DELETE", "/ui/v1/members/"+first.id, "").wantStatus(204)
	first.call("GET", "/ui/v1/session", "").wantStatus(401, "unauthorized")
	w.call("GET", "/v1/members/"+first.id, "").wantStatus(404, "member_not_found")
	if rows := w.server.query(t, `SELECT id FROM users WHERE id = ?`, first.id); len(rows) > 0 {
		t.Error("a user without any workspace stays")
	}
}
