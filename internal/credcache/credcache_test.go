package credcache_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/credcache"
)

var start = time.Date(2026, 11, 19, 9, 0, 0, 0, time.UTC)

func TestEntries(t *testing.T) {
	t.Parallel()
	c := credcache.New[string](time.Minute)
	c.Put("token", "a", start, c.Generation())
	for age, want := range map[time.Duration]bool{0: true, 2 * time.Second: true, 2*time.Second + 1: false} {
		if value, ok := c.Get("token", start.Add(age)); ok != want || ok && value != "a" {
			t.Errorf("after %s: %q, %v", age, value, ok)
		}
	}
	if _, ok := c.Get("other", start); ok {
		t.Error("an unknown credential was found")
	}
	reading := c.Generation()
	c.Drop(func(value string) bool { return value == "a" })
	if _, ok := c.Get("token", start); ok {
		t.Error("a dropped entry was found")
	}
	c.Put("token", "outdated", start, reading)
	if value, ok := c.Get("token", start); ok {
		t.Errorf("%q was read before the drop, and cached after it", value)
	}
}

func TestUses(t *testing.T) {
	t.Parallel()
	c := credcache.New[string](time.Minute)
	c.Touch("id", start)
	c.Touch("id", start.Add(time.Minute-1)) // too soon
	want := map[string]time.Time{"id": start}
	taken := c.TakeUnwritten()
	if diff := cmp.Diff(want, taken); diff != "" {
		t.Error(diff)
	}
	c.Touch("id", start.Add(time.Minute))
	c.Restore(taken) // of the older one, nothing is left to write
	want = map[string]time.Time{"id": start.Add(time.Minute)}
	if diff := cmp.Diff(want, c.TakeUnwritten()); diff != "" {
		t.Error(diff)
	}
	if at := c.LastUse("id"); !at.Equal(start.Add(time.Minute)) {
		t.Errorf("last used at %s", at)
	}
	if n := len(c.TakeUnwritten()); n != 0 {
		t.Errorf("%d uses are written again", n)
	}
}
