package connection_test

import (
	"fmt"
	"testing"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/uid"
)

// member adds a member to the workspace.
func (in *installation) member(role account.Role) auth.Actor {
	in.t.Helper()
	id := uid.New(uid.User)
	err := in.db.Write(in.t.Context(), func(c database.Conn) error {
		_, err := c.Exec(`INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES ($1, $2, $3, $4)`, in.owner.Workspace.ID, id, string(role), clock.Now())
		return err
	})
	if err != nil {
		in.t.Fatal(err)
	}
	return auth.Actor{Workspace: in.owner.Workspace, Type: "user", ID: id, Scopes: role.Scopes()}
}

func bearer(name string, access *connection.Access, members ...string) connection.New {
	return connection.New{
		Name: name, Auth: integration.Bearer, Fields: map[string]string{"token": "a token"}, Definition: []byte(`{"hosts": ["api.example.com"]}`),
		Access: access, Members: members,
	}
}

// Only the people for whom a connection is open use it, and API keys only those that are
// open to everyone.
func TestAccess(t *testing.T) {
	t.Parallel()
	in, ctx := newInstallation(t), t.Context()
	maker, chosen, other, owner := in.member(account.Editor), in.member(account.Editor), in.member(account.Editor), in.member(account.Owner)
	key := auth.Actor{Workspace: in.owner.Workspace, Type: "api_key", ID: uid.New(uid.Key), Scopes: auth.Scopes()}
	c, err := in.Create(ctx, maker, bearer("mail", new(connection.SomeMembers), chosen.ID))
	if err != nil || c.Access != connection.SomeMembers {
		t.Fatal(c, err)
	}
	setAccess := func(actor auth.Actor, access connection.Access, members ...string) error {
		_, err := in.Update(ctx, actor, c.ID, connection.Patch{Access: &access, Members: members})
		return err
	}
	want := func(about string, uses, changes []auth.Actor) {
		t.Helper()
		names, err := in.store.Connections.ConnectionNames(ctx, c.WorkspaceID)
		if err != nil {
			t.Fatal(err)
		}
		actors := map[string]auth.Actor{"maker": maker, "chosen": chosen, "other": other, "owner": owner, "key": key}
		for name, actor := range actors {
			isIn := func(list []auth.Actor) bool {
				for _, one := range list {
					if one.ID == actor.ID {
						return true
					}
				}
				return false
			}
			if names[0].MayUse(actor) != isIn(uses) {
				t.Errorf("%s: %s may use it: %t", about, name, !isIn(uses))
			}
			if _, err := in.Test(ctx, actor, c.ID); fault.Is(err, fault.ConnectionRestricted) == isIn(uses) {
				t.Errorf("%s: %s tests it: %v", about, name, err)
			}
			if _, err := in.Update(ctx, actor, c.ID, connection.Patch{Fields: map[string]string{"token": "another"}}); (err == nil) != isIn(changes) || err != nil && !fault.Is(err, fault.ConnectionRestricted) {
				t.Errorf("%s: %s changes it: %v", about, name, err)
			}
		}
	}
	want("for members", []auth.Actor{maker, chosen}, []auth.Actor{maker, chosen, owner})
	faulttest.Want(t, setAccess(other, connection.Everyone), fault.ConnectionRestricted)
	faulttest.Want(t, setAccess(key, connection.Everyone), fault.ConnectionRestricted)
	faulttest.Want(t, in.Delete(ctx, key, c.ID), fault.ConnectionRestricted)
	if _, err := in.Reconnect(ctx, other, c.ID, redirect, nil); !fault.Is(err, fault.ConnectionRestricted) {
		t.Errorf("another member reconnects it: %v", err)
	}

	if err := setAccess(owner, connection.OwnerOnly); err != nil {
		t.Fatal(err)
	}
	want("for whoever made it", []auth.Actor{maker}, []auth.Actor{maker, owner})
	if err := setAccess(maker, connection.Everyone); err != nil {
		t.Fatal(err)
	}
	everybody := []auth.Actor{maker, chosen, other, owner, key}
	want("for everyone", everybody, everybody)

	was, err := in.Get(ctx, maker, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	faulttest.Want(t, setAccess(maker, "nobody"), fault.InvalidRequest, "/access")
	faulttest.Want(t, setAccess(maker, connection.SomeMembers), fault.InvalidRequest, "/members")
	faulttest.Want(t, setAccess(maker, connection.SomeMembers, chosen.ID, "usr_none"), fault.InvalidRequest, "/members/1")
	faulttest.Want(t, setAccess(maker, connection.Everyone, chosen.ID), fault.InvalidRequest, "/members")
	if now, err := in.Get(ctx, maker, c.ID); err != nil || fmt.Sprint(now) != fmt.Sprint(was) {
		t.Errorf("a rejected change changed %+v to %+v, %v", was, now, err)
	}
	made, err := in.Create(ctx, key, bearer("by_key", nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = in.Update(ctx, maker, made.ID, connection.Patch{Access: new(connection.OwnerOnly)})
	faulttest.Want(t, err, fault.InvalidRequest, "/access")
}

// A connection keeps working under the names that it had before.
func TestRename(t *testing.T) {
	t.Parallel()
	in, ctx := newInstallation(t), t.Context()
	c, err := in.Create(ctx, in.owner, bearer("shop", nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Create(ctx, in.owner, bearer("other", nil)); err != nil {
		t.Fatal(err)
	}
	rename := func(name string) error {
		_, err := in.Update(ctx, in.owner, c.ID, connection.Patch{Name: &name})
		return err
	}
	faulttest.Want(t, rename("Not A Name"), fault.InvalidRequest, "/name")
	faulttest.Want(t, rename("other"), fault.ConnectionExists)
	if err := rename("store"); err != nil {
		t.Fatal(err)
	}
	now, err := in.Get(ctx, in.owner, c.ID)
	if err != nil || now.Name != "store" || now.Epoch != c.Epoch || now.Status != c.Status {
		t.Errorf("%+v, %v", now, err)
	}
	_, err = in.Create(ctx, in.owner, bearer("shop", nil))
	faulttest.Want(t, err, fault.ConnectionExists)
	in.wantMasked(in.node("node_2"), []string{"shop"}, "a token")
	in.wantMasked(in.parts, []string{"store"}, "a token")
	if err := in.Delete(ctx, in.owner, c.ID); err != nil {
		t.Fatal(err)
	}
	in.wantMasked(in.parts, []string{"store"}, "a token")
}
