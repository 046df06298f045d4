package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

func TestAfterActive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, called := time.Now(), make(chan struct{})
		stop := clock.AfterActive(2500*time.Millisecond, func() { close(called) })
		defer stop()
		<-called
		if took := time.Since(begun); took != 2500*time.Millisecond {
			t.Errorf("called after %v", took)
		}
		stop = clock.AfterActive(time.Minute, func() { t.Error("called after it was stopped") })
		time.Sleep(30 * time.Second)
		stop()
		stop()
		time.Sleep(time.Hour)
	})
}
