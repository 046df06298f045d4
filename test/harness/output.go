package harness

import (
	"bytes"
	"regexp"
	"sync"
	"time"
)

const (
	// kept is how much of the end of an output is kept.
	kept = 64 << 10
	// suspects is how many suspicious lines are kept.
	suspects = 20
)

// suspicious are lines that a healthy server never prints, whatever happens to
// it from outside.
var suspicious = regexp.MustCompile(`WARNING: DATA RACE|^panic:|^fatal error:|"level":"ERROR"`)

// harmless are lines that look worse than they are: a server that is about to
// stop is asked whether it is ready.
var harmless = regexp.MustCompile(`"error":"unavailable: not ready: the service is shutting down"`)

// output collects what a process prints: its end, and every line that should
// not be there.
type output struct {
	mu      sync.Mutex
	tail    []byte
	line    []byte // the last line, as far as it was written
	found   []string
	notice  map[string]int // how many lines had a text
	changed chan struct{}
}

func newOutput(notice ...string) *output {
	o := &output{changed: make(chan struct{}), notice: map[string]int{}}
	for _, text := range notice {
		o.notice[text] = 0
	}
	return o
}

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, data...)
	if over := len(o.tail) - kept; over > kept {
		o.tail = append([]byte(nil), o.tail[over:]...)
	}
	o.line = append(o.line, data...)
	for {
		line, rest, whole := bytes.Cut(o.line, []byte("\n"))
		if !whole {
			break
		}
		if len(o.found) < suspects && suspicious.Match(line) && !harmless.Match(line) {
			o.found = append(o.found, string(line))
		}
		for text := range o.notice {
			if bytes.Contains(line, []byte(text)) {
				o.notice[text]++
			}
		}
		o.line = rest
	}
	close(o.changed)
	o.changed = make(chan struct{})
	return len(data), nil
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.tail)
}

func (o *output) noticed(text string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notice[text]
}

func (o *output) suspects() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.found...)
}

// await waits for text that matches the pattern and returns its first group.
func (o *output) await(pattern *regexp.Regexp, ended <-chan struct{}, atMost time.Duration) (string, bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for last := false; ; {
		o.mu.Lock()
		match, changed := pattern.FindSubmatch(o.tail), o.changed
		o.mu.Unlock()
		if match != nil {
			return string(match[1]), true
		}
		if last {
			return "", false
		}
		select {
		case <-changed:
		case <-ended:
			last = true
		case <-timer.C:
			last = true
		}
	}
}
