package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

func regexFunctions() []function {
	return []function{
		withPattern(fn("regexFind", "regexFind(text, pattern) map", "The first match of the regular expression, nil if there is none: its text, its index in characters, its groups as a list, and its named groups as a map. A group that took no part is nil.", 2, 2, finder(allMatches).first,
			`regexFind("order 4711-B", "(\\d+)-([A-Z])")`, `{"groups":["4711","B"],"index":6,"named":{},"text":"4711-B"}`,
			`regexFind("due 2026-11-15", "(?P<year>\\d{4})-(?P<month>\\d\\d)").named.month`, `"11"`)),
		withPattern(fn("regexFindAll", "regexFindAll(text, pattern[, limit]) array", "All matches of the regular expression, at most limit, each as regexFind returns it.", 2, 3, finder(allMatches).all,
			`map(regexFindAll("#a and #b", "#(\\w)"), .groups[0])`, `["a","b"]`)),
		withPattern(fn("regexReplace", "regexReplace(text, pattern, replacement) string", "The text with every match replaced. In the replacement, $0 is the match, $1 a group, ${name} a named group and $$ a dollar sign.", 3, 3, regexReplace,
			`regexReplace("Lovelace, Ada", "(\\w+), (\\w+)", "$2 $1")`, `"Ada Lovelace"`,
			`regexReplace("15.11.2026", "(?P<d>\\d+)\\.(?P<m>\\d+)\\.(?P<y>\\d+)", "${y}-${m}-${d}")`, `"2026-11-15"`)),
	}
}

// withPattern marks a function whose second argument is a regular expression. If it
// is a literal, it is compiled with the expression.
func withPattern(f function) function {
	f.pattern = true
	return f
}

// regex returns argument 2, a regular expression.
func (a args) regex(m *evaluation) (*regex, error) {
	if a.compiled != nil {
		return a.compiled, nil
	}
	pattern, err := a.text(1)
	if err != nil {
		return nil, err
	}
	return m.pattern(pattern)
}

// finder returns what is found in argument 1, at most limit if it is positive.
type finder func(m *evaluation, a args, limit int) ([]any, error)

func (f finder) first(m *evaluation, a args) (any, error) {
	found, err := f(m, a, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// all finds at most as many as argument 3 says.
func (f finder) all(m *evaluation, a args) (any, error) {
	limit := 0
	if a.has(2) {
		var err error
		if limit, err = a.whole(2); err != nil {
			return nil, err
		}
	}
	return boxed(f(m, a, limit))
}

// allMatches is a finder of matches, as maps.
func allMatches(m *evaluation, a args, limit int) ([]any, error) {
	text, err := a.text(0)
	if err != nil {
		return nil, err
	}
	re, err := a.regex(m)
	if err != nil {
		return nil, err
	}
	out := []any{}
	names := re.re.SubexpNames()
	counted, chars := 0, 0 // bytes of the text, and the characters in them
	err = re.each(m, text, limit, func(match []int) error {
		cost := weightList + weightObject + len(names)*(2*weightElement+weightBoxed) + 4*weightBoxed
		if err := m.grow(2*weightElement + weightObject + cost + len(names)*weightKey); err != nil {
			return err
		}
		chars += utf8.RuneCountInString(text[counted:match[0]])
		counted = match[0]
		out = append(out, matchObject(text, match, names, chars))
		return m.spend(len(names))
	})
	return out, err
}

func matchObject(text string, match []int, names []string, index int) map[string]any {
	groups, named := make([]any, len(names)-1), map[string]any{}
	for i := 1; i < len(names); i++ {
		if match[2*i] >= 0 {
			groups[i-1] = text[match[2*i]:match[2*i+1]]
		}
		if names[i] != "" {
			named[names[i]] = groups[i-1]
		}
	}
	return map[string]any{"text": text[match[0]:match[1]], "index": index, "groups": groups, "named": named}
}

func regexReplace(m *evaluation, a args) (any, error) {
	text, err := a.text(0)
	if err != nil {
		return nil, err
	}
	re, err := a.regex(m)
	if err != nil {
		return nil, err
	}
	with, err := a.text(2)
	if err != nil {
		return nil, err
	}
	parts, err := re.replacement(m, with)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	write := func(s string) error {
		if err := m.extend(len(s)); err != nil {
			return err
		}
		b.WriteString(s)
		return nil
	}
	end := 0
	err = re.each(m, text, 0, func(match []int) error {
		if err := write(text[end:match[0]]); err != nil {
			return err
		}
		end = match[1]
		for _, part := range parts {
			if part.group >= 0 && match[2*part.group] >= 0 {
				part.text = text[match[2*part.group]:match[2*part.group+1]]
			}
			if err := write(part.text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = write(text[end:])
	return b.String(), err
}

// replacementPart is literal text, or a group if group is not negative.
type replacementPart struct {
	text  string
	group int
}

func (r *regex) replacement(m *evaluation, with string) ([]replacementPart, error) {
	if err := m.write(len(with)); err != nil {
		return nil, err
	}
	var parts []replacementPart
	for with != "" {
		i := strings.IndexByte(with, '$')
		if i < 0 {
			return append(parts, replacementPart{text: with, group: -1}), nil
		}
		if err := m.grow(2 * 2 * (weightElement + weightBoxed)); err != nil {
			return nil, err
		}
		if i > 0 {
			parts = append(parts, replacementPart{text: with[:i], group: -1})
		}
		name, rest := groupName(with[i+1:])
		if name == "" { // $$, or a $ that stands for itself
			parts, with = append(parts, replacementPart{text: "$", group: -1}), rest
			continue
		}
		group := r.group(name)
		if group < 0 {
			return nil, failf("argument 3 of regexReplace names a group that the pattern does not have; write $$ for a dollar sign")
		}
		parts, with = append(parts, replacementPart{group: group}), rest
	}
	return parts, nil
}

// groupName returns the name or number after a $, "" if there is none, and the rest.
func groupName(s string) (name, rest string) {
	if s == "" {
		return "", ""
	}
	switch s[0] {
	case '$':
		return "", s[1:]
	case '{':
		if end := strings.IndexByte(s[:min(len(s), maxPattern)], '}'); end > 1 {
			return s[1:end], s[end+1:]
		}
	}
	n := 0
	for n < len(s) && n < 4 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}

// group returns the number of a group, given by its name or number, or -1.
func (r *regex) group(name string) int {
	if n, err := strconv.Atoi(name); err == nil {
		if n < 0 || n > r.re.NumSubexp() {
			return -1
		}
		return n
	}
	return r.re.SubexpIndex(name)
}
