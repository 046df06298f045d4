//go:build failpoint

package failpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// rule is one entry of FP, such as after_effect:kill:0.02 or
// before_effect@poison:exit: at the moment (for what contains the text after the
// @), do that (with a probability, 1 unless given).
type rule struct {
	point   Point
	about   string
	do      func()
	chances float64
}

var rules = sync.OnceValue(func() []rule {
	var out []rule
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

func parse(text string) (rule, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return rule{}, fmt.Errorf("is not point[@about]:what[:chances]")
	}
	name, about, _ := strings.Cut(parts[0], "@")
	r := rule{point: Point(name), about: about, chances: 1}
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
			return rule{}, err
		}
		r.do = func() { time.Sleep(d) }
	default:
		return rule{}, fmt.Errorf("there is kill, exit, panic, pause=<time>")
	}
	if len(parts) == 3 {
		chances, err := strconv.ParseFloat(parts[2], 64)
		if err != nil {
			return rule{}, err
		}
		r.chances = chances
	}
	return r, nil
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
		if r.point == point && strings.Contains(about, r.about) && rand.Float64() < r.chances {
			r.do()
		}
	}
}
