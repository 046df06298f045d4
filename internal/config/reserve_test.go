package config_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/config"
)

func TestDiskReserve(t *testing.T) {
	t.Parallel()
	const mib, gib = 1 << 20, 1 << 30
	for _, tc := range []struct {
		text string
		disk int64
		want int64 // -1: rejected
	}{
		{"auto", 100 * gib, 512 * mib},
		{"auto", gib, gib / 10},
		{"auto", -1, 0}, // unknown
		{"0", gib, 0},
		{"2048", gib, 2 * gib},
		{"-1", gib, -1},
		{"1GiB", gib, -1},
		{"", gib, -1},
	} {
		var r config.DiskReserve
		if err := r.UnmarshalText([]byte(tc.text)); (err != nil) != (tc.want < 0) {
			t.Errorf("%q: %v", tc.text, err)
		} else if got := r.Bytes(tc.disk); err == nil && got != tc.want {
			t.Errorf("%q on a disk of %d bytes: got %d, want %d", tc.text, tc.disk, got, tc.want)
		}
	}
}
