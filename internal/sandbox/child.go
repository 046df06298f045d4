package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// child is the server's end of a process that runs scripts, one at a time.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	pipe io.Closer
	// last is the beginning of what it wrote to standard error.
	last *head
	// exited is closed when the process is gone and reaped.
	exited chan struct{}
	// served counts scripts; idle ends the process when it has none for long.
	served int
	idle   *time.Timer
}

func startChild(command []string) (*child, error) {
	// The process ends when it is told to, not with a context: it outlives the
	// script that it was started for.
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // see above
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{}, workDir(), attributes()
	cmd.WaitDelay = time.Second
	c := &child{cmd: cmd, last: &head{}, exited: make(chan struct{})}
	cmd.Stderr = c.last
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: the end of the process must not take with it what it has
	// said before.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	cmd.Stdout = theirs
	c.in, c.out, c.pipe = in, bufio.NewReader(out), out
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, theirs.Close(), out.Close(), in.Close())
	}
	return c, theirs.Close()
}

// kill ends the process, whatever it is doing.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may be gone already
	_ = c.in.Close()
	_ = c.pipe.Close()
}

// reap waits for the end of the process.
func (c *child) reap() {
	_ = c.cmd.Wait() // the state tells
	close(c.exited)
}

// ask sends a request and takes the answer. Any error that is not a Failure of
// the script means that the child is of no use any more.
func (c *child) ask(frame []byte) (Outcome, error) {
	var out Outcome
	if _, err := c.in.Write(frame); err != nil {
		return out, err
	}
	for {
		kind, body, err := readFrame(c.out)
		if err != nil {
			return out, err
		}
		switch kind {
		case frameLine:
			var line Line
			if err := json.Unmarshal(body, &line); err != nil {
				return out, fmt.Errorf("read a line: %w", err)
			}
			// A child keeps to the limits by itself; one that does not is broken.
			if len(out.Lines) > MaxLines || len(line.Text) > MaxLine {
				return out, errors.New("the child logs more than it may")
			}
			out.Lines = append(out.Lines, line)
		case frameReply:
			out.Output, err = decodeReply(body)
			return out, err
		case frameMemory:
			return out, errMemory
		default:
			return out, fmt.Errorf("a frame of the unknown kind %q", kind)
		}
	}
}

func decodeReply(body []byte) (json.RawMessage, error) {
	var r reply
	switch err := json.Unmarshal(body, &r); {
	case err != nil:
		return nil, fmt.Errorf("read a reply: %w", err)
	case r.Failure != nil:
		return nil, r.Failure
	case len(r.Output) > MaxOutput:
		return nil, errors.New("the child returns more than it may")
	}
	return r.Output, nil
}

// causes are what the Go runtime says when it has to give up.
var causes = []struct{ text, message string }{
	{"stack overflow", "the script went too deep: its data or its code is nested beyond what the memory allows"},
	{"out of memory", refused},
	{"cannot allocate memory", refused},
	{"failed to create new OS thread", refused},
	{"pthread_create failed", refused},
	{"ThreadSanitizer failed to allocate", refused}, // the race detector
	// The collector does not survive that it is refused memory. A nil pointer in
	// the interpreter would be a panic, and that is told.
	{"SIGSEGV: segmentation violation", refused},
}

const refused = "the script asked for more memory than it may use"

// postMortem says why a process is gone that was not told to go.
func (c *child) postMortem() *Failure {
	said := c.last.String()
	for _, cause := range causes {
		if strings.Contains(said, cause.text) {
			return &Failure{Kind: Memory, Message: cause.message}
		}
	}
	if c.cmd.ProcessState.ExitCode() > 0 {
		return &Failure{Kind: Crashed, Message: "the process of the script ended in the middle"}
	}
	return &Failure{Kind: Lost, Message: "the process of the script was ended from outside"}
}

// head keeps the beginning of what is written to it.
type head struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const headSize = 1 << 10

// Write implements io.Writer.
func (h *head) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(data[:min(len(data), headSize-h.text.Len())])
	return len(data), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
