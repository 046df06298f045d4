//go:build failpoint

package failpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// rule is one entry of FP, such as after_effect:kill:0.02, after_effect:kill:#40
// or before_effect@poison:exit: at the moment (for what contains the text after
// the @), do that: each time, with a probability, or at one of the times only.
type rule struct {
	point   Point
	about   string
	do      func()
	chances float64
	only    int64 // the time at which it is done, 0: any
	times   atomic.Int64
}

var rules = sync.OnceValue(func() []*rule {
	var out []*rule
	for _, text := range strings.FieldsFunc(os.Getenv("FP"), func(r rune) bool { return r == ',' }) {
		r, err := parse(text)
		if err != nil {
			fmt.Fprintf(os.Stderr, "FP: %s: %v\n", text, err)
			os.Exit(2)
		}
		out = append(out, r)
	}
	return out
})

func parse(text string) (*rule, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return nil, fmt.Errorf("is not point[@about]:what[:chances]")
	}
	name, about, _ := strings.Cut(parts[0], "@")
	r := &rule{point: Point(name), about: about, chances: 1}
	what, length, _ := strings.Cut(parts[1], "=")
	switch what {
	case "kill":
		r.do = kill
	case "exit":
		r.do = func() { os.Exit(3) }
	case "panic":
		r.do = func() { panic("failpoint " + text) }
	case "pause":
		d, err := time.ParseDuration(length)
		if err != nil {
			return nil, err
		}
		r.do = func() { time.Sleep(d) }
	default:
		return nil, fmt.Errorf("there is kill, exit, panic, pause=<time>")
	}
	if len(parts) == 2 {
		return r, nil
	}
	var err error
	if number, found := strings.CutPrefix(parts[2], "#"); found {
		r.only, err = strconv.ParseInt(number, 10, 64)
	} else {
		r.chances, err = strconv.ParseFloat(parts[2], 64)
	}
	return r, err
}

// kill ends the process the way the kernel does: nothing is run any more.
func kill() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		os.Exit(9)
	}
	select {}
}

// Hit does what FP says for this moment and what it concerns.
func Hit(point Point, about string) {
	for _, r := range rules() {
		if r.point == point && strings.Contains(about, r.about) && r.strikes() {
			r.do()
		}
	}
}

// strikes tells whether this time is one of those at which it is done.
func (r *rule) strikes() bool {
	if r.only > 0 {
		return r.times.Add(1) == r.only
	}
	return rand.Float64() < r.chances
}
