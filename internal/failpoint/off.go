//go:build !failpoint

package failpoint

// Hit marks a failpoint. Only builds with the tag failpoint act on it.
func Hit(Point, string) {}
