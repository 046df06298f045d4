package expr

import (
	"strconv"
	"strings"
	"time"
)

func formatDate(m *evaluation, a args) (any, error) {
	if err := m.spend(timeSteps); err != nil {
		return nil, err
	}
	t, err := a.time(0)
	if err != nil {
		return nil, err
	}
	if !a.has(1) {
		return timeText(t), nil
	}
	layout, err := a.layout(m)
	if err != nil {
		return nil, err
	}
	zone, err := a.zone(m, 2)
	if err != nil {
		return nil, err
	}
	t = t.In(zone)
	var b strings.Builder
	for layout != "" {
		var part layoutPart
		part, layout = nextPart(layout)
		if part.literal {
			b.WriteString(part.text)
		} else {
			b.WriteString(token(t, part.text))
		}
	}
	return b.String(), nil
}

// layout returns argument 2, a layout, and charges for its use.
func (a args) layout(m *evaluation) (string, error) {
	layout, err := a.text(1)
	if err != nil {
		return "", err
	}
	if len(layout) > maxPattern {
		return "", failf("argument 2 of %s has more than %d bytes", a.name, maxPattern)
	}
	if err := m.growText(5 * len(layout)); err != nil {
		return "", err
	}
	return layout, m.spend(len(layout))
}

// layoutPart is a run of one character, which may be a token, or literal text.
type layoutPart struct {
	text    string
	literal bool
}

func nextPart(layout string) (layoutPart, string) {
	if layout[0] == '[' {
		if text, rest, ok := strings.Cut(layout[1:], "]"); ok {
			return layoutPart{text: text, literal: true}, rest
		}
	}
	n := 1
	for n < len(layout) && layout[n] == layout[0] {
		n++
	}
	return layoutPart{text: layout[:n]}, layout[n:]
}

// token returns the text for a token, which is a run of one letter.
func token(t time.Time, run string) string {
	switch run {
	case "H":
		return strconv.Itoa(t.Hour())
	case "SSS":
		return t.Format(".000")[1:]
	}
	if layout := goLayout(run); layout != "" {
		return t.Format(layout)
	}
	return run
}

func goLayout(run string) string {
	switch run {
	case "YYYY":
		return "2006"
	case "YY":
		return "06"
	case "MMMM":
		return "January"
	case "MMM":
		return "Jan"
	case "MM":
		return "01"
	case "M":
		return "1"
	case "DD":
		return "02"
	case "D":
		return "2"
	case "dddd":
		return "Monday"
	case "ddd":
		return "Mon"
	}
	return goClockLayout(run)
}

func goClockLayout(run string) string {
	switch run {
	case "HH":
		return "15"
	case "hh":
		return "03"
	case "h":
		return "3"
	case "mm":
		return "04"
	case "m":
		return "4"
	case "ss":
		return "05"
	case "s":
		return "5"
	case "A":
		return "PM"
	case "a":
		return "pm"
	case "Z":
		return "Z07:00"
	}
	return ""
}
