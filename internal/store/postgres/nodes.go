package postgres

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Clock returns the database's current time, and the record of the steady time.
func (db *DB) Clock(ctx context.Context) (time.Time, clock.Record, error) {
	var at, correction, seen, booted int64
	var r clock.Record
	err := db.reserve.QueryRow(ctx, `SELECT `+now()+`, COALESCE(c.correction, 0), COALESCE(c.seen, 0), COALESCE(c.boot, ''), COALESCE(c.booted_at, 0)
		FROM (SELECT) one LEFT JOIN service_clock c ON true`).Scan(&at, &correction, &seen, &r.Boot, &booted)
	r.Correction, r.Seen, r.BootedAt = time.Duration(correction)*time.Microsecond, time.UnixMicro(seen).UTC(), time.UnixMicro(booted).UTC()
	return time.UnixMicro(at).UTC(), r, err
}

// tick checks the database's clock against the steady time of a node, $10, which is null
// if the node only knows what the database told it. If they differ by more than the
// statement may take, $11, or by -$15, then the database's clock has jumped, and the
// correction changes so that the steady time goes on. But if another machine has agreed
// with the database less than $7 ago, this one was paused. The row also records how to
// continue after a restart: $12 is the boot of the machine and $13 its steady time.
//
// All of this is one statement, so that nodes that notice a jump at the same time
// correct it once.
const (
	tick = `INSERT INTO service_clock AS c (id, correction, seen, boot, booted_at)
		SELECT 1, n.correction, t.at + n.correction, $12, $13 FROM t, LATERAL (SELECT CASE WHEN t.at - $10 ` + differs + ` THEN $10 - t.at ELSE 0 END AS correction) n
		WHERE $10::bigint IS NOT NULL
		ON CONFLICT (id) DO UPDATE SET correction = ` + corrected + `, seen = ` + asked + ` + ` + corrected + `, boot = excluded.boot, booted_at = excluded.booted_at
		RETURNING c.correction`
	corrected = `CASE WHEN ` + asked + ` + c.correction - $10 ` + differs + `
		AND (c.boot = excluded.boot OR ` + asked + ` + c.correction - c.seen NOT BETWEEN 0 AND $7) THEN $10 - ` + asked + ` ELSE c.correction END`
	differs = `NOT BETWEEN -$15::bigint AND $11`
	asked   = `(excluded.seen - excluded.correction)` // the time of the database's clock
)

// Heartbeat registers a node as alive for the given time. The expiry refers to the steady
// time of the node, which is that of all others. The database's clock is read to compare
// the two.
func (db *DB) Heartbeat(ctx context.Context, n node.Node, capacity int, life time.Duration, steady clock.Record) (node.Heartbeat, error) {
	var (
		b              node.Heartbeat
		at, correction int64
		expiry         *int64
		listens        string
		expires, known = clock.Steady().Add(life).UnixMicro(), (*int64)(nil)
	)
	if steady.Measured {
		micros := steady.Seen.UnixMicro()
		known = &micros
	}
	err := db.reserve.QueryRow(ctx, `WITH t AS MATERIALIZED (SELECT `+now()+` AS at), tick AS (`+tick+`), mine AS (
		INSERT INTO nodes AS n (id, name, version, role, capacity, started_at, seen_at, expires_at, url, listens, level)
		SELECT $1, $2, $3, $4, $5, $6, t.at, $14, $8, $9, $16 FROM t
		ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, expires_at = CASE WHEN n.dead THEN n.expires_at ELSE excluded.expires_at END
		RETURNING dead, capacity),
		marked AS (`+markRecovery+`)
		SELECT t.at, COALESCE((SELECT correction FROM tick), (SELECT correction FROM service_clock), 0), mine.dead, o.expiry, COALESCE(o.capacity, 0) + mine.capacity, COALESCE(o.nodes, 0) + 1, COALESCE(o.url, ''), COALESCE(o.listens, '')
		FROM t, mine, (SELECT min(expires_at) AS expiry, sum(capacity)::bigint AS capacity, count(*) AS nodes,
			min(url) FILTER (WHERE url <> '' AND NOT dead) AS url, string_agg(listens, ' ') AS listens FROM nodes WHERE id <> $1) o`,
		n.ID, n.Name, n.Version, n.Role, capacity, n.StartedAt.UnixMicro(), life.Microseconds(), n.URL, joinAddrs(n.Listens),
		known, (life*3/10+clock.MaxStep).Microseconds(), steady.Boot, steady.BootedAt.UnixMicro(), expires, clock.MaxStep.Microseconds(), n.Level).
		Scan(&at, &correction, &b.Dead, &expiry, &b.Capacity, &b.Nodes, &b.Others.URL, &listens)
	b.Others.Listens = splitAddrs(listens)
	b.Now, b.Correction = time.UnixMicro(at).UTC(), time.Duration(correction)*time.Microsecond
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
	rows, err := db.reserve.Query(ctx, `UPDATE nodes SET dead = true WHERE expires_at < $1 RETURNING id`, clock.Steady().UnixMicro())
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
// become the leader without waiting for the end of its lease. It calls release in the
// same transaction. It reports whether there was such a node, or webhooks that it
// served.
func (db *DB) Forget(ctx context.Context, id string, release func(ctx context.Context, tx pgx.Tx, node string) error) (removed bool, err error) {
	const dead = ` AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND NOT dead)`
	err = pgx.BeginFunc(ctx, db.reserve, func(tx pgx.Tx) error {
		if err := release(ctx, tx, id); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `WITH w AS (DELETE FROM webhook_owners WHERE node = $1`+dead+` RETURNING 1), l AS (DELETE FROM leaderships WHERE holder = $1`+dead+`),
			n AS (DELETE FROM nodes WHERE id = $1 AND dead RETURNING 1)
			SELECT EXISTS (SELECT 1 FROM w UNION ALL SELECT 1 FROM n)`, id).Scan(&removed)
	})
	return removed && err == nil, err
}

// Nodes implements node.Registry. It lists the live nodes.
func (db *DB) Nodes(ctx context.Context) ([]node.Node, error) {
	nodes, err := db.listNodes(ctx)
	return nodes, explain(err, classify(err))
}

func (db *DB) listNodes(ctx context.Context) ([]node.Node, error) {
	rows, err := db.reserve.Query(ctx, `SELECT id, name, version, role, level, started_at, seen_at, expires_at FROM nodes WHERE NOT dead AND expires_at > $1 ORDER BY id`, clock.Steady().UnixMicro())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (n node.Node, err error) {
		var started, seen, expires int64
		err = r.Scan(&n.ID, &n.Name, &n.Version, &n.Role, &n.Level, &started, &seen, &expires)
		n.StartedAt, n.SeenAt = time.UnixMicro(started).UTC(), time.UnixMicro(seen).UTC()
		until := clock.Wall(time.UnixMicro(expires).UTC())
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
func (db *DB) TryLead(ctx context.Context, leadership, id string, duration time.Duration) (bool, error) {
	var mine bool
	err := db.reserve.QueryRow(ctx, `INSERT INTO leaderships AS l (name, holder, until) VALUES ($1, $2, $4::bigint + $3)
		ON CONFLICT (name) DO UPDATE SET
			holder = CASE WHEN l.holder = $2 OR l.until < $4 THEN $2 ELSE l.holder END,
			until = CASE WHEN l.holder = $2 OR l.until < $4 THEN excluded.until ELSE l.until END
		RETURNING holder = $2`, leadership, id, duration.Microseconds(), clock.Steady().UnixMicro()).Scan(&mine)
	return mine, err
}
