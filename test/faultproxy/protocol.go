package faultproxy

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Codes that stand in the place of a protocol version.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// bodyKept is how much of a message is looked at.
const bodyKept = 64 << 10

// framer finds the messages in a stream. The first ones of a client have no
// type.
type framer struct {
	typed bool
	head  []byte
	body  []byte
	rest  int
}

// feed takes data and tells of each message that ends in it, and after how
// many bytes of it. It stops when tell answers false.
func (f *framer) feed(data []byte, tell func(kind byte, body []byte, end int) bool) {
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
		f.body = append(f.body, data[pos:pos+min(n, bodyKept-len(f.body))]...)
		pos, f.rest = pos+n, f.rest-n
		if f.rest > 0 {
			return
		}
		kind, body := f.head[0], f.body
		f.head, f.body = f.head[:0], f.body[:0]
		if !tell(kind, body, pos) {
			return
		}
	}
}

// dialogue is what is known of a connection to PostgreSQL.
type dialogue struct {
	fromClient framer
	fromServer framer
	opaque     bool // encrypted, or nothing but a request to cancel
	single     int  // answers of one byte that are due

	statements map[string]statement
	portals    map[string]statement
	block      bool // in a transaction that was begun
	committed  bool // a COMMIT was executed since the last request for an answer
	wrote      bool // and a write outside of a transaction

	asked    int // how often the server has to say that it is ready,
	answered int // and how often it did
	losing   int // which of these answers is lost, 0 if none is
}

// client looks at what the client sends. It answers whether the client is to
// be cut off when that is sent.
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
			last = d.ask(decide) || last
		case kind == 'S':
			last = d.ask(decide) || last
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

// extended looks at the messages that prepare and execute statements.
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

// ask notes that the server has to answer, and decides what becomes of it.
func (d *dialogue) ask(decide func(implicit bool) fate) (last bool) {
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

// server looks at what the server sends. It answers what of it to pass on, and
// whether the answer has come that is lost.
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

// text is what stands before the first zero byte.
func text(body []byte) string {
	before, _, _ := bytes.Cut(body, []byte{0})
	return string(before)
}

// statement is what a statement means for transactions.
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

// uncommented leaves out the comments before a statement.
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
