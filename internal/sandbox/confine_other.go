//go:build !linux

package sandbox

// confine has nothing to add here: the gauge alone watches the memory.
func confine(int64) error { return nil }
