//go:build !linux

package clock

import "time"

// boot returns nothing: this system does not say which boot it is.
func boot() (id string, running time.Duration) { return "", 0 }

// suspended returns 0: this system does not tell.
func suspended() time.Duration { return 0 }
