//go:build !unix

package descriptor

import "math"

// Limit returns how many file descriptors the process can have.
func Limit() int { return math.MaxInt32 }
