package expr

import (
	"strings"
	"time"
)

// parseDate reads text by the tokens of a layout. It does not use Go's layouts,
// which have no hour from 0 to 23 with one digit and treat any digit of the
// layout's text as a token.
func parseDate(m *evaluation, a args) (any, error) {
	if err := m.spend(timeSteps); err != nil {
		return nil, err
	}
	text, err := a.text(0)
	if err != nil {
		return nil, err
	}
	layout, err := a.layout(m)
	if err != nil {
		return nil, err
	}
	zone, err := a.zone(m, 2)
	if err != nil {
		return nil, err
	}
	p := dateParser{rest: text, year: -1, date: civil{month: 1, day: 1}}
	for layout != "" {
		var part layoutPart
		part, layout = nextPart(layout)
		if !p.take(part) {
			return nil, failf("argument 1 of parseDate does not have the layout in argument 2")
		}
	}
	if p.year < 0 {
		return nil, failf("argument 2 of parseDate needs the year: YYYY or YY")
	}
	if p.rest != "" || !p.complete() {
		return nil, failf("argument 1 of parseDate does not have the layout in argument 2")
	}
	if p.hasOffset {
		return valid(p.date.utc().Add(-p.offset))
	}
	return valid(p.date.in(zone))
}

// dateParser has what was read of a time and the text that is left.
type dateParser struct {
	rest      string
	date      civil
	year      int // -1 if not read
	half      string
	hasHalf   bool
	offset    time.Duration
	hasOffset bool
}

// complete finishes the date and reports whether it exists.
func (p *dateParser) complete() bool {
	c := &p.date
	c.year = p.year
	if p.hasHalf {
		if c.hour < 1 || c.hour > 12 {
			return false
		}
		c.hour %= 12
		if p.half == "pm" {
			c.hour += 12
		}
	}
	t := c.utc()
	return t.Month() == c.month && t.Day() == c.day && c.hour <= 23 && c.minute <= 59 && c.sec <= 59
}

func (p *dateParser) take(part layoutPart) bool {
	if !part.literal {
		if known, ok := p.takeDate(part.text); known {
			return ok
		}
		if known, ok := p.takeClock(part.text); known {
			return ok
		}
	}
	rest, ok := strings.CutPrefix(p.rest, part.text)
	p.rest = rest
	return ok
}

func (p *dateParser) takeDate(token string) (known, ok bool) {
	c := &p.date
	switch token {
	case "YYYY":
		return true, p.digits(&p.year, 4, 4)
	case "YY":
		ok := p.digits(&p.year, 2, 2)
		if p.year += 1900; p.year < 1969 {
			p.year += 100
		}
		return true, ok
	case "MMMM", "MMM":
		n, ok := p.name(len(token) == 3, 12, func(i int) string { return time.Month(i + 1).String() })
		c.month = time.Month(n + 1)
		return true, ok
	case "MM", "M":
		n := 0
		ok := p.digits(&n, len(token), 2)
		c.month = time.Month(n)
		return true, ok
	case "DD", "D":
		return true, p.digits(&c.day, len(token), 2)
	case "dddd", "ddd":
		_, ok := p.name(len(token) == 3, 7, func(i int) string { return time.Weekday(i).String() })
		return true, ok
	}
	return false, false
}

func (p *dateParser) takeClock(token string) (known, ok bool) {
	c := &p.date
	switch token {
	case "HH", "H", "hh", "h":
		return true, p.digits(&c.hour, len(token), 2)
	case "mm", "m":
		return true, p.digits(&c.minute, len(token), 2)
	case "ss", "s":
		return true, p.digits(&c.sec, len(token), 2)
	case "SSS":
		ok := p.digits(&c.nano, 3, 3)
		c.nano *= 1e6
		return true, ok
	case "A", "a":
		if len(p.rest) >= 2 {
			p.half, p.rest, p.hasHalf = strings.ToLower(p.rest[:2]), p.rest[2:], true
		}
		return true, p.half == "am" || p.half == "pm"
	case "Z":
		return true, p.takeOffset()
	}
	return false, false
}

func (p *dateParser) digits(into *int, lo, hi int) bool {
	n, value := 0, 0
	for n < len(p.rest) && n < hi && p.rest[n] >= '0' && p.rest[n] <= '9' {
		value = value*10 + int(p.rest[n]-'0')
		n++
	}
	if n < lo {
		return false
	}
	*into, p.rest = value, p.rest[n:]
	return true
}

// name reads one of n English names, in full or its first three letters, in any
// case, and returns its index.
func (p *dateParser) name(short bool, n int, nameOf func(int) string) (int, bool) {
	for i := range n {
		name := nameOf(i)
		if short {
			name = name[:3]
		}
		if len(p.rest) >= len(name) && strings.EqualFold(p.rest[:len(name)], name) {
			p.rest = p.rest[len(name):]
			return i, true
		}
	}
	return 0, false
}

// takeOffset reads Z, +01:00 or +0100.
func (p *dateParser) takeOffset() bool {
	p.hasOffset = true
	if rest, ok := strings.CutPrefix(p.rest, "Z"); ok {
		p.rest = rest
		return true
	}
	if p.rest == "" || p.rest[0] != '+' && p.rest[0] != '-' {
		return false
	}
	negative := p.rest[0] == '-'
	p.rest = p.rest[1:]
	hours, minutes := 0, 0
	if !p.digits(&hours, 2, 2) {
		return false
	}
	p.rest = strings.TrimPrefix(p.rest, ":")
	if !p.digits(&minutes, 2, 2) || hours > 23 || minutes > 59 {
		return false
	}
	p.offset = time.Duration(hours*60+minutes) * time.Minute
	if negative {
		p.offset = -p.offset
	}
	return true
}
