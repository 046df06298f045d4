package postgres_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
)

// Heartbeats correct the steady time after a jump of the database's clock, which a node
// sees as a difference from the time that it has measured. They do so once, and not if
// the node itself was paused.
func TestHeartbeatsCorrectTheSteadyTime(t *testing.T) {
	t.Parallel()
	const life, tolerance = time.Minute, 10 * time.Minute // far less than the jumps
	type beat struct {
		boot   string
		behind time.Duration // of the node's steady time, from the real time
		fresh  bool          // the node only knows what the database told it
		want   time.Duration // the correction
	}
	const hour = time.Hour
	for name, beats := range map[string][]beat{
		"no jump":                        {{boot: "a"}, {boot: "b"}, {boot: "a"}},
		"forward":                        {{boot: "a"}, {boot: "a", behind: hour, want: -hour}, {boot: "a", behind: hour, want: -hour}},
		"back":                           {{boot: "a"}, {boot: "a", behind: -hour, want: hour}, {boot: "a", behind: -hour, want: hour}},
		"there and back":                 {{boot: "a"}, {boot: "a", behind: hour, want: -hour}, {boot: "a"}},
		"before the first record":        {{boot: "a", behind: hour, want: -hour}},
		"noticed by all nodes":           {{boot: "a", behind: hour, want: -hour}, {boot: "b", behind: hour, want: -hour}, {boot: "c", behind: hour, want: -hour}},
		"a new node agrees":              {{boot: "a", behind: hour, want: -hour}, {boot: "b", fresh: true, want: -hour}, {boot: "a", behind: hour, want: -hour}},
		"a new node does not confirm it": {{boot: "a"}, {boot: "b", fresh: true}, {boot: "a", behind: hour, want: -hour}},
		"a machine was paused":           {{boot: "a"}, {boot: "b", behind: hour}, {boot: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.Open(t, postgrestest.New(t))
			for i, b := range beats {
				now := time.Now().Add(-b.behind)
				got, err := db.Heartbeat(t.Context(), newNode(b.boot), 1, life, clock.Record{Seen: now, Boot: b.boot, BootedAt: now.Add(-hour), Measured: !b.fresh})
				if err != nil {
					t.Fatal(err)
				}
				if off := got.Correction - b.want; off.Abs() > tolerance {
					t.Errorf("heartbeat %d: the correction is %s, want %s", i+1, got.Correction, b.want)
				}
			}
			_, record, err := db.Clock(t.Context())
			if last := beats[len(beats)-1]; err != nil || (record.Correction-last.want).Abs() > tolerance || record.Boot != last.boot {
				t.Errorf("the record is %+v, %v", record, err)
			}
		})
	}
}
