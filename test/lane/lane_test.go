package lane_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/test/lane"
)

// Outside the long lane a property is checked with the same cases again and again.
func TestCheckRepeatsItsCases(t *testing.T) {
	t.Parallel()
	if lane.Long() {
		t.Skip("cases are new in make test-long")
	}
	draw := func() (cases []int) {
		lane.Check(t, func(rt *rapid.T) { cases = append(cases, rapid.Int().Draw(rt, "n")) })
		return cases
	}
	if first, again := draw(), draw(); !slices.Equal(first, again) {
		t.Errorf("the cases were %v and then %v", first, again)
	}
	if first, again := lane.Seed(), lane.Seed(); first != again {
		t.Errorf("the seeds were %d and %d", first, again)
	}
}
