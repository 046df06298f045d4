package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/duration"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// Admin does what the person at the machine may do to an installation, also
// while its server runs.
type Admin struct {
	core  *core
	first auth.Workspace
}

// OpenAdmin opens the data of an existing installation.
func OpenAdmin(ctx context.Context, data config.Data) (*Admin, error) {
	c, err := openCore(ctx, data, sqlite.Options{}, store.Notify{})
	if err != nil {
		return nil, err
	}
	first, err := c.store.FirstWorkspace(ctx)
	if err == nil && first == nil {
		err = explainMissing(sqlite.ErrMissing, Place(data))
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &Admin{core: c, first: *first}, nil
}

// Close writes what is queued and closes the data.
func (a *Admin) Close() error { return a.core.close() }

// actor acts in a workspace; an empty id means the first one.
func (a *Admin) actor(ctx context.Context, workspaceID string) (auth.Actor, error) {
	actor := auth.Actor{Workspace: a.first, Type: audit.ActorCLI, Scopes: auth.Scopes()}
	if workspaceID == "" || workspaceID == a.first.ID {
		return actor, nil
	}
	workspace, err := a.core.auth.GetWorkspace(ctx, actor, workspaceID)
	actor.Workspace = workspace
	return actor, err
}

// Key is an API key as commands show it.
type Key struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Prefix     string     `json:"prefix"`
	Scopes     string     `json:"scopes"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

// CreateKey makes a key and returns its value. The life is a length such as
// 90d, or empty for no end.
func (a *Admin) CreateKey(ctx context.Context, workspaceID, name string, scopes []string, life string) (string, error) {
	actor, err := a.actor(ctx, workspaceID)
	if err != nil {
		return "", plain(err)
	}
	wanted := auth.NewKey{Name: name, Scopes: scopes}
	if life != "" {
		length, err := duration.Parse(life)
		if err != nil {
			return "", fmt.Errorf("--expires: %w", err)
		}
		end := clock.Now().Add(length)
		wanted.ExpiresAt = &end
	}
	_, value, err := a.core.auth.CreateKey(ctx, actor, wanted)
	return value, plain(err)
}

// Keys lists the keys of a workspace, newest first.
func (a *Admin) Keys(ctx context.Context, workspaceID string) ([]Key, error) {
	actor, err := a.actor(ctx, workspaceID)
	if err != nil {
		return nil, plain(err)
	}
	found, err := all(func(p paging.Request) (paging.Page[auth.Key], error) { return a.core.auth.ListKeys(ctx, actor, p) })
	keys := []Key{}
	for _, k := range found {
		keys = append(keys, Key{k.ID, k.Name, k.Prefix(), auth.JoinScopes(k.Scopes), k.CreatedAt, k.ExpiresAt, k.LastUsedAt})
	}
	return keys, plain(err)
}

// RevokeKey ends a key for good.
func (a *Admin) RevokeKey(ctx context.Context, workspaceID, id string) error {
	actor, err := a.actor(ctx, workspaceID)
	if err == nil {
		err = a.core.auth.RevokeKey(ctx, actor, id)
	}
	return plain(err)
}

// Workspace is a workspace as commands show it.
type Workspace struct {
	ID                string    `json:"id"`
	Name              string    `json:"name"`
	Plan              string    `json:"plan"`
	RequestsPerMinute int       `json:"requests_per_minute"`
	CreatedAt         time.Time `json:"created_at"`
}

func showWorkspace(w auth.Workspace) Workspace {
	return Workspace{w.ID, w.Name, string(w.Plan), w.RequestsPerMinute, w.CreatedAt}
}

// CreateWorkspace makes a workspace and returns it with its first admin key.
func (a *Admin) CreateWorkspace(ctx context.Context, name, plan string, rate *int) (Workspace, string, error) {
	actor, err := a.actor(ctx, "")
	if err != nil {
		return Workspace{}, "", plain(err)
	}
	w, key, err := a.core.auth.CreateWorkspace(ctx, actor, auth.NewWorkspace{Name: name, Plan: auth.Plan(plan), RequestsPerMinute: rate})
	return showWorkspace(w), key, plain(err)
}

// Workspaces lists every workspace, newest first.
func (a *Admin) Workspaces(ctx context.Context) ([]Workspace, error) {
	actor, err := a.actor(ctx, "")
	if err != nil {
		return nil, plain(err)
	}
	found, err := all(func(p paging.Request) (paging.Page[auth.Workspace], error) {
		return a.core.auth.ListWorkspaces(ctx, actor, p)
	})
	workspaces := []Workspace{}
	for _, w := range found {
		workspaces = append(workspaces, showWorkspace(w))
	}
	return workspaces, plain(err)
}

// UpdateWorkspace changes a workspace; nil leaves a field as it is.
func (a *Admin) UpdateWorkspace(ctx context.Context, id string, name, plan *string, rate *int) (Workspace, error) {
	actor, err := a.actor(ctx, "")
	if err != nil {
		return Workspace{}, plain(err)
	}
	patch := auth.WorkspacePatch{Name: name, Plan: (*auth.Plan)(plan), RequestsPerMinute: rate}
	w, err := a.core.auth.UpdateWorkspace(ctx, actor, id, patch)
	return showWorkspace(w), plain(err)
}

// all reads every page of a list.
func all[T any](read func(paging.Request) (paging.Page[T], error)) ([]T, error) {
	var out []T
	request := paging.Request{Limit: paging.MaxLimit}
	for {
		page, err := read(request)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if page.Next == "" {
			return out, nil
		}
		request.After = page.Next
	}
}

// plain keeps the sentence of a fault: at a terminal its code says nothing more,
// and what it points at is the flag or argument of that name.
func plain(err error) error {
	f, ok := fault.As(err)
	switch {
	case !ok:
		return err
	case len(f.Details) == 1:
		name := strings.ReplaceAll(strings.TrimPrefix(f.Details[0].Pointer, "/"), "_", "-")
		return fmt.Errorf("%s: %s", name, f.Details[0].Message)
	}
	return errors.New(f.Message)
}
