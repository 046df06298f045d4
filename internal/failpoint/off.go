//go:build !failpoint

package failpoint

// Hit marks a failpoint. Only builds with the tag failpoint act on it.
func Hit(Point, string) {}

// Limit returns a limit of the product. Only builds with the tag failpoint know others.
func Limit(_ string, normal int64) int64 { return normal }

// Fails reports whether what follows a failpoint has to fail. It never does in builds
// without the tag failpoint.
func Fails(Point) bool { return false }
