package adminsocket

import (
	"fmt"
	"os"
	"path/filepath"
)

// shortPath returns a path of the socket that is short enough for the system,
// however long the path of its directory is. It is valid until release is called.
func shortPath(dir string) (path string, release func(), err error) {
	open, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(fmt.Sprintf("/proc/self/fd/%d", open.Fd()), fileName), func() { _ = open.Close() }, nil
}
