package harness

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// tailSize is how much of the end of an output is stored.
	tailSize = 64 << 10
	// maxDefects is how many lines that show a defect are stored.
	maxDefects = 20
	// maxTraces and maxRecords are how many lines an excerpt has of each kind, and
	// maxLine is how long they are.
	maxTraces, maxRecords, maxLine = 60, 40, 300
)

// defectLine matches lines that a server only prints because of a defect, and panicLine
// those of them that are about panics. Errors are not among them: a server logs them
// when a machine is busy, and recovers.
var (
	defectLine = regexp.MustCompile(`WARNING: DATA RACE|^panic:|^fatal error:|"msg":"panic |INVARIANT`)
	panicLine  = regexp.MustCompile(`^(?:panic:|\{.*"msg":"panic )`)
)

// successfulRequest matches the log record of a request that succeeded.
var successfulRequest = regexp.MustCompile(`"msg":"request",.*"status":[123]\d\d,`)

// output stores the end of what a process prints, the lines that show a defect, and an
// excerpt for the message of a failed test.
type output struct {
	mu      sync.Mutex
	tail    []byte
	line    []byte // the last line, if it is incomplete
	defects []string
	traces  []string       // the first lines that are not log records: panics, data races
	records []string       // the last log records, without successful requests
	counted map[string]int // number of lines by text
	changed chan struct{}
}

func newOutput(counted ...string) *output {
	o := &output{changed: make(chan struct{}), counted: map[string]int{}}
	for _, text := range counted {
		o.counted[text] = 0
	}
	return o
}

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, data...)
	if over := len(o.tail) - tailSize; over > tailSize {
		o.tail = append([]byte(nil), o.tail[over:]...)
	}
	o.line = append(o.line, data...)
	for {
		line, rest, whole := bytes.Cut(o.line, []byte("\n"))
		if !whole {
			break
		}
		if len(o.defects) < maxDefects && defectLine.Match(line) {
			o.defects = append(o.defects, string(line))
		}
		o.addToExcerpt(line)
		for text := range o.counted {
			if bytes.Contains(line, []byte(text)) {
				o.counted[text]++
			}
		}
		o.line = rest
	}
	close(o.changed)
	o.changed = make(chan struct{})
	return len(data), nil
}

func (o *output) addToExcerpt(line []byte) {
	switch {
	case !bytes.HasPrefix(line, []byte("{")):
		if len(o.traces) < maxTraces {
			o.traces = append(o.traces, shortened(line))
		}
	case !successfulRequest.Match(line):
		if len(o.records) == maxRecords {
			o.records = slices.Delete(o.records, 0, 1)
		}
		o.records = append(o.records, shortened(line))
	}
}

func shortened(line []byte) string {
	if len(line) > maxLine {
		return string(line[:maxLine]) + "…"
	}
	return string(line)
}

// excerpt returns the lines that explain a failure, with at most that many log records.
func (o *output) excerpt(records int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.records[max(0, len(o.records)-records):]
	return strings.Join(slices.Concat(o.traces, last), "\n")
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.tail)
}

func (o *output) countLogged(text string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counted[text]
}

// defectLines returns the lines that show a defect, without panics if the server was
// made to panic.
func (o *output) defectLines(madeToPanic bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, line := range o.defects {
		if !madeToPanic || !panicLine.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// await waits until the output matches the pattern and returns the first group.
func (o *output) await(pattern *regexp.Regexp, ended <-chan struct{}) (string, bool) {
	timer := time.NewTimer(Timeout)
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
