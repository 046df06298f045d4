//go:build !unix

package harness

import "errors"

// lock is not implemented on this system, so binaries cannot be shared.
func lock(string) (unlock func(), err error) {
	return nil, errors.New(binVariable + " needs a Unix system")
}
