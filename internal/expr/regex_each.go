package expr

import (
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	maxGroups  = 32  // of a pattern whose groups are used
	matchSteps = 8   // to start the search for one match
	matchBytes = 128 // that a search allocates, besides the positions of groups
)

// each calls visit with the positions of every match, as
// regexp.FindAllStringSubmatchIndex returns them, at most limit times if limit is
// positive.
//
// It does not use that function: to find the end of each match, the engine may read
// all of the remaining text, so that the time can be quadratic in the text. A reader
// charges for the text that is really read.
func (r *regex) each(m *evaluation, text string, limit int, visit func(match []int) error) error {
	if r.re.NumSubexp() > maxGroups {
		return failf("the pattern has more than %d groups", maxGroups)
	}
	if err := m.grow(len(r.re.String()) * weightElement); err != nil {
		return err
	}
	previous := -1 // end of the previous match
	for n, pos := 0, 0; pos <= len(text) && (limit <= 0 || n < limit); {
		match, err := r.next(m, text, pos)
		if err != nil || match == nil {
			return err
		}
		accept := true
		if match[1] > pos {
			pos = match[1]
		} else {
			// An empty match right after another match does not count.
			accept = match[0] != previous
			_, size := utf8.DecodeRuneInString(text[pos:])
			pos += max(1, size)
		}
		previous = match[1]
		if accept {
			n++
			if err := visit(match); err != nil {
				return err
			}
		}
	}
	return nil
}

// next returns the first match at pos or later, nil if there is none.
func (r *regex) next(m *evaluation, text string, pos int) ([]int, error) {
	if err := m.spend(matchSteps); err != nil {
		return nil, err
	}
	if err := m.grow(matchBytes + 2*weightElement*r.re.NumSubexp()); err != nil {
		return nil, err
	}
	re, from := r.re, pos
	if pos > 0 {
		if err := m.compileLater(r); err != nil {
			return nil, err
		}
		// The character before, which ^ and \b look at, is skipped by the pattern.
		re = r.later()
		_, size := utf8.DecodeLastRuneInString(text[:pos])
		from -= size
	}
	in := &meteredReader{m: m, text: text[from:], cost: r.cost()}
	match := re.FindReaderSubmatchIndex(in)
	if in.err != nil || match == nil {
		return nil, in.err
	}
	if pos > 0 {
		match = match[2:]
	}
	for i := range match {
		if match[i] >= 0 {
			match[i] += from
		}
	}
	return match, nil
}

// cost returns the steps × patternPerStep to match one byte. The engine copies the
// positions of all groups for each instruction.
func (r *regex) cost() int { return (r.program + 4) * (1 + r.re.NumSubexp()/4) }

// compileLater charges for the pattern of later matches if r was compiled in this
// evaluation.
func (m *evaluation) compileLater(r *regex) error {
	if r.laterSteps == 0 {
		return nil
	}
	steps := r.laterSteps
	r.laterSteps = 0
	return m.spend(steps)
}

// laterPattern returns the pattern for all matches but the first: it skips one
// character and then as few as possible. Its first group is the match.
func laterPattern(tree *syntax.Regexp) *regexp.Regexp {
	return regexp.MustCompile(`\A(?s:.)(?s:.*?)(` + tree.String() + `)`)
}

// meteredReader charges for each character read. When the budget is exceeded, the
// text ends.
type meteredReader struct {
	m    *evaluation
	text string
	cost int
	read int
	err  error
}

func (in *meteredReader) ReadRune() (rune, int, error) {
	if in.err == nil {
		r, size := utf8.DecodeRuneInString(in.text)
		if size == 0 {
			return 0, 0, io.EOF
		}
		in.text = in.text[size:]
		in.read += size * in.cost
		in.err = in.m.spend(in.read / patternPerStep)
		in.read %= patternPerStep
		if in.err == nil {
			return r, size, nil
		}
	}
	return 0, 0, io.EOF
}
