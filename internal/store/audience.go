package store

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
)

// audience is who hears of the events of a workspace: its webhooks, and the
// triggers that fire on events.
type audience struct {
	webhooks []webhook.Webhook
	triggers []trigger.Subscription
}

// audiences remembers those of workspaces in a cluster, each by the number it
// has in workspace_load: whoever changes the audience changes the number too, in
// the same unit, and a unit with an event mostly reads that row anyway.
type audiences struct {
	mu    sync.Mutex
	known map[string]numbered
}

type numbered struct {
	number int64
	audience
	// tight says that the workspace had few slots left, or none, when somebody last
	// asked: the next one asks too.
	tight bool
}

// maxAudiences bounds how many are remembered.
const maxAudiences = 10_000

func (a *audiences) find(workspaceID string, number int64) (audience, bool) {
	found, ok := a.recall(workspaceID)
	return found.audience, ok && found.number == number
}

func (a *audiences) keep(workspaceID string, number int64, is audience) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxAudiences {
		a.known = map[string]numbered{}
	}
	a.known[workspaceID] = numbered{number, is, a.known[workspaceID].tight}
}

// recall is what is remembered of a workspace.
func (a *audiences) recall(workspaceID string) (numbered, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[workspaceID]
	return found, ok
}

// note remembers whether a workspace has slots left.
func (a *audiences) note(workspaceID string, roomy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, ok := a.known[workspaceID]; ok {
		found.tight = !roomy
		a.known[workspaceID] = found
	}
}

// audienceChanged says that a unit changes who hears of a workspace's events.
func (u *unit) audienceChanged(workspaceID string) {
	if u.changed == nil {
		u.changed = map[string]bool{}
	}
	u.changed[workspaceID] = true
}

// saw notes the number that the audience of a workspace has for this unit.
func (u *unit) saw(workspaceID string, number int64) {
	if u.audience == nil {
		u.audience = map[string]int64{}
	}
	u.audience[workspaceID] = number
}

// renumberAudiences makes all nodes look again at what the unit has changed.
func (s *Store) renumberAudiences(u *unit) error {
	if s.cluster == nil {
		return nil
	}
	for _, workspaceID := range slices.Sorted(maps.Keys(u.changed)) {
		if err := lockWorkspace(u, workspaceID); err != nil {
			return err
		}
		if err := u.Do(`INSERT INTO workspace_load (workspace_id, running, parked, audience) VALUES ($1, 0, 0, $2)
			ON CONFLICT (workspace_id) DO UPDATE SET audience = excluded.audience`, workspaceID, rand.Int64()); err != nil {
			return err
		}
	}
	return nil
}

// audienceOf is who hears of an event that this unit writes under the lock of
// the workspace.
func (s *Store) audienceOf(u *unit, workspaceID string) (is audience, err error) {
	// What this unit has changed nobody else knows yet, nor maybe ever.
	number, numbered := u.audience[workspaceID]
	numbered = numbered && !u.changed[workspaceID]
	if found, ok := s.audiences.find(workspaceID, number); ok && numbered {
		return found, nil
	}
	if is.triggers, err = list(u, `SELECT workflow_id, trigger_id, spec FROM triggers WHERE workspace_id = $1 AND active = $2 AND type = 'event'`,
		[]any{workspaceID, true}, scanSubscription); err != nil {
		return is, err
	}
	if is.webhooks, err = list(u, selectWebhook+`WHERE workspace_id = $1 AND deleted_at IS NULL`, []any{workspaceID}, scanWebhook); err != nil {
		return is, err
	}
	if numbered {
		s.audiences.keep(workspaceID, number, is)
	}
	return is, nil
}

// tell puts an event on its way to everybody who wants it. No trigger fires on
// the run of a draft.
func (s *Store) tell(u *unit, e event.Event, to audience) error {
	for _, t := range to.triggers {
		if e.Draft || !t.Wants(e) {
			continue
		}
		if err := s.insertOccasion(u, e, t); err != nil {
			return err
		}
	}
	for _, hook := range to.webhooks {
		if !hook.Wants(e) {
			continue
		}
		if err := s.insertDelivery(u, uid.At(uid.Delivery, e.At), hook.ID, e, e.At); err != nil {
			return err
		}
	}
	return nil
}
