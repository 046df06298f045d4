//go:build !linux

package sandbox_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/sandbox"
)

// watchPeak is not supported here.
func watchPeak(*testing.T, *sandbox.Pool) func() int64 { return func() int64 { return 0 } }
