package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestInviteAndAccept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.person("owner")
	email := "invited." + owner.email
	made := owner.call("POST", "/ui/v1/invitations", fmt.Sprintf(`{"email": %q, "role": "operator"}`, strings.ToUpper(email))).want(201)
	if made.text("email") != email || made.text("created_by") != owner.id || !strings.HasPrefix(made.text("link"), w.server.url+"/invitation#token=") {
		t.Errorf("%s", made.body)
	}
	token := tokenOf(t, made.text("link"))
	listed := w.call("GET", "/v1/invitations", "").want(200)
	if strings.Contains(string(listed.body), token) || !strings.Contains(string(listed.body), email) {
		t.Errorf("%s", listed.body)
	}
	anonymous := w.server.anonymous(t)
	look := anonymous.call("POST", "/ui/v1/invitations/look", fmt.Sprintf(`{"token": %q}`, token)).want(200)
	if look.text("role") != "operator" || look.text("invited_by") != "P. Erson" || look.object()["has_account"] != false || look.object()["workspace"].(map[string]any)["id"] != w.id {
		t.Errorf("%s", look.body)
	}
	accept := func(token, rest string) *answer {
		return anonymous.call("POST", "/ui/v1/invitations/accept", fmt.Sprintf(`{"token": %q, %s}`, token, rest))
	}
	accept(token, `"password": "correct horse"`).want(400, "invalid_request")
	accept(token, `"name": "I", "password": "short"`).want(400, "invalid_request")
	member := accept(token, `"name": "Invited", "password": "correct horse"`).signedIn(201)
	who := member.call("GET", "/ui/v1/session", "").want(200)
	if who.text("role") != "operator" || !strings.Contains(string(who.body), email) {
		t.Errorf("%s", who.body)
	}
	accept(token, `"name": "Invited", "password": "correct horse"`).want(404, "link_not_found")
	anonymous.call("POST", "/ui/v1/invitations/look", fmt.Sprintf(`{"token": %q}`, token)).want(404, "link_not_found")
	owner.call("POST", "/ui/v1/invitations", fmt.Sprintf(`{"email": %q, "role": "viewer"}`, email)).want(409, "already_member")

	// Somebody who has an account shows its password.
	other := newWorld(t)
	elsewhere := tokenOf(t, other.call("POST", "/v1/invitations", fmt.Sprintf(`{"email": %q, "role": "viewer"}`, email)).want(201).text("link"))
	if look := anonymous.call("POST", "/ui/v1/invitations/look", fmt.Sprintf(`{"token": %q}`, elsewhere)).want(200); look.object()["has_account"] != true || look.object()["invited_by"] != nil {
		t.Errorf("%s", look.body)
	}
	accept(elsewhere, `"password": "another one"`).want(401, "invalid_credentials")
	both := accept(elsewhere, `"password": "correct horse"`).signedIn(201)
	if who := both.call("GET", "/ui/v1/session", "").want(200); who.text("role") != "viewer" || len(who.object()["workspaces"].([]any)) != 2 {
		t.Errorf("%s", who.body)
	}
}

func TestInvitationsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anonymous := w.server.anonymous(t)
	invite := func(email string) (id, token string) {
		a := w.call("POST", "/v1/invitations", fmt.Sprintf(`{"email": %q, "role": "viewer"}`, email)).want(201)
		return a.text("id"), tokenOf(t, a.text("link"))
	}
	useless := func(token string) {
		t.Helper()
		anonymous.call("POST", "/ui/v1/invitations/look", fmt.Sprintf(`{"token": %q}`, token)).want(404, "link_not_found")
		anonymous.call("POST", "/ui/v1/invitations/accept", fmt.Sprintf(`{"token": %q, "name": "N", "password": "correct horse"}`, token)).want(404, "link_not_found")
	}
	id, token := invite("revoked." + w.id + "@example.com")
	w.call("DELETE", "/v1/invitations/"+id, "").want(204)
	w.call("DELETE", "/v1/invitations/"+id, "").want(404, "invitation_not_found")
	useless(token)
	_, token = invite("twice." + w.id + "@example.com")
	invite("twice." + w.id + "@example.com")
	useless(token)
	id, token = invite("late." + w.id + "@example.com")
	w.server.rows(t, `UPDATE invitations SET expires_at = 1 WHERE id = ?`, id)
	useless(token)
	w.call("GET", "/v1/invitations/"+id, "").want(404, "invitation_not_found")
	if body := string(w.call("GET", "/v1/invitations", "").want(200).body); strings.Contains(body, id) {
		t.Errorf("an invitation that has expired is listed: %s", body)
	}
	w.call("POST", "/v1/invitations", `{"email": "x@example.com", "role": "god"}`).want(400, "invalid_request")
	w.call("POST", "/v1/invitations", `{"email": "x", "role": "viewer"}`).want(400, "invalid_request")
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.person("owner")
	for range 3 {
		first.call("PATCH", "/ui/v1/members/"+first.id, `{"role": "viewer"}`).want(409, "last_owner")
		first.call("DELETE", "/ui/v1/members/"+first.id, "").want(409, "last_owner")
		w.call("DELETE", "/v1/members/"+first.id, "").want(409, "last_owner")
	}
	second := w.person("editor")
	if a := first.call("PATCH", "/ui/v1/members/"+second.id, `{"role": "owner"}`).want(200); a.text("role") != "owner" {
		t.Errorf("%s", a.body)
	}
	second.call("GET", "/ui/v1/members", "").want(200)
	second.call("PATCH", "/ui/v1/members/"+first.id, `{"role": "viewer"}`).want(200)
	first.call("GET", "/ui/v1/members", "").want(403, "insufficient_scope")
	first.call("DELETE", "/ui/v1/members/"+first.id, "").want(403, "insufficient_scope")
	second.call("DELETE", "/ui/v1/members/"+first.id, "").want(204)
	first.call("GET", "/ui/v1/session", "").want(401, "unauthorized")
	w.call("GET", "/v1/members/"+first.id, "").want(404, "member_not_found")
	if rows := w.server.rows(t, `SELECT id FROM users WHERE id = ?`, first.id); len(rows) > 0 {
		t.Error("a user without any workspace stays")
	}
}

func TestMembersOfTwoWorkspaces(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	p := w.person("viewer")
	other.join(p, "editor")
	there := other.session(p)
	w.call("DELETE", "/v1/members/"+p.id, "").want(204)
	p.call("GET", "/ui/v1/session", "").want(401, "unauthorized")
	there.call("GET", "/ui/v1/session", "").want(200)
}
