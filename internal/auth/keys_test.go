package auth_test

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// checksum implements the documented checksum independently: CRC-32 in base 62.
func checksum(text string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := crc32.ChecksumIEEE([]byte(text))
	var out [6]byte
	for i := 5; i >= 0; i-- {
		out[i] = digits[sum%62]
		sum /= 62
	}
	return string(out[:])
}

func TestCreateKey(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	key, value := w.key(w.Admin, auth.NewKey{Name: " Nightly import ", Scopes: []string{"execute", "read", "read"}})
	if key.Name != "Nightly import" || key.WorkspaceID != w.Admin.Workspace.ID || key.CreatedBy != w.Admin.ID || key.ExpiresAt != nil || key.LastUsedAt != nil {
		t.Errorf("the key is %+v", key)
	}
	if diff := cmp.Diff([]auth.Scope{auth.Read, auth.Execute}, key.Scopes); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	if !regexp.MustCompile(`^smk_[0-9A-Za-z]{8}_[0-9A-Za-z]{46}$`).MatchString(value) || value[53:] != checksum(value[:53]) {
		t.Errorf("the value is %q", value)
	}
	if key.Prefix() != value[:12] {
		t.Errorf("the prefix of %s is %s", value, key.Prefix())
	}
	if sum := sha256.Sum256([]byte(value)); string(key.Hash) != string(sum[:]) {
		t.Errorf("the hash is %x", key.Hash)
	}
	read, err := w.Auth.GetKey(t.Context(), w.Admin, key.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(key, read); diff != "" {
		t.Errorf("the key (-created +read):\n%s", diff)
	}
	want := auth.Actor{Workspace: w.Admin.Workspace, Type: "api_key", ID: key.ID, Label: key.Name, Scopes: []auth.Scope{auth.Read, auth.Execute}}
	if diff := cmp.Diff(want, w.wantWorks(value)); diff != "" {
		t.Errorf("the actor (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(w.Actions(w.t, w.Admin.Workspace.ID, key.ID)); got != "[api_key.created]" {
		t.Errorf("the audit log has %s", got)
	}
}

func TestCreateKeyRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEnv(t)
		read := []string{"read"}
		for _, tc := range []struct {
			in     auth.NewKey
			points string
		}{
			{auth.NewKey{Name: "", Scopes: read}, "/name"},
			{auth.NewKey{Name: " ", Scopes: read}, "/name"},
			{auth.NewKey{Name: strings.Repeat("é", 101), Scopes: read}, "/name"},
			{auth.NewKey{Name: "a\x07b", Scopes: read}, "/name"},
			{auth.NewKey{Name: "n"}, "/scopes"},
			{auth.NewKey{Name: "n", Scopes: []string{}}, "/scopes"},
			{auth.NewKey{Name: "n", Scopes: []string{"read", "root"}}, "/scopes"},
			{auth.NewKey{Name: "n", Scopes: []string{"Read"}}, "/scopes"},
			{auth.NewKey{Name: "n", Scopes: []string{"public"}}, "/scopes"},
			{auth.NewKey{Name: "n", Scopes: []string{"session"}}, "/scopes"},
			{auth.NewKey{Name: "n", Scopes: []string{"read,admin"}}, "/scopes"},
			{auth.NewKey{Name: "n", Scopes: read, ExpiresAt: new(time.Now())}, "/expires_at"},
			{auth.NewKey{Name: "n", Scopes: read, ExpiresAt: new(time.Now().Add(-time.Hour))}, "/expires_at"},
		} {
			_, value, err := w.Auth.CreateKey(t.Context(), w.Admin, tc.in)
			faulttest.Want(t, err, fault.InvalidRequest, tc.points)
			if value != "" {
				t.Errorf("%+v: there is a value", tc.in)
			}
		}
		if page, err := w.Auth.ListKeys(t.Context(), w.Admin, whole); err != nil || len(page.Items) != 1 {
			t.Errorf("keys are %+v, %v", page.Items, err)
		}
		w.key(w.Admin, auth.NewKey{Name: strings.Repeat("é", 100), Scopes: read, ExpiresAt: new(time.Now().Add(time.Microsecond))})
	})
}

func TestKeyExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEnv(t)
		end := time.Now().Add(time.Hour)
		key, value := w.key(w.Admin, auth.NewKey{Name: "Short", Scopes: []string{"read"}, ExpiresAt: &end})
		time.Sleep(time.Hour - time.Microsecond)
		w.wantWorks(value)
		time.Sleep(time.Microsecond)
		w.wantRejected(value) // although it is cached
		w.another().wantRejected(value)
		if read, err := w.Auth.GetKey(t.Context(), w.Admin, key.ID); err != nil || !read.ExpiresAt.Equal(end) {
			t.Errorf("an expired key is shown as %+v, %v", read, err)
		}
	})
}

// A revoked key stops working at once, although it is cached.
func TestRevokeKey(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	key, value := w.key(w.Admin, auth.NewKey{Name: "n", Scopes: []string{"admin"}})
	own := w.wantWorks(value)
	if err := w.Auth.RevokeKey(t.Context(), own, key.ID); err != nil {
		t.Fatal(err)
	}
	w.wantRejected(value)
	w.another().wantRejected(value)
	_, err := w.Auth.GetKey(t.Context(), w.Admin, key.ID)
	faulttest.Want(t, err, fault.APIKeyNotFound)
	faulttest.Want(t, w.Auth.RevokeKey(t.Context(), w.Admin, key.ID), fault.APIKeyNotFound)
	page, err := w.Auth.ListKeys(t.Context(), w.Admin, whole)
	if err != nil || slices.ContainsFunc(page.Items, func(k auth.Key) bool { return k.ID == key.ID }) {
		t.Errorf("keys are %+v, %v", page.Items, err)
	}
	if got := fmt.Sprint(w.Actions(w.t, w.Admin.Workspace.ID, key.ID)); got != "[api_key.revoked api_key.created]" {
		t.Errorf("the audit log has %s", got)
	}
	w.wantWorks(w.Key)
}

// The keys of a workspace are not visible to other workspaces.
func TestKeysOfOtherWorkspaces(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	stranger := w.Workspace(t, auth.Free)
	key, value := w.key(w.Admin, auth.NewKey{Name: "n", Scopes: []string{"read"}})
	for _, id := range []string{key.ID, uid.New(uid.Key), "key_", "nonsense", ""} {
		_, err := w.Auth.GetKey(t.Context(), stranger, id)
		faulttest.Want(t, err, fault.APIKeyNotFound)
		faulttest.Want(t, w.Auth.RevokeKey(t.Context(), stranger, id), fault.APIKeyNotFound)
	}
	w.wantWorks(value)
	if page, err := w.Auth.ListKeys(t.Context(), stranger, whole); err != nil || len(page.Items) != 1 || page.Items[0].ID != stranger.ID {
		t.Errorf("keys of the other workspace: %+v, %v", page.Items, err)
	}
}

// Keys are listed newest first, page by page.
func TestListKeys(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	want := []string{w.Admin.ID}
	for range 4 {
		key, _ := w.key(w.Admin, auth.NewKey{Name: "n", Scopes: []string{"read"}})
		want = append(want, key.ID)
	}
	slices.Reverse(want)
	var got []string
	for page := (paging.Request{Limit: 2}); ; {
		found, err := w.Auth.ListKeys(t.Context(), w.Admin, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range found.Items {
			got = append(got, key.ID)
		}
		if page.After = found.Next; found.Next == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// The id inside a value is public. A key only works with the right secret part.
func TestGuessedKeys(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	_, value := w.key(w.Admin, auth.NewKey{Name: "n", Scopes: []string{"admin"}})
	for _, secret := range []string{strings.Repeat("x", 40), value[14:53] + "x", strings.ToLower(value[13:53]), strings.ToUpper(value[13:53])} {
		if guess := value[:13] + secret; guess != value[:53] {
			w.wantRejected(guess + checksum(guess))
		}
	}
	w.wantRejected(value[:53] + "000000")
	w.wantWorks(value)
	unknown := "smk_00000000_" + strings.Repeat("0", 40)
	w.wantRejected(unknown + checksum(unknown))
}

// A malformed key is rejected without a lookup.
func TestMalformedKeys(t *testing.T) {
	t.Parallel()
	service := auth.NewService(nil, nil)
	for _, text := range []string{"", "smk_", "Bearer", strings.Repeat("smk_", 20), strings.Repeat("x", 59), strings.Repeat("x", 1<<20)} {
		_, err := service.Authenticate(t.Context(), text)
		faulttest.Want(t, err, fault.Unauthorized)
	}
}

// The plan limits the number of keys. Revoked keys do not count.
func TestKeyLimit(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	actor := w.Workspace(t, auth.Free)
	var last auth.Key
	for range 19 { // and the first admin key
		last, _ = w.key(actor, auth.NewKey{Name: "n", Scopes: []string{"read"}})
	}
	more := auth.NewKey{Name: "n", Scopes: []string{"read"}}
	_, value, err := w.Auth.CreateKey(t.Context(), actor, more)
	faulttest.Want(t, err, fault.PlanLimitExceeded)
	if !strings.Contains(err.Error(), "20") || !strings.Contains(err.Error(), "free") || value != "" {
		t.Errorf("the error is %q, the value %q", err, value)
	}
	if err := w.Auth.RevokeKey(t.Context(), actor, last.ID); err != nil {
		t.Fatal(err)
	}
	w.key(actor, more)
	_, _, err = w.Auth.CreateKey(t.Context(), actor, more)
	faulttest.Want(t, err, fault.PlanLimitExceeded)
	pro, err := w.Auth.UpdateWorkspace(t.Context(), w.Admin, actor.Workspace.ID, auth.WorkspacePatch{Plan: new(auth.Pro)})
	if err != nil {
		t.Fatal(err)
	}
	actor.Workspace = pro
	w.key(actor, more)
}

// The last use of a key is written at most once a minute.
func TestLastUseIsThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEnv(t)
		key, value := w.key(w.Admin, auth.NewKey{Name: "n", Scopes: []string{"read"}})
		start := time.Now()
		for _, tc := range []struct{ after, written time.Duration }{
			{0, 0}, {time.Minute - time.Microsecond, 0}, {time.Microsecond, time.Minute}, {30 * time.Second, time.Minute}, {time.Hour, time.Hour + 90*time.Second},
		} {
			time.Sleep(tc.after)
			w.wantWorks(value)
			if err := w.Auth.FlushLastUsed(t.Context()); err != nil {
				t.Fatal(err)
			}
			read, err := w.Auth.GetKey(t.Context(), w.Admin, key.ID)
			if err != nil || read.LastUsedAt == nil || read.LastUsedAt.Sub(start) != tc.written {
				t.Errorf("after %v the last use is %v, want %v after the first; %v", time.Since(start), read.LastUsedAt, tc.written, err)
			}
		}
		_, unused := w.key(w.Admin, auth.NewKey{Name: "n", Scopes: []string{"read"}})
		w.wantRejected(unused + "x")
		if err := w.Auth.FlushLastUsed(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := w.Auth.ListKeys(t.Context(), w.Admin, paging.Request{Limit: 1})
		if err != nil || page.Items[0].LastUsedAt != nil {
			t.Errorf("a rejected key counts as used: %s, %v", fmt.Sprint(page.Items), err)
		}
	})
}

// Changes by another process take effect within two seconds.
func TestCacheExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEnv(t)
		actor := w.Workspace(t, auth.Free)
		key, value := w.key(actor, auth.NewKey{Name: "n", Scopes: []string{"read"}})
		_, kept := w.key(actor, auth.NewKey{Name: "n", Scopes: []string{"read"}})
		w.wantWorks(value)
		w.wantWorks(kept)
		elsewhere := w.another()
		if err := elsewhere.Auth.RevokeKey(t.Context(), actor, key.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := elsewhere.Auth.UpdateWorkspace(t.Context(), w.Admin, actor.Workspace.ID, auth.WorkspacePatch{Plan: new(auth.Pro)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Second + time.Microsecond)
		w.wantRejected(value)
		if got := w.wantWorks(kept).Workspace.Plan; got != auth.Pro {
			t.Errorf("the plan is %s", got)
		}
		_, fresh, err := elsewhere.Auth.CreateKey(t.Context(), actor, auth.NewKey{Name: "n", Scopes: []string{"read"}})
		if err != nil {
			t.Fatal(err)
		}
		w.wantWorks(fresh) // a new key works at once in every process
	})
}
