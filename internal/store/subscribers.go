package store

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
)

// subscribers are the webhooks of a workspace and its triggers that fire on
// events.
type subscribers struct {
	webhooks []webhook.Webhook
	triggers []trigger.Subscription
}

// subscriberCache caches, in a cluster, the subscribers of workspaces under their
// version in workspace_load. A transaction that changes the subscribers also
// changes the version, and most transactions with an event read that row anyway.
type subscriberCache struct {
	mu      sync.Mutex
	entries map[string]cachedSubscribers
}

type cachedSubscribers struct {
	version int64
	subscribers
	// nearLimit is set if the workspace had few or no free slots when last
	// checked, so the next transaction must check again.
	nearLimit bool
}

// maxCachedSubscribers bounds how many workspaces are cached.
const maxCachedSubscribers = 10_000

func (c *subscriberCache) lookup(workspaceID string, version int64) (subscribers, bool) {
	found, ok := c.get(workspaceID)
	return found.subscribers, ok && found.version == version
}

func (c *subscriberCache) put(workspaceID string, version int64, subs subscribers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCachedSubscribers {
		c.entries = map[string]cachedSubscribers{}
	}
	c.entries[workspaceID] = cachedSubscribers{version, subs, c.entries[workspaceID].nearLimit}
}

// get returns the cache entry of a workspace.
func (c *subscriberCache) get(workspaceID string) (cachedSubscribers, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.entries[workspaceID]
	return found, ok
}

// setHeadroom records whether a workspace has enough free slots.
func (c *subscriberCache) setHeadroom(workspaceID string, headroom bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.entries[workspaceID]; ok {
		found.nearLimit = !headroom
		c.entries[workspaceID] = found
	}
}

// subscribersChanged marks that the transaction changes the subscribers of a
// workspace.
func (tx *transaction) subscribersChanged(workspaceID string) {
	if tx.subscribersDirty == nil {
		tx.subscribersDirty = map[string]bool{}
	}
	tx.subscribersDirty[workspaceID] = true
}

// noteSubscriberVersion records the version that this transaction read.
func (tx *transaction) noteSubscriberVersion(workspaceID string, version int64) {
	if tx.subscriberVersions == nil {
		tx.subscriberVersions = map[string]int64{}
	}
	tx.subscriberVersions[workspaceID] = version
}

// bumpSubscriberVersions invalidates the cached subscribers on all nodes.
func (s *Store) bumpSubscriberVersions(tx *transaction) error {
	if s.cluster == nil {
		return nil
	}
	for _, workspaceID := range slices.Sorted(maps.Keys(tx.subscribersDirty)) {
		if err := lockWorkspace(tx, workspaceID); err != nil {
			return err
		}
		if err := tx.Do(`INSERT INTO workspace_load (workspace_id, running, parked, audience) VALUES ($1, 0, 0, $2)
			ON CONFLICT (workspace_id) DO UPDATE SET audience = excluded.audience`, workspaceID, rand.Int64()); err != nil {
			return err
		}
	}
	return nil
}

// subscribersOf returns the subscribers to an event that this transaction writes
// under the workspace's lock.
func (s *Store) subscribersOf(tx *transaction, workspaceID string) (subs subscribers, err error) {
	// Uncommitted changes of this transaction must not enter the cache.
	version, cacheable := tx.subscriberVersions[workspaceID]
	cacheable = cacheable && !tx.subscribersDirty[workspaceID]
	if found, ok := s.subscribers.lookup(workspaceID, version); ok && cacheable {
		return found, nil
	}
	if subs.triggers, err = database.List(tx, `SELECT workflow_id, trigger_id, spec FROM triggers WHERE workspace_id = $1 AND active = $2 AND type = 'event'`,
		[]any{workspaceID, true}, scanSubscription); err != nil {
		return subs, err
	}
	if subs.webhooks, err = database.List(tx, selectWebhook+`WHERE workspace_id = $1 AND deleted_at IS NULL`, []any{workspaceID}, scanWebhook); err != nil {
		return subs, err
	}
	if cacheable {
		s.subscribers.put(workspaceID, version, subs)
	}
	return subs, nil
}

// fanOut queues an event for every subscriber. Triggers do not fire on the runs
// of drafts.
func (s *Store) fanOut(tx *transaction, e event.Event, to subscribers) error {
	for _, t := range to.triggers {
		if e.Draft || !t.Wants(e) {
			continue
		}
		if err := s.insertPendingEvent(tx, e, t); err != nil {
			return err
		}
	}
	for _, hook := range to.webhooks {
		if !hook.Wants(e) {
			continue
		}
		if err := s.insertDelivery(tx, uid.At(uid.Delivery, e.At), hook.ID, e, e.At); err != nil {
			return err
		}
	}
	return nil
}
