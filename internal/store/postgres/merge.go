package postgres

import (
	"iter"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// interleave merges the statements of several transactions into one sequence. It
// keeps the order within each transaction and groups statements with the same
// text, so that they can be merged.
func interleave(queues [][]*statement) []*statement {
	var all []*statement
	for {
		first := slices.IndexFunc(queues, func(q []*statement) bool { return len(q) > 0 })
		if first < 0 {
			return all
		}
		text := queues[first][0].text
		for i := first; i < len(queues); i++ {
			for len(queues[i]) > 0 && queues[i][0].text == text {
				all = append(all, queues[i][0])
				queues[i] = queues[i][1:]
			}
		}
	}
}

// merge combines adjacent statements that do the same to different rows, if their
// individual results are not needed.
func merge(statements []*statement) []*statement {
	var merged []*statement
	for len(statements) > 0 {
		first, n := statements[0], 1
		for n < len(statements) && n < maxRows && statements[n].text == first.text {
			n++
		}
		same := statements[:n]
		statements = statements[n:]
		switch {
		case n == 1:
			merged = append(merged, first)
		case first.lock:
			merged = append(merged, mergeLocks(same))
		case first.expect && !first.writes():
			merged = append(merged, dedupe(same)...)
		case first.onCommit != nil:
			merged = append(merged, sumTallies(same)...)
		case first.effectOnly && insertTemplateOf(first.text) != nil:
			for rows := range insertTemplateOf(first.text).splitDuplicates(same) {
				merged = append(merged, insertAll(rows)...)
			}
		default:
			merged = append(merged, same...)
		}
	}
	return merged
}

func dedupe(statements []*statement) []*statement {
	var unique []*statement
	for _, s := range statements {
		i := slices.IndexFunc(unique, func(o *statement) bool { return slices.Equal(o.args, s.args) })
		if i < 0 {
			unique = append(unique, s)
			continue
		}
		s.sentAs = unique[i]
	}
	return unique
}

// sumTallies adds up tallies that differ only in their first argument.
func sumTallies(statements []*statement) []*statement {
	var unique []*statement
	for _, s := range statements {
		i := slices.IndexFunc(unique, func(o *statement) bool { return slices.Equal(o.args[1:], s.args[1:]) })
		if i < 0 {
			i = len(unique)
			sum := *s
			sum.args = slices.Clone(s.args)
			sum.args[0] = int64(0)
			unique = append(unique, &sum)
		}
		s.sentAs = unique[i]
		s.sentAs.args[0] = s.sentAs.args[0].(int64) + s.args[0].(int64)
	}
	return unique
}

// maxRows bounds how many rows one statement inserts.
const maxRows = 64

// mergeLocks acquires several locks with one statement, in the order that all
// transactions use.
func mergeLocks(statements []*statement) *statement {
	numbers := make([]int64, len(statements))
	for i, s := range statements {
		numbers[i] = s.args[0].(int64)
	}
	slices.Sort(numbers)
	return &statement{text: strings.Replace(statements[0].text, `($1)`, `(n) FROM unnest($1::bigint[]) AS n`, 1), args: []any{numbers}}
}

// insertTemplate is a statement that inserts one row, parsed so that it can be
// extended to several rows.
type insertTemplate struct {
	head, row, tail string
	// key are the arguments that identify a row, if an existing row is updated:
	// one statement cannot update the same row twice.
	key []int

	mu     sync.Mutex
	byRows map[int]string // the statements for 2, 4, 8 rows and so on
}

var (
	oneRow      = regexp.MustCompile(`(?s)^(INSERT INTO \w+ \(([^()]*)\)\s+VALUES )\(([^()]*)\)(|\s+ON CONFLICT \(([^()]*)\) DO [^$]*)$`)
	placeholder = regexp.MustCompile(`\$\d+`)
	// insertTemplates caches the templates by statement, nil for those that
	// cannot be parsed. Their number is bounded by the statements of the store.
	insertTemplates sync.Map
)

func insertTemplateOf(text string) *insertTemplate {
	if known, ok := insertTemplates.Load(text); ok {
		return known.(*insertTemplate)
	}
	var f *insertTemplate
	if parts := oneRow.FindStringSubmatch(text); parts != nil {
		f = newInsertTemplate(parts[1], parts[2], parts[3], parts[4], parts[5])
	}
	known, _ := insertTemplates.LoadOrStore(text, f)
	return known.(*insertTemplate)
}

func newInsertTemplate(head, columns, row, tail, conflict string) *insertTemplate {
	f := &insertTemplate{head: head, row: `(` + row + `)`, tail: tail, byRows: map[int]string{}}
	if !strings.Contains(tail, ` DO UPDATE `) {
		return f
	}
	names, values := splitList(columns), splitList(row)
	for _, name := range splitList(conflict) {
		at := slices.Index(names, name)
		if at < 0 || at >= len(values) || !placeholder.MatchString(values[at]) {
			return nil
		}
		n, _ := strconv.Atoi(values[at][1:])
		f.key = append(f.key, n-1)
	}
	return f
}

func splitList(text string) []string {
	parts := strings.Split(text, `,`)
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

// splitDuplicates splits statements into chunks in which no row that may be
// updated occurs twice.
func (f *insertTemplate) splitDuplicates(statements []*statement) iter.Seq[[]*statement] {
	return func(yield func([]*statement) bool) {
		from := 0
		for i := range statements {
			if f.key != nil && slices.ContainsFunc(statements[from:i], func(s *statement) bool { return f.mayBeSameRow(s, statements[i]) }) {
				if !yield(statements[from:i]) {
					return
				}
				from = i
			}
		}
		yield(statements[from:])
	}
}

// mayBeSameRow reports whether two statements may affect the same row.
func (f *insertTemplate) mayBeSameRow(a, b *statement) bool {
	return !slices.ContainsFunc(f.key, func(i int) bool {
		one, isText := a.args[i].(string)
		other, areTexts := b.args[i].(string)
		return isText && areTexts && one != other
	})
}

// insertAll merges inserts into multi-row statements whose row counts are powers
// of two, which keeps the number of distinct prepared statements small.
func insertAll(statements []*statement) []*statement {
	f := insertTemplateOf(statements[0].text)
	var merged []*statement
	for len(statements) > 0 {
		n := 1 << (bits.Len(uint(len(statements))) - 1)
		if n == 1 {
			return append(merged, statements[0])
		}
		s := &statement{text: f.statementFor(n, len(statements[0].args)), args: make([]any, 0, n*len(statements[0].args))}
		for _, one := range statements[:n] {
			s.args = append(s.args, one.args...)
		}
		merged, statements = append(merged, s), statements[n:]
	}
	return merged
}

// statementFor returns the statement for a number of rows with that many
// arguments each.
func (f *insertTemplate) statementFor(rows, args int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, ok := f.byRows[rows]; ok {
		return text
	}
	list := make([]string, rows)
	for i := range list {
		list[i] = placeholder.ReplaceAllStringFunc(f.row, func(p string) string {
			n, _ := strconv.Atoi(p[1:])
			return `$` + strconv.Itoa(n+i*args)
		})
	}
	text := f.head + strings.Join(list, `, `) + f.tail
	f.byRows[rows] = text
	return text
}
