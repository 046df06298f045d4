//go:build !linux

package adminsocket

import "path/filepath"

// shortPath returns the path of the socket. Systems limit it to about 100 bytes.
func shortPath(dir string) (path string, release func(), err error) {
	return filepath.Join(dir, fileName), func() {}, nil
}
