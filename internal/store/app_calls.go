package store

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/trigger"
)

const (
	// A service waits with further calls for an account while so many, or so many bytes of
	// them, are waiting.
	appCallsPerAccount     = 1_000
	appCallBytesPerAccount = 32 << 20
	// appCallsAtATime is how many calls for an account are handed out at a time, so that a
	// busy account leaves room for others.
	appCallsAtATime = 4
)

var appCallRows = mapTable("app_calls", "id", func(c *subscription.AppCall) []any {
	return []any{
		"id", &c.ID, "workspace_id", &c.WorkspaceID, "hook", &c.Hook, "app", &c.App, "account_id", &c.Account, "sealed", &c.Sealed,
		"received_at", &c.ReceivedAt, "next_at", &c.NextAt, "failures", &c.Failures,
	}
})

// fromApp selects the subscriptions s of the connections that were made with an app: what the
// service has told decides which account a connection has.
const fromApp = ` FROM subscriptions s JOIN connections c ON c.id = s.connection_id AND c.workspace_id = s.workspace_id WHERE s.hook = $1 AND c.app = $2`

// CalledAccounts implements subscription.AppCallStore.
func (s Subscriptions) CalledAccounts(ctx context.Context, hook, app string, accounts []string) ([]string, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	args := []any{hook, app}
	for _, account := range accounts {
		args = append(args, Text(account))
	}
	return readList(ctx, s.db, `SELECT DISTINCT c.account_id`+fromApp+` AND c.account_id IN (`+database.Placeholders(3, len(accounts))+`)
		AND EXISTS (SELECT 1 FROM triggers t WHERE t.subscription = s.target AND t.workspace_id = s.workspace_id AND t.active)`, args, scanText)
}

// Callees implements subscription.AppCallStore.
func (s Subscriptions) Callees(ctx context.Context, hook, app, account string) ([]subscription.Callee, error) {
	return s.callees(ctx, fromApp+` AND c.account_id = $3`, hook, app, account)
}

// CalleesIn implements subscription.AppCallStore.
func (s Subscriptions) CalleesIn(ctx context.Context, workspaceID, hook, app string) ([]subscription.Callee, error) {
	return s.callees(ctx, fromApp+` AND s.workspace_id = $3`, hook, app, workspaceID)
}

func (s Subscriptions) callees(ctx context.Context, which string, args ...any) ([]subscription.Callee, error) {
	return view(ctx, s.db, func(c database.Conn) (found []subscription.Callee, err error) {
		subscriptions, err := database.List(c, `SELECT `+subscriptionColumns+which+` ORDER BY s.id`, args, subscriptionRows.scan)
		if err != nil {
			return found, err
		}
		found = nil
		for _, one := range subscriptions {
			need, err := subscriptionNeed(c, one)
			if err != nil {
				return found, err
			}
			need.Triggers = slices.DeleteFunc(need.Triggers, func(t trigger.Trigger) bool { return !t.Active })
			if len(need.Triggers) > 0 {
				found = append(found, subscription.Callee{Subscription: one, Need: need})
			}
		}
		return found, nil
	})
}

// InsertAppCalls implements subscription.AppCallStore.
func (s Subscriptions) InsertAppCalls(ctx context.Context, calls []subscription.AppCall) error {
	return s.db.write(ctx, func(tx *transaction) error {
		for _, call := range calls {
			var waiting, bytes int64
			if err := tx.Query(`SELECT COUNT(*), COALESCE(SUM(LENGTH(sealed)), 0) FROM app_calls WHERE app = $1 AND account_id = $2`,
				[]any{call.App, call.Account}, func(r database.Row) error { return r.Scan(&waiting, &bytes) }); err != nil {
				return err
			}
			if waiting >= appCallsPerAccount || bytes+int64(len(call.Sealed)) > appCallBytesPerAccount {
				return subscription.TooManyCalls(call.Account)
			}
			if err := appCallRows.insertInto(tx, call); err != nil {
				return err
			}
		}
		tx.AfterCommit(func() { tx.db.notify.AppCalled(clock.Steady()) })
		return nil
	})
}

// DueAppCalls implements subscription.AppCallStore.
func (s Subscriptions) DueAppCalls(ctx context.Context, now time.Time, limit int) ([]subscription.AppCall, error) {
	return readList(ctx, s.db, `SELECT `+appCallRows.columns("")+` FROM (SELECT *, row_number() OVER (PARTITION BY app, account_id ORDER BY next_at, id) AS place
		FROM app_calls WHERE next_at <= $1) AS waiting WHERE place <= $2 ORDER BY next_at, id LIMIT $3`, []any{now, appCallsAtATime, limit}, appCallRows.scan)
}

// NextAppCall implements subscription.AppCallStore.
func (s Subscriptions) NextAppCall(ctx context.Context) (*time.Time, error) {
	return readValue[*time.Time](ctx, s.db, `SELECT next_at FROM app_calls ORDER BY next_at LIMIT 1`)
}

// PostponeAppCall implements subscription.AppCallStore.
func (s Subscriptions) PostponeAppCall(ctx context.Context, call subscription.AppCall, next time.Time, failures int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		return oneRow(tx.Exec(`UPDATE app_calls SET next_at = $1, failures = $2 WHERE id = $3 AND next_at = $4`, next, failures, call.ID, call.NextAt))
	})
}

// DeleteAppCall implements subscription.AppCallStore.
func (s Subscriptions) DeleteAppCall(ctx context.Context, call subscription.AppCall) error {
	return s.db.write(ctx, func(tx *transaction) error {
		return tx.Do(`DELETE FROM app_calls WHERE id = $1 AND workspace_id = $2`, call.ID, call.WorkspaceID)
	})
}
