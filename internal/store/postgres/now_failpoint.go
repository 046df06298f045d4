//go:build failpoint

package postgres

import (
	"cmp"
	"os"
)

// now returns an expression for the database's current time in microseconds. Tests name
// a function that returns another time in FP_DATABASE_CLOCK, to simulate a clock that
// jumps.
func now() string {
	return `(extract(epoch FROM ` + cmp.Or(os.Getenv("FP_DATABASE_CLOCK"), "clock_timestamp") + `()) * 1000000)::bigint`
}
