//go:build !race

package sandbox

// shadow is how much more a process maps than it uses.
const shadow = 1
