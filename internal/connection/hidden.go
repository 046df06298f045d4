package connection

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/vault"
)

const (
	// maskMemory limits the memory for maskers of connections.
	maskMemory = 16 << 20
	// maxRecent limits the connections whose last maskers are kept.
	maxRecent = 1000
)

// hidden lists everything about a connection that must not be shown: its secrets, the forms in
// which they are sent, and the same for earlier secrets.
func (c *opened) hidden() []string {
	out := c.current()
	for _, replaced := range c.secrets.Replaced {
		out = append(out, replaced.Value)
	}
	return out
}

// current is like hidden, without earlier secrets.
func (c *opened) current() []string {
	out := c.secrets.values()
	if c.auth == nil {
		return out
	}
	env, apply := c.env(), c.auth.Apply
	templates := slices.AppendSeq(slices.Collect(maps.Values(apply.Headers)), maps.Values(apply.Query))
	if apply.Basic != nil {
		templates = append(templates, apply.Basic.User, apply.Basic.Password)
	}
	for _, template := range append(templates, apply.Path) {
		if _, _, err := renderApplied(template, env); err == nil { // otherwise it is not sent
			out = append(out, template.Derived(env)...)
		}
	}
	if apply.Basic != nil {
		if user, password, err := renderBasic(*apply.Basic, env); err == nil {
			out = append(out, basicCredential(user, password))
		}
	}
	if app := c.client(); app.secret != "" {
		out = append(out, basicCredential(url.QueryEscape(app.id), url.QueryEscape(app.secret)))
	}
	return slices.DeleteFunc(out, func(value string) bool { return value == "" })
}

// mask returns the masker for everything about a connection that must not be shown.
func (o *Opener) mask(c *opened) *mask.Masker {
	masker := o.masks.Of(c.WorkspaceID, c.hidden())
	o.recent.set(c.Connection, masker)
	return masker
}

// Mask returns a masker for the secrets of connections, whatever their status. It also masks
// those that were replaced recently and, if a connection was deleted, those that this process
// has used.
func (o *Opener) Mask(ctx context.Context, workspaceID string, names []string) (*mask.Masker, error) {
	var all []*mask.Masker
	for _, name := range names {
		sealed, err := o.repo.store.SealedConnection(ctx, workspaceID, name)
		if err != nil {
			return nil, err
		}
		if sealed != nil {
			c, err := o.repo.openSecrets(ctx, *sealed)
			if err != nil && !errors.Is(err, vault.ErrSealed) { // nobody can use a credential that cannot be decrypted
				return nil, err
			}
			if err == nil {
				// Without a description, only the secrets themselves are known.
				c.service, c.auth, _ = o.repo.integrations.describe(ctx, c.Connection)
				masker := o.mask(c)
				c.Name = name // which it may have had before
				o.recent.set(c.Connection, masker)
			}
		}
		all = append(all, o.recent.of(workspaceID, name)...)
	}
	return mask.Join(all...), nil
}

// recentMasks has the maskers of the connections that were used last, by workspace and name. A
// run that has used a connection still needs its masker after the connection was deleted, or
// replaced by another one with the same name.
type recentMasks struct {
	mu   sync.Mutex
	last map[recentKey]recentMask
}

type recentKey struct{ workspaceID, name string }

type recentMask struct {
	id          string
	now, before *mask.Masker // of the connection, and of the one that had the name before
}

func (r *recentMasks) set(c Connection, masker *mask.Masker) {
	key := recentKey{c.WorkspaceID, c.Name}
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.last[key]
	if !known && len(r.last) >= maxRecent {
		for other := range r.last { // evict any one
			delete(r.last, other)
			break
		}
	}
	if known && was.id != c.ID {
		was.before = was.now
	}
	r.last[key] = recentMask{id: c.ID, now: masker, before: was.before}
}

func (r *recentMasks) of(workspaceID, name string) []*mask.Masker {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.last[recentKey{workspaceID, name}]
	return []*mask.Masker{found.now, found.before}
}

// replaced is a secret that a connection had before, which is kept until a time.
type replaced struct {
	Value string    `json:"value"`
	Until time.Time `json:"until"`
}

// Limits of the earlier secrets of a connection.
const (
	maxReplaced      = 64
	maxReplacedBytes = 256 << 10
	replacedLife     = 30 * 24 * time.Hour
)

// keepReplaced keeps the secrets of an earlier version that the connection no longer has: runs
// that have used them must not show them.
func (c *opened) keepReplaced(was *opened, now time.Time) {
	current := c.current()
	var kept []replaced
	size := 0
	add := func(r replaced) {
		isKnown := slices.Contains(current, r.Value) || slices.ContainsFunc(kept, func(k replaced) bool { return k.Value == r.Value })
		if !isKnown && len(kept) < maxReplaced && size+len(r.Value) <= maxReplacedBytes && now.Before(r.Until) {
			kept = append(kept, r)
			size += len(r.Value)
		}
	}
	for _, value := range was.current() {
		add(replaced{value, was.keptUntil(value, now)})
	}
	for _, r := range was.secrets.Replaced { // newest first
		add(r)
	}
	c.secrets.Replaced = kept
}

// keptUntil returns until when to keep a secret that is replaced now. An access token is kept
// until it expires, after which it is harmless: many are renewed every hour and would fill the
// limits.
func (c *opened) keptUntil(value string, now time.Time) time.Time {
	if token := c.secrets.Token; token != nil && token.Access != "" && token.ExpiresAt != nil && strings.Contains(value, token.Access) {
		return *token.ExpiresAt
	}
	return now.Add(replacedLife)
}
