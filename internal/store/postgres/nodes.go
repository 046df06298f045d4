package postgres

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/workflow"
)

// now is the database's current time in microseconds. Its clock is the one that
// all nodes share.
const now = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// Now returns the database's current time.
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	var at int64
	err := db.reserve.QueryRow(ctx, `SELECT `+now).Scan(&at)
	return time.UnixMicro(at).UTC(), err
}

// Heartbeat registers a node as alive for the given time.
func (db *DB) Heartbeat(ctx context.Context, n node.Node, capacity int, life time.Duration) (node.Heartbeat, error) {
	var (
		b       node.Heartbeat
		at      int64
		expiry  *int64
		listens string
	)
	err := db.reserve.QueryRow(ctx, `WITH mine AS (
		INSERT INTO nodes AS n (id, name, version, role, capacity, started_at, seen_at, expires_at, url, listens, level)
		VALUES ($1, $2, $3, $4, $5, $6, `+now+`, `+now+` + $7, $8, $9, $10)
		ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, expires_at = CASE WHEN n.dead THEN n.expires_at ELSE excluded.expires_at END
		RETURNING dead, capacity),
		marked AS (`+markRecovery+`)
		SELECT `+now+`, mine.dead, o.expiry, COALESCE(o.capacity, 0) + mine.capacity, COALESCE(o.nodes, 0) + 1, COALESCE(o.url, ''), COALESCE(o.listens, '')
		FROM mine, (SELECT min(expires_at) AS expiry, sum(capacity)::bigint AS capacity, count(*) AS nodes,
			min(url) FILTER (WHERE url <> '' AND NOT dead) AS url, string_agg(listens, ' ') AS listens FROM nodes WHERE id <> $1) o`,
		n.ID, n.Name, n.Version, n.Role, capacity, n.StartedAt.UnixMicro(), life.Microseconds(), n.URL, joinAddrs(n.Listens), n.Level).
		Scan(&at, &b.Dead, &expiry, &b.Capacity, &b.Nodes, &b.Others.URL, &listens)
	b.Others.Listens = splitAddrs(listens)
	b.Now = time.UnixMicro(at).UTC()
	if expiry != nil {
		t := time.UnixMicro(*expiry).UTC()
		b.NextExpiry = &t
	}
	return b, err
}

func joinAddrs(addrs []netip.AddrPort) string {
	texts := make([]string, len(addrs))
	for i, addr := range addrs {
		texts[i] = addr.String()
	}
	return strings.Join(texts, " ")
}

// splitAddrs skips what it cannot parse: another release may have written it.
func splitAddrs(text string) []netip.AddrPort {
	var addrs []netip.AddrPort
	for part := range strings.FieldsSeq(text) {
		if addr, err := netip.ParseAddrPort(part); err == nil {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// Expired marks nodes whose lease has expired as dead and returns all dead nodes,
// including those that were marked earlier and not yet removed.
func (db *DB) Expired(ctx context.Context) ([]string, error) {
	rows, err := db.reserve.Query(ctx, `UPDATE nodes SET dead = true WHERE expires_at < `+now+` RETURNING id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Retire marks a node as dead.
func (db *DB) Retire(ctx context.Context, id string) error {
	_, err := db.reserve.Exec(ctx, `UPDATE nodes SET dead = true WHERE id = $1`, id)
	return err
}

// TerminateSessions terminates the open transactions of a dead node. If the node
// was paused or disconnected in the middle of sending, the database waits for the
// rest while the transaction holds its locks, which would block other nodes.
func (db *DB) TerminateSessions(ctx context.Context, id string) error {
	_, err := db.reserve.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = $1 AND datname = current_database() AND usename = current_user AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
		AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $2 AND NOT dead)`, applicationName(id), id)
	return err
}

// Forget removes a dead node that owns nothing any more, so that another node can
// become the leader without waiting for the end of its term. It calls releaseJobs
// in the same transaction. It reports whether there was such a node, or webhooks
// that it served.
func (db *DB) Forget(ctx context.Context, id string, releaseJobs func(ctx context.Context, tx pgx.Tx, node string) error) (removed bool, err error) {
	const dead = ` AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND NOT dead)`
	err = pgx.BeginFunc(ctx, db.reserve, func(tx pgx.Tx) error {
		if err := releaseJobs(ctx, tx, id); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `WITH c AS (DELETE FROM couriers WHERE node = $1`+dead+` RETURNING 1), t AS (DELETE FROM terms WHERE holder = $1`+dead+`),
			n AS (DELETE FROM nodes WHERE id = $1 AND dead RETURNING 1), told AS (SELECT pg_notify($2, $3))
			SELECT EXISTS (SELECT 1 FROM c UNION ALL SELECT 1 FROM n) FROM told`, id, channel, id+"\n"+string(Deliverable)).Scan(&removed)
	})
	return removed && err == nil, err
}

// Nodes implements node.Registry. It lists the live nodes.
func (db *DB) Nodes(ctx context.Context) ([]node.Node, error) {
	nodes, err := db.listNodes(ctx)
	return nodes, explain(err, classify(err))
}

func (db *DB) listNodes(ctx context.Context) ([]node.Node, error) {
	rows, err := db.reserve.Query(ctx, `SELECT id, name, version, role, level, started_at, seen_at, expires_at FROM nodes WHERE NOT dead AND expires_at > `+now+` ORDER BY id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (n node.Node, err error) {
		var started, seen, expires int64
		err = r.Scan(&n.ID, &n.Name, &n.Version, &n.Role, &n.Level, &started, &seen, &expires)
		n.StartedAt, n.SeenAt = time.UnixMicro(started).UTC(), time.UnixMicro(seen).UTC()
		until := time.UnixMicro(expires).UTC()
		n.ExpiresAt = &until
		return n, err
	})
}

// OldestNode implements workflow.Nodes.
func (db *DB) OldestNode(ctx context.Context) (workflow.OldestNode, error) {
	oldest := workflow.OldestNode{Level: release.Number}
	nodes, err := db.Nodes(ctx)
	for _, n := range nodes {
		if n.Level < oldest.Level {
			oldest = workflow.OldestNode{Name: n.Name, Version: n.Version, Level: n.Level}
		}
	}
	return oldest, err
}

// TryLead reports whether this node is the leader for the given time. The result
// is a hint: the leader's work must be safe if two nodes do it.
func (db *DB) TryLead(ctx context.Context, term, id string, life time.Duration) (bool, error) {
	var mine bool
	err := db.reserve.QueryRow(ctx, `INSERT INTO terms AS t (name, holder, until) VALUES ($1, $2, `+now+` + $3)
		ON CONFLICT (name) DO UPDATE SET
			holder = CASE WHEN t.holder = $2 OR t.until < `+now+` THEN $2 ELSE t.holder END,
			until = CASE WHEN t.holder = $2 OR t.until < `+now+` THEN excluded.until ELSE t.until END
		RETURNING holder = $2`, term, id, life.Microseconds()).Scan(&mine)
	return mine, err
}
