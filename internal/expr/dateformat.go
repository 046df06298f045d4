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
	layout, err := a.text(1)
	if err != nil {
		return nil, err
	}
	if len(layout) > maxPattern {
		return nil, failf("argument 2 of formatDate has more than %d bytes", maxPattern)
	}
	if err := m.growText(5 * len(layout)); err != nil {
		return nil, err
	}
	if err := m.spend(len(layout)); err != nil {
		return nil, err
	}
	return layoutTime(t, layout), nil
}

// layoutTime replaces the tokens of layout and keeps all other text.
func layoutTime(t time.Time, layout string) string {
	var b strings.Builder
	for layout != "" {
		if layout[0] == '[' {
			if text, rest, ok := strings.Cut(layout[1:], "]"); ok {
				b.WriteString(text)
				layout = rest
				continue
			}
		}
		n := 1
		for n < len(layout) && layout[n] == layout[0] {
			n++
		}
		b.WriteString(token(t, layout[:n]))
		layout = layout[n:]
	}
	return b.String()
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
