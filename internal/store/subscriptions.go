package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Subscriptions implements subscription.CallStore.
type Subscriptions struct {
	db *DB
	workspaceReader
	triggerPoller
}

// subscriptionsPerWorkspace is how many subscriptions of a workspace nodes work on at a time,
// so that one with many slow services leaves room for others.
const subscriptionsPerWorkspace = 4

var subscriptionRows = mapTable("subscriptions", "id", func(s *subscription.Subscription) []any {
	failed := noteOf(&s.Error)
	return []any{
		"id", &s.ID, "workspace_id", &s.WorkspaceID, "target", &s.Target, "connection_id", &s.ConnectionID, "hook", &s.Hook, "token_hash", &s.TokenHash,
		"sealed", &s.Sealed, "base_url", &s.BaseURL, "registered", &s.Registered, "expires_at", &s.ExpiresAt, "next_at", &s.NextAt, "failures", &s.Failures,
		"error_at", failed.at, "error_code", failed.code, "error_text", failed.text, "created_at", &s.CreatedAt,
		"claimed_by", local, "claimed_until", local,
	}
})

var subscriptionColumns = subscriptionRows.columns("s.")

// subscriptionsOf returns the targets of the subscriptions that the triggers of a workflow
// need, sorted.
func subscriptionsOf(tx *transaction, workflowID string) ([]string, error) {
	return database.List(tx, `SELECT DISTINCT subscription FROM triggers WHERE workflow_id = $1 AND subscription IS NOT NULL ORDER BY 1`, []any{workflowID}, scanText)
}

// addSubscriptions creates the subscriptions that armed triggers need and do not have yet, or makes
// them due. It returns their targets by the ids of the triggers. The targets that the
// workflow needed before are sorted.
func addSubscriptions(tx *transaction, w workflow.Workflow, armed []workflow.Armed, before []string) (map[string]string, error) {
	targets, missing := map[string]string{}, []subscription.Subscription{}
	for _, t := range armed {
		if t.Hook == nil {
			continue
		}
		connectionID, err := database.One(tx, `SELECT `+connectionNamed, []any{w.WorkspaceID, t.Hook.Connection}, scanText)
		if err != nil {
			return nil, err
		}
		if connectionID == nil || *connectionID == "" { // only possible while the workflow is not active
			continue
		}
		one := subscription.Subscription{WorkspaceID: w.WorkspaceID, ConnectionID: *connectionID, Hook: t.Hook.Name, Target: *connectionID + "/" + t.Hook.Name}
		if t.Hook.Settings != "" {
			one.Target += "/" + w.ID + "/" + t.ID + "/" + t.Hook.Settings
		}
		targets[t.ID] = one.Target
		if _, has := slices.BinarySearch(before, one.Target); !has {
			missing = append(missing, one)
		}
	}
	// In order, so that two workflows with the same subscriptions do not deadlock.
	slices.SortFunc(missing, func(a, b subscription.Subscription) int { return strings.Compare(a.Target, b.Target) })
	now := clock.Now()
	for _, one := range missing {
		if err := tx.Do(`INSERT INTO subscriptions (id, workspace_id, target, connection_id, hook, base_url, registered, next_at, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (target) DO UPDATE SET next_at = excluded.next_at`,
			uid.New(uid.Subscription), one.WorkspaceID, one.Target, one.ConnectionID, one.Hook, "", false, clock.Steady(), now); err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		announceSubscriptions(tx)
	}
	return targets, nil
}

// dropSubscriptions makes the subscriptions due that a workflow needed before and does not need
// any more. Other workflows may still need them.
func dropSubscriptions(tx *transaction, workspaceID string, before, now []string) error {
	gone := slices.DeleteFunc(slices.Clone(before), func(target string) bool { return slices.Contains(now, target) })
	for _, target := range gone {
		if err := tx.Do(`UPDATE subscriptions SET next_at = $1 WHERE target = $2 AND workspace_id = $3`, clock.Steady(), target, workspaceID); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		announceSubscriptions(tx)
	}
	return nil
}

func announceSubscriptions(tx *transaction) {
	tx.AfterCommit(func() { tx.db.notify.SubscriptionDue(clock.Steady()) })
}

// DueSubscriptions implements subscription.Store.
func (s Subscriptions) DueSubscriptions(ctx context.Context, node string, now time.Time, limit int) ([]subscription.Subscription, error) {
	return readList(ctx, s.db, `SELECT `+subscriptionColumns+` FROM `+s.nextSubscriptions()+` AND s.next_at <= $2 ORDER BY s.next_at LIMIT $4`,
		[]any{node, now, subscriptionsPerWorkspace, limit}, subscriptionRows.scan)
}

// NextSubscription implements subscription.Store.
func (s Subscriptions) NextSubscription(ctx context.Context, node string, now time.Time) (*time.Time, error) {
	return readValue[*time.Time](ctx, s.db, `SELECT s.next_at FROM `+s.nextSubscriptions()+` ORDER BY s.next_at LIMIT 1`, node, now, subscriptionsPerWorkspace)
}

// nextSubscriptions selects what a node can do next, as s: of each workspace the first
// subscriptions that no node works on, and only as many as there is room for beside those
// that a node does work on. The parameters are this node, the current time and that number.
func (s Subscriptions) nextSubscriptions() string {
	return `(SELECT *, row_number() OVER (PARTITION BY workspace_id ORDER BY free, next_at) AS place FROM
		(SELECT *, CASE WHEN ` + s.isUnclaimed("$2", "$1") + ` THEN 1 ELSE 0 END AS free FROM subscriptions WHERE next_at IS NOT NULL) AS marked) AS s
		WHERE s.free = 1 AND s.place <= $3`
}

func (s Subscriptions) isUnclaimed(now, self string) string {
	return `(claimed_until IS NULL OR claimed_until <= ` + now + ` OR claimed_by <> ` + self + ` AND ` + s.db.queue.NodeIsGone("claimed_by", self) + `)`
}

// ClaimSubscription implements subscription.Store.
func (s Subscriptions) ClaimSubscription(ctx context.Context, of subscription.Subscription, node string, now, until time.Time) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		return oneRow(tx.Exec(`UPDATE subscriptions SET claimed_until = $1, claimed_by = $6 WHERE id = $2 AND workspace_id = $3 AND next_at = $4 AND `+s.isUnclaimed("$5", "$6"),
			until, of.ID, of.WorkspaceID, *of.NextAt, now, node))
	})
}

// SubscriptionNeed implements subscription.Store.
func (s Subscriptions) SubscriptionNeed(ctx context.Context, of subscription.Subscription) (subscription.Need, error) {
	return view(ctx, s.db, func(c database.Conn) (subscription.Need, error) { return subscriptionNeed(c, of) })
}

func subscriptionNeed(c database.Conn, of subscription.Subscription) (need subscription.Need, err error) {
	if err := c.Query(`SELECT name, account FROM connections WHERE id = $1 AND workspace_id = $2`, []any{of.ConnectionID, of.WorkspaceID},
		func(r database.Row) error { return r.Scan(&need.Connection, &need.Account) }); err != nil {
		return need, err
	}
	need.Triggers, err = database.List(c, selectTrigger+`WHERE t.subscription = $1 AND t.workspace_id = $2 ORDER BY t.workflow_id, t.trigger_id`,
		[]any{of.Target, of.WorkspaceID}, triggerRows.scan)
	return need, err
}

// SaveSubscription implements subscription.Store.
func (s Subscriptions) SaveSubscription(ctx context.Context, of subscription.Subscription, was time.Time, ends bool) error {
	var errorAt, code, text any
	if of.Error != nil {
		errorAt, code, text = of.Error.At, of.Error.Code, Text(of.Error.Message)
	}
	set, args := ``, []any{
		database.BytesOrNil(of.TokenHash), database.BytesOrNil(of.Sealed), of.BaseURL, of.Registered, database.TimeOrNil(of.ExpiresAt), of.Failures,
		errorAt, code, text, of.ID, of.WorkspaceID,
	}
	if ends {
		set = `, claimed_by = NULL, claimed_until = NULL, next_at = CASE WHEN next_at = $12 THEN CAST($13 AS BIGINT) ELSE next_at END`
		args = append(args, was, database.TimeOrNil(of.NextAt))
	}
	return s.db.write(ctx, func(tx *transaction) error {
		err := tx.Do(`UPDATE subscriptions SET token_hash = $1, sealed = $2, base_url = $3, registered = $4, expires_at = $5, failures = $6,
			error_at = $7, error_code = $8, error_text = $9`+set+` WHERE id = $10 AND workspace_id = $11`, args...)
		if ends {
			announceSubscriptions(tx)
		}
		return err
	})
}

// DeleteSubscription implements subscription.Store.
func (s Subscriptions) DeleteSubscription(ctx context.Context, of subscription.Subscription, was time.Time) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		return oneRow(tx.Exec(`DELETE FROM subscriptions WHERE id = $1 AND workspace_id = $2 AND next_at = $3
			AND NOT EXISTS (SELECT 1 FROM triggers WHERE triggers.subscription = subscriptions.target)`, of.ID, of.WorkspaceID, was))
	})
}

// SubscriptionByToken implements subscription.Store.
func (s Subscriptions) SubscriptionByToken(ctx context.Context, hash []byte) (found *subscription.Subscription, need subscription.Need, err error) {
	err = s.db.read(ctx, func(c database.Conn) (err error) {
		found, err = database.One(c, `SELECT `+subscriptionColumns+` FROM subscriptions s WHERE s.token_hash = $1`, []any{hash}, subscriptionRows.scan)
		if err != nil || found == nil {
			return err
		}
		need, err = subscriptionNeed(c, *found)
		need.Triggers = slices.DeleteFunc(need.Triggers, func(t trigger.Trigger) bool { return !t.Active })
		return err
	})
	return found, need, err
}

// SubscriptionsFor implements subscription.Store.
func (s Subscriptions) SubscriptionsFor(ctx context.Context, workspaceID string, targets []string) ([]subscription.Subscription, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	args := []any{workspaceID}
	for _, target := range targets {
		args = append(args, target)
	}
	return readList(ctx, s.db, `SELECT `+subscriptionColumns+` FROM subscriptions s WHERE s.workspace_id = $1 AND s.target IN (`+database.Placeholders(2, len(targets))+`)`,
		args, subscriptionRows.scan)
}

// RecheckSubscriptions implements subscription.Store.
func (s Subscriptions) RecheckSubscriptions(ctx context.Context, baseURL string, at time.Time) error {
	return s.db.write(ctx, func(tx *transaction) error {
		announceSubscriptions(tx)
		return tx.Do(`UPDATE subscriptions SET next_at = $1 WHERE sealed IS NOT NULL AND base_url <> $2`, at, baseURL)
	})
}

// recheckSubscriptions makes the subscriptions with a connection due that has changed, since
// the service may accept now what it has not before, or the account may be another one.
func recheckSubscriptions(tx *transaction, workspaceID, connectionID string) error {
	n, err := tx.Exec(`UPDATE subscriptions SET next_at = $1 WHERE connection_id = $2 AND workspace_id = $3`, clock.Steady(), connectionID, workspaceID)
	if n > 0 {
		announceSubscriptions(tx)
	}
	return err
}
