package faultproxy

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Codes that replace the protocol version in a startup message.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// maxBody is how much of a message is inspected.
const maxBody = 64 << 10

// framer splits a stream into messages. The first messages of a client have no type.
type framer struct {
	typed bool
	head  []byte
	body  []byte
	rest  int
}

// feed consumes data and calls yield for each message that ends in it, with the offset
// of the end. It stops when yield returns false.
func (f *framer) feed(data []byte, yield func(kind byte, body []byte, end int) bool) {
	for pos := 0; ; {
		size := 4
		if f.typed {
			size = 5
		}
		if missing := size - len(f.head); missing > 0 {
			n := min(missing, len(data)-pos)
			f.head = append(f.head, data[pos:pos+n]...)
			if pos += n; n < missing {
				return
			}
			f.rest = max(0, int(binary.BigEndian.Uint32(f.head[size-4:]))-4)
		}
		n := min(f.rest, len(data)-pos)
		f.body = append(f.body, data[pos:pos+min(n, maxBody-len(f.body))]...)
		pos, f.rest = pos+n, f.rest-n
		if f.rest > 0 {
			return
		}
		kind, body := f.head[0], f.body
		f.head, f.body = f.head[:0], f.body[:0]
		if !yield(kind, body, pos) {
			return
		}
	}
}

// dialogue is the protocol state of a connection to PostgreSQL.
type dialogue struct {
	fromClient framer
	fromServer framer
	opaque     bool // encrypted, or only a cancel request
	single     int  // pending single-byte responses

	statements map[string]statement
	portals    map[string]statement
	block      bool // in an explicit transaction
	committed  bool // a COMMIT was executed since the last Sync
	wrote      bool // a write outside of a transaction was

	asked    int // expected ReadyForQuery messages
	answered int // received ReadyForQuery messages
	losing   int // number of the ReadyForQuery that is lost, 0 if none
}

// client inspects what the client sends. It reports whether to disconnect the client
// after the data is sent.
func (d *dialogue) client(data []byte, decide func(implicit bool) fate) (last bool) {
	if d.opaque {
		return false
	}
	d.fromClient.feed(data, func(kind byte, body []byte, _ int) bool {
		switch {
		case !d.fromClient.typed:
			d.startup(body)
		case kind == 'Q':
			for sql := range strings.SplitSeq(text(body), ";") {
				d.execute(statementOf(sql))
			}
			last = d.expectReady(decide) || last
		case kind == 'S':
			last = d.expectReady(decide) || last
		default:
			d.extended(kind, body)
		}
		return !d.opaque
	})
	return last
}

func (d *dialogue) startup(body []byte) {
	if len(body) < 4 {
		d.opaque = true
		return
	}
	switch binary.BigEndian.Uint32(body) {
	case sslRequest, gssRequest:
		d.single++
	case cancelRequest:
		d.opaque = true
	default:
		d.fromClient.typed, d.fromServer.typed = true, true
		d.statements, d.portals = map[string]statement{}, map[string]statement{}
		d.asked = 1
	}
}

// extended handles the messages of the extended query protocol.
func (d *dialogue) extended(kind byte, body []byte) {
	name := text(body)
	rest := body[min(len(body), len(name)+1):]
	switch kind {
	case 'P':
		d.statements[name] = statementOf(text(rest))
	case 'B':
		d.portals[name] = d.statements[text(rest)]
	case 'E':
		d.execute(d.portals[name])
	case 'C':
		if closed, ok := strings.CutPrefix(name, "S"); ok {
			delete(d.statements, closed)
		}
	}
}

func (d *dialogue) execute(s statement) {
	switch s {
	case begin:
		d.block = true
	case commit:
		d.block, d.committed = false, true
	case rollback:
		d.block = false
	case write:
		d.wrote = d.wrote || !d.block
	}
}

// expectReady records that a ReadyForQuery will come and decides whether it is lost.
func (d *dialogue) expectReady(decide func(implicit bool) fate) (last bool) {
	d.asked++
	commits, implicit := d.committed || d.wrote, !d.committed
	d.committed, d.wrote = false, false
	if !commits || d.losing > 0 {
		return false
	}
	outcome := decide(implicit)
	if outcome != relayed {
		d.losing = d.asked
	}
	return outcome == lostEarly
}

// server inspects what the server sends. It returns the data to relay, and whether the
// lost response has arrived.
func (d *dialogue) server(data []byte) (pass []byte, cut bool) {
	for ; d.single > 0 && len(data) > 0; d.single-- {
		d.opaque = d.opaque || data[0] != 'N'
		pass, data = append(pass, data[0]), data[1:]
	}
	if d.opaque {
		return append(pass, data...), false
	}
	through := 0
	if d.losing == 0 || d.answered < d.losing-1 {
		through = len(data)
	}
	d.fromServer.feed(data, func(kind byte, _ []byte, end int) bool {
		if kind == 'Z' {
			d.answered++
			if d.answered == d.losing-1 {
				through = end
			}
			cut = cut || d.answered == d.losing
		}
		return true
	})
	return append(pass, data[:through]...), cut
}

// text returns the text before the first zero byte.
func text(body []byte) string {
	before, _, _ := bytes.Cut(body, []byte{0})
	return string(before)
}

// statement is the effect of a statement on transactions.
type statement int

const (
	other statement = iota
	begin
	commit
	rollback
	write
)

func statementOf(sql string) statement {
	words := strings.Fields(strings.ToLower(uncommented(sql)))
	if len(words) == 0 {
		return other
	}
	switch strings.TrimRight(words[0], ";(") {
	case "begin", "start":
		return begin
	case "commit", "end":
		return commit
	case "rollback", "abort":
		if len(words) > 1 && words[1] == "to" {
			return other
		}
		return rollback
	case "insert", "update", "delete", "merge", "with", "copy":
		return write
	default:
		return other
	}
}

// uncommented removes the comments before a statement.
func uncommented(sql string) string {
	for {
		sql = strings.TrimSpace(sql)
		var ok bool
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, ok = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			_, sql, ok = strings.Cut(sql, "*/")
		default:
			return sql
		}
		if !ok {
			return ""
		}
	}
}
