package postgres

import (
	"cmp"
	"iter"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// weave puts the statements of several units into one order. Each unit's own
// stay in theirs, and those with the same text come together: they can be
// merged.
func weave(units [][]*statement) []*statement {
	var all []*statement
	for {
		first := slices.IndexFunc(units, func(of []*statement) bool { return len(of) > 0 })
		if first < 0 {
			return all
		}
		text := units[first][0].text
		for i := first; i < len(units); i++ {
			for len(units[i]) > 0 && units[i][0].text == text {
				all = append(all, units[i][0])
				units[i] = units[i][1:]
			}
		}
	}
}

// merge makes one statement of neighbours that say the same of different rows,
// where nobody wants to know what became of each.
func merge(statements []*statement) []*statement {
	var merged []*statement
	for len(statements) > 0 {
		first, n := statements[0], 1
		for n < len(statements) && n < maxRows && statements[n].text == first.text {
			n++
		}
		alike := statements[:n]
		statements = statements[n:]
		switch {
		case n == 1:
			merged = append(merged, first)
		case first.lock:
			merged = append(merged, locks(alike))
		case first.expect && !first.writes():
			merged = append(merged, distinct(alike)...)
		case first.later != nil:
			merged = append(merged, sums(alike)...)
		case first.plain && insertion(first.text) != nil:
			for rows := range insertion(first.text).apart(alike) {
				merged = append(merged, insertAll(rows)...)
			}
		default:
			merged = append(merged, alike...)
		}
	}
	return merged
}

// distinct leaves out what is looked for twice.
func distinct(of []*statement) []*statement {
	var once []*statement
	for _, s := range of {
		i := slices.IndexFunc(once, func(o *statement) bool { return slices.Equal(o.args, s.args) })
		if i < 0 {
			once = append(once, s)
			continue
		}
		s.twin = once[i]
	}
	return once
}

// sums adds up what is the same but for its first argument.
func sums(of []*statement) []*statement {
	var once []*statement
	for _, s := range of {
		i := slices.IndexFunc(once, func(o *statement) bool { return slices.Equal(o.args[1:], s.args[1:]) })
		if i < 0 {
			i = len(once)
			sum := *s
			sum.args = slices.Clone(s.args)
			sum.args[0] = int64(0)
			once = append(once, &sum)
		}
		s.twin = once[i]
		s.twin.args[0] = s.twin.args[0].(int64) + s.args[0].(int64)
	}
	return once
}

// maxRows bounds how many rows one statement inserts.
const maxRows = 64

// locks takes several locks, in the order in which everybody takes them.
func locks(of []*statement) *statement {
	numbers := make([]int64, len(of))
	for i, s := range of {
		numbers[i] = s.args[0].(int64)
	}
	slices.Sort(numbers)
	return &statement{text: strings.Replace(of[0].text, `($1)`, `(n) FROM unnest($1::bigint[]) AS n`, 1), args: []any{numbers}}
}

// byNumber is the order in which locks are taken.
func byNumber(a, b *statement) int { return cmp.Compare(a.args[0].(int64), b.args[0].(int64)) }

// form is a statement that inserts one row, taken apart so that it can be made
// to insert several.
type form struct {
	head, row, tail string
	// key are the arguments that tell one row from another, if a row that is there
	// already is changed: that cannot happen twice in one statement.
	key []int
	// several are the statements for 2, 4, 8 rows and so on, made when needed.
	mu      sync.Mutex
	several map[int]string
}

var (
	oneRow      = regexp.MustCompile(`(?s)^(INSERT INTO \w+ \(([^()]*)\)\s+VALUES )\(([^()]*)\)(|\s+ON CONFLICT \(([^()]*)\) DO [^$]*)$`)
	placeholder = regexp.MustCompile(`\$\d+`)
	// forms are those of the statements that were seen, nil for what cannot be
	// taken apart. There are as many as are written in the store.
	forms sync.Map
)

func insertion(text string) *form {
	if known, ok := forms.Load(text); ok {
		return known.(*form)
	}
	var f *form
	if parts := oneRow.FindStringSubmatch(text); parts != nil {
		f = newForm(parts[1], parts[2], parts[3], parts[4], parts[5])
	}
	known, _ := forms.LoadOrStore(text, f)
	return known.(*form)
}

func newForm(head, columns, row, tail, conflict string) *form {
	f := &form{head: head, row: `(` + row + `)`, tail: tail, several: map[int]string{}}
	if !strings.Contains(tail, ` DO UPDATE `) {
		return f
	}
	names, values := list(columns), list(row)
	for _, name := range list(conflict) {
		at := slices.Index(names, name)
		if at < 0 || at >= len(values) || !placeholder.MatchString(values[at]) {
			return nil
		}
		n, _ := strconv.Atoi(values[at][1:])
		f.key = append(f.key, n-1)
	}
	return f
}

// list are the parts of a text between commas.
func list(text string) []string {
	parts := strings.Split(text, `,`)
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

// apart parts statements where a row comes again that may be changed.
func (f *form) apart(of []*statement) iter.Seq[[]*statement] {
	return func(yield func([]*statement) bool) {
		from := 0
		for i := range of {
			if f.key != nil && slices.ContainsFunc(of[from:i], func(s *statement) bool { return f.same(s, of[i]) }) {
				if !yield(of[from:i]) {
					return
				}
				from = i
			}
		}
		yield(of[from:])
	}
}

// same tells whether two statements may be about the same row.
func (f *form) same(a, b *statement) bool {
	return !slices.ContainsFunc(f.key, func(i int) bool {
		one, isText := a.args[i].(string)
		other, areTexts := b.args[i].(string)
		return isText && areTexts && one != other
	})
}

// insertAll inserts the rows of several statements with few: with one for each
// power of two that they are made of, so that few different ones are prepared.
func insertAll(of []*statement) []*statement {
	f := insertion(of[0].text)
	var merged []*statement
	for len(of) > 0 {
		n := 1 << (bits.Len(uint(len(of))) - 1)
		if n == 1 {
			return append(merged, of[0])
		}
		s := &statement{text: f.text(n, len(of[0].args)), args: make([]any, 0, n*len(of[0].args))}
		for _, one := range of[:n] {
			s.args = append(s.args, one.args...)
		}
		merged, of = append(merged, s), of[n:]
	}
	return merged
}

// text is that of the statement for so many rows of so many arguments.
func (f *form) text(rows, args int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, ok := f.several[rows]; ok {
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
	f.several[rows] = text
	return text
}
