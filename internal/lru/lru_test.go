package lru_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/lru"
)

func TestCache(t *testing.T) {
	t.Parallel()
	c := lru.New[string, int](10)
	c.Add("a", 1, 4)
	c.Add("b", 2, 4)
	if got := c.Add("a", 3, 4); got != 1 {
		t.Errorf("the value of a key that is known became %d", got)
	}
	c.Get("a")
	c.Add("c", 4, 4) // b was used the longest ago
	for key, want := range map[string]int{"a": 1, "c": 4} {
		if got, ok := c.Get(key); !ok || got != want {
			t.Errorf("%s is %d, %t", key, got, ok)
		}
	}
	if _, ok := c.Get("b"); ok || c.Len() != 2 {
		t.Errorf("b was kept beside %d others", c.Len()-1)
	}
	c.Add("large", 5, 11)
	if c.Len() != 0 {
		t.Errorf("%d values are kept beside one that is larger than the limit", c.Len())
	}
}
