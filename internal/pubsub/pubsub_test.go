package pubsub_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/pubsub"
)

func signaled(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestPublishReachesSubscribersOfTheKey(t *testing.T) {
	t.Parallel()
	broker := pubsub.NewBroker()
	broker.Publish("a") // no subscribers
	first, stopFirst := broker.Subscribe("a")
	second, stopSecond := broker.Subscribe("a")
	other, stopOther := broker.Subscribe("b")
	defer stopSecond()
	defer stopOther()
	if signaled(first) || signaled(other) {
		t.Error("received a publication from before the subscription")
	}
	for range 3 {
		broker.Publish("a")
	}
	if !signaled(first) || !signaled(second) || signaled(other) {
		t.Error("a publication does not reach exactly the subscribers of its key")
	}
	if signaled(first) {
		t.Error("publications are not merged")
	}
	stopFirst()
	stopFirst() // stopping twice is harmless
	broker.PublishAll()
	if signaled(first) || !signaled(second) || !signaled(other) {
		t.Error("PublishAll does not reach exactly the subscribers")
	}
}

func TestUnsubscribeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	broker := pubsub.NewBroker()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for n := range 100 {
				key := fmt.Sprint(n % 5)
				ch, stop := broker.Subscribe(key)
				broker.Publish(key)
				if <-ch; i%2 == 0 {
					broker.PublishAll()
				}
				stop()
			}
		})
	}
	all.Wait()
	if n := broker.Subscribers(); n != 0 {
		t.Errorf("%d subscribers are left", n)
	}
}

// BenchmarkPublish measures the cost for a commit without subscribers, with those of
// other keys, and with its own.
func BenchmarkPublish(b *testing.B) {
	for _, bench := range []struct {
		name           string
		others, itself int
	}{{"no subscribers", 0, 0}, {"other keys", 1000, 0}, {"one subscriber", 1000, 1}, {"100 subscribers", 0, 100}} {
		b.Run(bench.name, func(b *testing.B) {
			broker := pubsub.NewBroker()
			for i := range bench.others {
				broker.Subscribe(fmt.Sprint("other", i))
			}
			for range bench.itself {
				broker.Subscribe("run")
			}
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					broker.Publish("run")
				}
			})
		})
	}
}
