// Package duration owns lengths of time as people write them in workflows and
// on the command line: 90s, 15m, 2h, 3d, 1h30m.
package duration

import (
	"fmt"
	"strings"
	"time"
)

// Parse reads a positive length of time. Beside Go's units it knows d, a day
// of 24 hours, which must come first.
func Parse(text string) (time.Duration, error) {
	var days time.Duration
	rest := text
	if number, after, found := strings.Cut(text, "d"); found {
		d, err := time.ParseDuration(number + "h")
		if err != nil || strings.Trim(number, "0123456789.") != "" || d > 1_000_000*time.Hour {
			return 0, invalid(text)
		}
		days, rest = d*24, after
	}
	total := days
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || rest == "0" { // the one number that Go takes without a unit
			return 0, invalid(text)
		}
		total += d
	}
	if total <= 0 || strings.ContainsAny(text, "+-") {
		return 0, invalid(text)
	}
	return total, nil
}

func invalid(text string) error {
	return fmt.Errorf("%q is not a length of time such as 90s, 15m, 2h or 3d", text)
}

// Format writes a length of time the way it would be written by hand: 24h, 15m,
// 90s.
func Format(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
