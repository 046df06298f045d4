package trigger

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/workflow"
)

func itemOf(n int) item {
	var k key
	binary.BigEndian.PutUint64(k[:], uint64(n)+1)
	return item{value: n, key: k}
}

// Whatever answers come, an item is new once, as long as not more than can be
// remembered came in between; and what is still in the answer is never forgotten.
func TestNothingIsNewTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, err := parseState(nil, workflow.Trigger{ID: "p"})
		if err != nil || !s.first {
			t.Fatal("a new state is not the first", err)
		}
		told := map[key]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "answers") {
			found := answer{keyed: true}
			from := rapid.IntRange(0, 300).Draw(t, "from")
			for n := range rapid.IntRange(0, 100).Draw(t, "items") {
				found.items = append(found.items, itemOf(from+n))
			}
			fresh := s.fresh(found.items)
			for _, i := range fresh {
				if told[i.key] {
					t.Fatalf("%v is new once more", i.value)
				}
			}
			part := fresh[:rapid.IntRange(0, len(fresh)).Draw(t, "started")]
			for _, i := range part {
				told[i.key] = true
			}
			next := s.after(found, part)
			if s, err = parseState(next.encode(), workflow.Trigger{ID: "p"}); err != nil || s.first {
				t.Fatal("the state does not come back", err)
			}
			for k := range told {
				if !s.keys()[k] {
					t.Fatalf("%x is forgotten", k)
				}
			}
		}
	})
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	s := state{Source: sourceOf(workflow.Trigger{})}
	first := answer{keyed: true, items: []item{itemOf(0)}}
	s = s.after(first, first.items)
	for round := range 30 {
		found := answer{keyed: true, items: []item{itemOf(0)}} // it stays in the answer
		for n := range 1000 {
			found.items = append(found.items, itemOf(1+round*1000+n))
		}
		s = s.after(found, s.fresh(found.items))
	}
	if got := len(s.Seen) / len(key{}); got != maxItems {
		t.Errorf("%d are remembered", got)
	}
	if !s.keys()[itemOf(0).key] || !s.keys()[itemOf(30_000).key] || s.keys()[itemOf(1).key] {
		t.Error("the oldest is to be forgotten, and not what is in the answer")
	}
	another, err := parseState(s.encode(), workflow.Trigger{Items: "response.body"})
	if err != nil || !another.first || another.Seen != nil {
		t.Errorf("another question goes on with the old state: %+v, %v", another.first, err)
	}
	if _, err := parseState([]byte(`{`), workflow.Trigger{}); err == nil {
		t.Error("a broken state is read")
	}
}
