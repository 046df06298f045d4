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

// rule is one entry of FP, such as after_effect:kill:0.02, after_effect:kill:#40
// or before_effect@poison:exit. It names the failpoint, optionally a text that
// the subject must contain, the action, and when it applies: on every hit, with
// a probability, or on the nth hit only.
type rule struct {
	point       Point
	subject     string
	act         func()
	fatal       bool   // act ends the process and does not return
	failing     string // the point fails while this file exists; act is empty then
	probability float64
	nth         int64 // the only hit on which it applies, 0 for any
	hits        int64
}

// deciding is held while a rule decides whether to apply. It is not released
// before a fatal action: until the kernel's kill arrives, no other goroutine
// passes a failpoint.
var deciding sync.Mutex

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
		return nil, fmt.Errorf("is not point[@subject]:action[:probability|:#n]")
	}
	name, subject, _ := strings.Cut(parts[0], "@")
	r := &rule{point: Point(name), subject: subject, probability: 1}
	action, argument, _ := strings.Cut(parts[1], "=")
	switch action {
	case "kill":
		r.act, r.fatal = kill, true
	case "exit":
		r.act, r.fatal = func() { os.Exit(3) }, true
	case "panic":
		r.act = func() { panic("failpoint " + text) }
	case "pause":
		d, err := time.ParseDuration(argument)
		if err != nil {
			return nil, err
		}
		r.act = func() { time.Sleep(d) }
	case "block":
		r.act = func() { blockWhile(argument) }
	case "fail":
		r.act, r.failing = func() {}, argument
	default:
		return nil, fmt.Errorf("the action must be kill, exit, panic, pause=<duration>, block=<file> or fail=<file>")
	}
	if len(parts) == 2 {
		return r, nil
	}
	var err error
	if number, found := strings.CutPrefix(parts[2], "#"); found {
		r.nth, err = strconv.ParseInt(number, 10, 64)
	} else {
		r.probability, err = strconv.ParseFloat(parts[2], 64)
	}
	return r, err
}

// blockWhile waits as long as a file exists. Another file, with .reached at the end of its
// name, tells the test that something is blocked.
func blockWhile(file string) {
	if _, err := os.Stat(file); err == nil {
		_ = os.WriteFile(file+".reached", nil, 0o600) // the test fails if it is missing
	}
	for {
		if _, err := os.Stat(file); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// kill ends the process with SIGKILL: no deferred function runs.
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

// Hit applies the rules that FP has for this point and subject.
func Hit(point Point, subject string) {
	for _, r := range rules() {
		if r.point == point && strings.Contains(subject, r.subject) {
			r.apply()
		}
	}
}

// Fails reports whether FP has a rule that makes what follows this point fail. In contrast
// to those of Hit, such rules apply every time.
func Fails(point Point) bool {
	for _, r := range rules() {
		if r.point != point || r.failing == "" {
			continue
		}
		if _, err := os.Stat(r.failing); err == nil {
			return true
		}
	}
	return false
}

// apply runs the action if the rule applies to this hit.
func (r *rule) apply() {
	deciding.Lock()
	triggered := r.triggers()
	if triggered && r.fatal {
		r.act()
	}
	deciding.Unlock()
	if triggered {
		r.act()
	}
}

// triggers reports whether the rule applies to this hit. The caller holds
// deciding.
func (r *rule) triggers() bool {
	if r.nth > 0 {
		r.hits++
		return r.hits == r.nth
	}
	return rand.Float64() < r.probability
}

// Limit returns the value of the environment variable FP_ followed by name or, if it is
// not set, the limit of the product. Tests set limits that take long to reach.
func Limit(name string, normal int64) int64 {
	text := os.Getenv("FP_" + name)
	if text == "" {
		return normal
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		fmt.Fprintf(os.Stderr, "FP_%s: %v\n", name, err)
		os.Exit(2)
	}
	return limit
}
