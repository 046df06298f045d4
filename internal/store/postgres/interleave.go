package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/stepmill/stepmill/internal/database"
)

// runInterleaved runs the transactions of a group until each has ended. In each
// round it sends the statements that they are waiting for. It returns the
// statements to send with the COMMIT.
func runInterleaved(ctx context.Context, t *transaction, group []*groupedTx) (final []*statement, err error) {
	updates := make(chan *groupedTx)
	running, waiting := len(group), 0
	for _, m := range group {
		if m.start(t, updates); m.resume == nil {
			waiting++
		}
	}
	defer func() {
		for _, m := range group {
			for m.resume != nil && !m.ended { // unblock it: its statements will not be sent
				m.resume <- errSplitGroup
				<-updates
			}
		}
	}()
	for running > 0 {
		for waiting < running {
			if m := <-updates; m.ended {
				running--
			} else {
				waiting++
			}
		}
		if failed(group) {
			return nil, errSplitGroup
		}
		ready := nextBatch(group)
		parts := make([][]*statement, len(ready))
		for i, m := range ready {
			parts[i] = m.ready
		}
		if err := t.send(ctx, orderStatements(group, parts)); err != nil {
			return nil, errors.Join(errSplitGroup, err)
		}
		for _, m := range ready {
			waiting--
			if m.resume != nil {
				m.ready = nil
				m.resume <- nil
				continue
			}
			running--
			m.finishRecorded()
		}
	}
	if failed(group) {
		return nil, errSplitGroup
	}
	parts := make([][]*statement, len(group))
	for i, m := range group {
		parts[i] = m.final
	}
	return orderStatements(group, parts), nil
}

// start runs a transaction until it has something to send or has ended. A
// recorded one has its statements ready.
func (m *groupedTx) start(t *transaction, updates chan<- *groupedTx) {
	if m.recorded != nil {
		m.conn = m.recorded
		m.conn.raw, m.conn.wrote = t.conn, true
		m.ready, m.final = m.conn.split()
		return
	}
	m.resume, m.ended, m.outcome, m.ready, m.final = make(chan error), false, nil, nil, nil
	m.conn = &conn{raw: t.conn, send: func(s []*statement) error {
		m.ready = s
		updates <- m
		return <-m.resume
	}}
	go func() {
		if m.outcome = call(m.fn, m.conn); m.outcome == nil {
			m.final, m.outcome = m.conn.finalStatements()
		}
		m.ended = true
		updates <- m
	}()
}

// finishRecorded ends a recorded transaction once its expectations are checked.
func (m *groupedTx) finishRecorded() {
	if slices.ContainsFunc(m.ready, (*statement).failedExpectation) {
		m.outcome = database.ErrUnexpected
	}
	m.ready, m.ended = nil, true
}

// failed reports whether a transaction has ended with an error and may have left
// changes.
func failed(group []*groupedTx) bool {
	return slices.ContainsFunc(group, func(m *groupedTx) bool { return m.ended && m.outcome != nil && m.conn.wrote })
}

// nextBatch returns the transactions whose statements are sent next. Those that
// acquire a lock for their end wait until all others have reached that point, so
// that locks held until the COMMIT are acquired last.
func nextBatch(group []*groupedTx) []*groupedTx {
	var now, atEnd []*groupedTx
	for _, m := range group {
		switch {
		case m.ended || m.resume != nil && m.ready == nil:
		case indexEndLock(m.ready) < len(m.ready):
			atEnd = append(atEnd, m)
		default:
			now = append(now, m)
		}
	}
	if len(now) > 0 {
		return now
	}
	return atEnd
}

// orderStatements merges what several transactions send into one sequence. First
// come the statements that touch the rows of runs, in the order of the group,
// which all groups use. Then come the other statements before the locks for the
// end of a transaction. Then come those locks, all at once, so that all groups
// acquire them in the same order; the statements that need them follow.
func orderStatements(group []*groupedTx, parts [][]*statement) []*statement {
	var all []*statement
	rest := make([][]*statement, len(parts))
	for i, part := range parts {
		end := indexEndLock(part)
		parts[i], rest[i] = part[:end], part[end:]
		if end > 0 && part[0].expect && part[0].writes() {
			all, parts[i] = append(all, part[0]), part[1:end]
		}
	}
	all = append(all, interleave(parts)...)
	end := interleave(rest)
	if len(end) == 0 {
		return all
	}
	var locks []*statement
	for _, m := range group {
		for _, s := range slices.Concat(m.ready, m.final) {
			if s.atEnd {
				locks = append(locks, s)
			}
		}
	}
	slices.SortFunc(locks, func(a, b *statement) int { return cmp.Compare(a.args[0].(int64), b.args[0].(int64)) })
	return slices.Concat(all, locks, end)
}
