package store

import (
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
	triggers []trigger.EventFilter
}

// subscriberCache caches the subscribers of workspaces by their version, where the
// queue knows one. A transaction that changes the subscribers also changes the version.
type subscriberCache struct {
	mu      sync.Mutex
	entries map[string]cachedSubscribers
}

type cachedSubscribers struct {
	version int64
	subscribers
}

// maxCachedSubscribers bounds the memory of the cache. A full one is emptied: what is missing is
// read again.
const maxCachedSubscribers = 10_000

func (c *subscriberCache) get(workspaceID string, version int64) (subscribers, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.entries[workspaceID]
	return found.subscribers, ok && found.version == version
}

func (c *subscriberCache) put(workspaceID string, version int64, subs subscribers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCachedSubscribers {
		c.entries = map[string]cachedSubscribers{}
	}
	c.entries[workspaceID] = cachedSubscribers{version, subs}
}

// subscribersOf returns the subscribers to an event that this transaction writes
// under the workspace's lock.
func subscribersOf(tx *transaction, workspaceID string) (subs subscribers, err error) {
	version, cacheable := tx.queue.SubscriberVersion(workspaceID)
	if cacheable {
		if found, ok := tx.db.subscribers.get(workspaceID, version); ok {
			return found, nil
		}
	}
	if subs.triggers, err = database.List(tx, `SELECT workflow_id, trigger_id, spec FROM triggers WHERE workspace_id = $1 AND active = $2 AND type = 'event'`,
		[]any{workspaceID, true}, scanEventFilter); err != nil {
		return subs, err
	}
	if subs.webhooks, err = database.List(tx, webhookRows.selects()+`WHERE workspace_id = $1 AND deleted_at IS NULL`, []any{workspaceID}, webhookRows.scan); err != nil {
		return subs, err
	}
	if cacheable {
		tx.db.subscribers.put(workspaceID, version, subs)
	}
	return subs, nil
}

// fanOut queues an event for every subscriber. Triggers do not fire on the runs
// of drafts.
func fanOut(tx *transaction, e event.Event, to subscribers) error {
	for _, t := range to.triggers {
		if e.Draft || !t.Wants(e) {
			continue
		}
		if err := insertPendingEvent(tx, e, t); err != nil {
			return err
		}
	}
	for _, hook := range to.webhooks {
		if !hook.Wants(e) {
			continue
		}
		if err := insertDelivery(tx, uid.At(uid.Delivery, e.At), hook.ID, e, e.At); err != nil {
			return err
		}
	}
	return nil
}
