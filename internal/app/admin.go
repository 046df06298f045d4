package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// Admin implements the commands of the operator of an installation.
type Admin struct {
	core  *core
	first auth.Workspace
	// serverURL returns the base URL of the server that runs the command; nil if
	// none does.
	serverURL func() string
	// files is what the server that runs the command uses; nil if none does.
	files *file.Service
	// diskTimeout limits how long the disk of the server that runs the command may take
	// to respond; 0: there is no limit.
	diskTimeout time.Duration
	// diskReserve is how much free space the server that runs the command leaves.
	diskReserve int64
	// openPlace returns where the bytes of files are.
	openPlace func() (filesPlace, error)
}

// WithAdmin calls do with the data of an existing installation. While a server has
// the data directory open, the server runs the command line args instead.
func WithAdmin(ctx context.Context, data config.Data, args []string, stdout, stderr io.Writer, do func(*Admin) error) error {
	open := func(readOnly bool) error {
		if readOnly {
			return withReadOnlyAdmin(ctx, data, stderr, do)
		}
		admin, err := openAdmin(ctx, data)
		if err != nil {
			return err
		}
		return errors.Join(do(admin), admin.Close())
	}
	return locate(data).inServerOr(ctx, args, stdout, stderr, open)
}

// openAdmin opens the data of an installation that no server has open.
func openAdmin(ctx context.Context, data config.Data) (*Admin, error) {
	c, err := openCore(ctx, data, sqlite.Options{}, store.Notify{})
	if err != nil {
		return nil, err
	}
	admin, err := newAdmin(ctx, c, DataLocation(data))
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	admin.openPlace = func() (filesPlace, error) { return openFilesPlace(ctx, data, c.db.openFiles) }
	return admin, nil
}

// newAdmin returns the commands on data that is open.
func newAdmin(ctx context.Context, c *core, place string) (*Admin, error) {
	first, err := c.store.Workspaces.FirstWorkspace(ctx)
	if err != nil {
		return nil, err
	}
	if first == nil {
		return nil, explainMissing(sqlite.ErrMissing, place)
	}
	return &Admin{core: c, first: *first}, nil
}

// Close flushes pending writes and closes the database.
func (a *Admin) Close() error { return a.core.close() }

// actor returns the actor for a workspace; an empty id means the first one.
func (a *Admin) actor(ctx context.Context, workspaceID string) (auth.Actor, error) {
	actor := auth.Actor{Workspace: a.first, Type: audit.ActorCLI, Scopes: auth.Scopes()}
	if workspaceID == "" || workspaceID == a.first.ID {
		return actor, nil
	}
	workspace, err := a.core.auth.GetWorkspace(ctx, actor, workspaceID)
	actor.Workspace = workspace
	return actor, err
}

// Key is an API key in the output of commands.
type Key struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Prefix     string     `json:"prefix"`
	Scopes     string     `json:"scopes"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

// CreateKey shows the value of a new key and creates it. The lifetime is a duration
// such as 90d; an empty one means that the key does not expire.
func (a *Admin) CreateKey(ctx context.Context, workspaceID, name string, scopes []string, life string, show auth.Show) error {
	actor, err := a.actor(ctx, workspaceID)
	if err != nil {
		return cliError(err)
	}
	wanted := auth.NewKey{Name: name, Scopes: scopes}
	if life != "" {
		length, err := clock.ParseDuration(life)
		if err != nil {
			return fmt.Errorf("--expires: %w", err)
		}
		end := clock.Now().Add(length)
		wanted.ExpiresAt = &end
	}
	return a.showFirst(ctx, "key", show, func(show auth.Show) error {
		wanted.Show = show
		_, _, err := a.core.auth.CreateKey(ctx, actor, wanted)
		return err
	})
}

// Keys lists the keys of a workspace, newest first.
func (a *Admin) Keys(ctx context.Context, workspaceID string) ([]Key, error) {
	actor, err := a.actor(ctx, workspaceID)
	if err != nil {
		return nil, cliError(err)
	}
	found, err := readAll(func(p paging.Request) (paging.Page[auth.Key], error) { return a.core.auth.ListKeys(ctx, actor, p) })
	keys := []Key{}
	for _, k := range found {
		keys = append(keys, Key{k.ID, k.Name, k.Prefix(), auth.JoinScopes(k.Scopes), k.CreatedAt, k.ExpiresAt, k.LastUsedAt})
	}
	return keys, cliError(err)
}

// RevokeKey revokes a key permanently.
func (a *Admin) RevokeKey(ctx context.Context, workspaceID, id string) error {
	actor, err := a.actor(ctx, workspaceID)
	if err == nil {
		err = a.core.auth.RevokeKey(ctx, actor, id)
	}
	return cliError(err)
}

// Workspace is a workspace in the output of commands.
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

// CreateWorkspace shows a new workspace and its first admin key, and creates them.
func (a *Admin) CreateWorkspace(ctx context.Context, name, plan string, rate *int, show func(Workspace, string) error) error {
	actor, err := a.actor(ctx, "")
	if err != nil {
		return cliError(err)
	}
	var shown Workspace
	showBoth := func(key string) error { return show(shown, key) }
	return a.showFirst(ctx, "key", showBoth, func(showBoth auth.Show) error {
		wanted := auth.NewWorkspace{Name: name, Plan: auth.Plan(plan), RequestsPerMinute: rate}
		wanted.Show = func(w auth.Workspace, key string) error {
			shown = showWorkspace(w)
			return showBoth(key)
		}
		_, _, err := a.core.auth.CreateWorkspace(ctx, actor, wanted)
		return err
	})
}

// Workspaces lists every workspace, newest first.
func (a *Admin) Workspaces(ctx context.Context) ([]Workspace, error) {
	actor, err := a.actor(ctx, "")
	if err != nil {
		return nil, cliError(err)
	}
	found, err := readAll(func(p paging.Request) (paging.Page[auth.Workspace], error) {
		return a.core.auth.ListWorkspaces(ctx, actor, p)
	})
	workspaces := []Workspace{}
	for _, w := range found {
		workspaces = append(workspaces, showWorkspace(w))
	}
	return workspaces, cliError(err)
}

// UpdateWorkspace changes a workspace; nil leaves a field unchanged.
func (a *Admin) UpdateWorkspace(ctx context.Context, id string, name, plan *string, rate *int) (Workspace, error) {
	actor, err := a.actor(ctx, "")
	if err != nil {
		return Workspace{}, cliError(err)
	}
	patch := auth.WorkspacePatch{Name: name, Plan: (*auth.Plan)(plan), RequestsPerMinute: rate}
	w, err := a.core.auth.UpdateWorkspace(ctx, actor, id, patch)
	return showWorkspace(w), cliError(err)
}

func readAll[T any](read func(paging.Request) (paging.Page[T], error)) ([]T, error) {
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

// cliError reduces a fault to its message. Its code adds nothing at a terminal,
// and its pointer becomes the flag or argument of that name.
func cliError(err error) error {
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
