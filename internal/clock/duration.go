package clock

import (
	"fmt"
	"strings"
	"time"
)

// ParseDuration parses a positive duration as people write it: 90s, 15m, 1h30m,
// 3d. In addition to Go's units it accepts d, a day of 24 hours, which must come
// first.
func ParseDuration(text string) (time.Duration, error) {
	var days time.Duration
	rest := text
	if number, after, found := strings.Cut(text, "d"); found {
		d, err := time.ParseDuration(number + "h")
		if err != nil || strings.Trim(number, "0123456789.") != "" || d > 1_000_000*time.Hour {
			return 0, invalidDuration(text)
		}
		days, rest = d*24, after
	}
	total := days
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || rest == "0" { // Go accepts 0 without a unit
			return 0, invalidDuration(text)
		}
		total += d
	}
	if total <= 0 || strings.ContainsAny(text, "+-") {
		return 0, invalidDuration(text)
	}
	return total, nil
}

func invalidDuration(text string) error {
	return fmt.Errorf("%q is not a duration such as 90s, 15m, 2h or 3d", text)
}

// FormatDuration formats a duration without trailing zero units: 24h, 15m, 90s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
