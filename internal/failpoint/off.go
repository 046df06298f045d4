//go:build !failpoint

package failpoint

// Hit marks a moment; what it concerns is only looked at by builds for tests.
func Hit(Point, string) {}
