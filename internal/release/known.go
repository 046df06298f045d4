//go:build !failpoint

package release

// Known returns the highest level that this node knows.
func Known() int { return Number }
