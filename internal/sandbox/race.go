//go:build race

package sandbox

// shadow is how much more a process maps than it uses: the race detector keeps
// several bytes for every one.
const shadow = 16
