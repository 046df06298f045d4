//go:build !failpoint

package postgres

// now returns an expression for the database's current time in microseconds. Nodes read
// it with each heartbeat and count on from there: see package clock.
func now() string { return `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint` }
