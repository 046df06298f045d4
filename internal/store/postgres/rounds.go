package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/stepmill/stepmill/internal/store"
)

// rounds lets the units of a group run until each has ended, sending what all of
// them wait for at a time. It returns what is left to be sent at the end.
func rounds(ctx context.Context, t *transaction, group []*member) (last []*statement, err error) {
	posted := make(chan *member)
	running, waiting := len(group), 0
	for _, m := range group {
		if m.begin(t, posted); m.resume == nil {
			waiting++
		}
	}
	defer func() {
		for _, m := range group {
			for m.resume != nil && !m.ended { // it waits for what will not come
				m.resume <- errApart
				<-posted
			}
		}
	}()
	for running > 0 {
		for waiting < running {
			if m := <-posted; m.ended {
				running--
			} else {
				waiting++
			}
		}
		if failed(group) {
			return nil, errApart
		}
		batch := next(group)
		parts := make([][]*statement, len(batch))
		for i, m := range batch {
			parts[i] = m.ready
		}
		if err := t.send(ctx, arrange(group, parts)); err != nil {
			return nil, errors.Join(errApart, err)
		}
		for _, m := range batch {
			waiting--
			if m.resume != nil {
				m.ready = nil
				m.resume <- nil
				continue
			}
			running--
			m.end()
		}
	}
	if failed(group) {
		return nil, errApart
	}
	parts := make([][]*statement, len(group))
	for i, m := range group {
		parts[i] = m.last
	}
	return arrange(group, parts), nil
}

// begin lets a unit run until it has something to send, or has ended. One that is
// written only has something to send.
func (m *member) begin(t *transaction, posted chan<- *member) {
	if m.written != nil {
		m.conn = m.written
		m.conn.raw, m.conn.wrote = t.conn, true
		m.ready, m.last = m.conn.split()
		return
	}
	m.resume, m.ended, m.outcome, m.ready, m.last = make(chan error), false, nil, nil, nil
	m.conn = &conn{raw: t.conn, exchange: func(s []*statement) error {
		m.ready = s
		posted <- m
		return <-m.resume
	}}
	go func() {
		if m.outcome = call(m.fn, m.conn); m.outcome == nil {
			m.last, m.outcome = m.conn.last()
		}
		m.ended = true
		posted <- m
	}()
}

// end ends a unit that is written, when what it expected is known.
func (m *member) end() {
	if slices.ContainsFunc(m.ready, (*statement).disappoints) {
		m.outcome = store.ErrUnexpected
	}
	m.ready, m.ended = nil, true
}

// failed tells whether a unit has ended with an error and left something in the
// transaction.
func failed(group []*member) bool {
	return slices.ContainsFunc(group, func(m *member) bool { return m.ended && m.outcome != nil && m.conn.wrote })
}

// next are the units whose statements are sent now. Those that take a lock for
// their end wait until all others are as far: locks that are held for the rest
// of the transaction are taken last.
func next(group []*member) []*member {
	var now, end []*member
	for _, m := range group {
		switch {
		case m.ended || m.resume != nil && m.ready == nil:
		case endLock(m.ready) < len(m.ready):
			end = append(end, m)
		default:
			now = append(now, m)
		}
	}
	if len(now) > 0 {
		return now
	}
	return end
}

// arrange puts what several units send into one order. First comes what touches
// the rows of runs, in the order of the group, which is that in which all touch
// them. Then what else a unit has to do before it takes a lock for its end. Then come such locks, those of the whole
// group at once, so that all groups take them in one order.
func arrange(group []*member, parts [][]*statement) []*statement {
	var all []*statement
	rest := make([][]*statement, len(parts))
	for i, part := range parts {
		cut := endLock(part)
		parts[i], rest[i] = part[:cut], part[cut:]
		if cut > 0 && part[0].expect && part[0].writes() {
			all, parts[i] = append(all, part[0]), part[1:cut]
		}
	}
	all = append(all, weave(parts)...)
	end := weave(rest)
	if len(end) == 0 {
		return all
	}
	var locks []*statement
	for _, m := range group {
		for _, s := range slices.Concat(m.ready, m.last) {
			if s.last {
				locks = append(locks, s)
			}
		}
	}
	slices.SortFunc(locks, byNumber)
	return slices.Concat(all, locks, end)
}
