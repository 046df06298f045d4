package news_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/news"
)

func rang(bell <-chan struct{}) bool {
	select {
	case <-bell:
		return true
	default:
		return false
	}
}

func TestNewsReachesThoseWhoWaitForIt(t *testing.T) {
	t.Parallel()
	hub := news.NewHub()
	hub.Tell("a") // nobody waits
	first, stopFirst := hub.Wait("a")
	second, stopSecond := hub.Wait("a")
	other, stopOther := hub.Wait("b")
	defer stopSecond()
	defer stopOther()
	if rang(first) || rang(other) {
		t.Error("what was told before the wait is heard")
	}
	for range 3 {
		hub.Tell("a")
	}
	if !rang(first) || !rang(second) || rang(other) {
		t.Error("news does not reach those who wait for it, or others too")
	}
	if rang(first) {
		t.Error("news piles up")
	}
	stopFirst()
	stopFirst() // a second time does no harm
	hub.TellAll()
	if rang(first) || !rang(second) || !rang(other) {
		t.Error("news for all does not reach exactly those who wait")
	}
}

func TestNothingIsLeftOfThoseWhoWent(t *testing.T) {
	t.Parallel()
	hub := news.NewHub()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for n := range 100 {
				key := fmt.Sprint(n % 5)
				bell, stop := hub.Wait(key)
				hub.Tell(key)
				if <-bell; i%2 == 0 {
					hub.TellAll()
				}
				stop()
			}
		})
	}
	all.Wait()
	if n := hub.Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// What a commit pays when nobody watches, when others are watched, and when it
// is itself.
func BenchmarkTell(b *testing.B) {
	for _, bench := range []struct {
		name           string
		others, itself int
	}{{"nobody waits", 0, 0}, {"others are watched", 1000, 0}, {"watched by one", 1000, 1}, {"watched by 100", 0, 100}} {
		b.Run(bench.name, func(b *testing.B) {
			hub := news.NewHub()
			for i := range bench.others {
				hub.Wait(fmt.Sprint("other", i))
			}
			for range bench.itself {
				hub.Wait("run")
			}
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					hub.Tell("run")
				}
			})
		})
	}
}
