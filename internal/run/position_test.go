package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/run"
)

func TestPositionFormat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]run.Position{
		"0": run.AfterCommit(0), "12": run.AfterCommit(12), "7.0": run.AfterLine(7, 0), "7.31": run.AfterLine(7, 31),
	} {
		got, ok := run.ParsePosition(text)
		if !ok || got != want || got.String() != text {
			t.Errorf("%s: got %+v, %t, written %s", text, got, ok, got)
		}
	}
	for _, text := range []string{"", "-1", "+1", "01", "1.", ".1", "1.-1", "1.01", "1.2.3", "x", "end", "2147483647", "1.2147483647", "99999999999999999999", " 1", "1 "} {
		if got, ok := run.ParsePosition(text); ok {
			t.Errorf("%q parses as %+v", text, got)
		}
	}
}

// Merge returns the same changes regardless of the limit.
func TestMerge(t *testing.T) {
	t.Parallel()
	step := func(rev, seq int) run.Change { return run.ChangedStep(run.Step{Rev: rev, Seq: seq}, nil) }
	line := func(rev, n int) run.Change { return run.WrittenLine(run.LogLine{}, rev, n) }
	lines := []run.Change{line(1, 0), line(1, 1), line(3, 0), line(5, 0)}
	steps := []run.Change{step(0, 1), step(1, 2), step(1, 3), step(2, 4), step(5, 5)}
	type told struct {
		After string // empty if a client cannot resume from it
		Log   bool
	}
	want := []told{{"0", false}, {"1.0", true}, {"1.1", true}, {"", false}, {"1", false}, {"2", false}, {"3.0", true}, {"5.0", true}, {"5", false}}
	for limit := range len(want) + 2 {
		merged, more := run.Merge(lines, steps, limit)
		var got []told
		for _, c := range merged {
			one := told{Log: c.Line != nil}
			if c.Complete {
				one.After = c.After.String()
			}
			got = append(got, one)
		}
		if diff := cmp.Diff(want[:min(limit, len(want))], got); diff != "" && limit > 0 {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
		if more != (limit < len(want)) {
			t.Errorf("limit %d: more is %t", limit, more)
		}
	}
}
