package sandbox

import (
	"bufio"
	"bytes"
	"context"
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

// child is the server's side of a process that runs scripts, one at a time.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	pipe io.Closer
	// stderr has the beginning of the standard error output.
	stderr *prefixBuffer
	// exited is closed when the process has ended and was reaped.
	exited chan struct{}
	// served counts scripts; idle stops the process after a time without scripts.
	served int
	idle   *time.Timer
}

// environment returns the environment of a child, which has nothing of the server's. In a
// build with cgo, the C library reserves 64 MiB of addresses for each thread unless it
// shares one arena. The limit of a child counts them, so a busy machine, where Go starts
// more threads, would leave too few for the memory of scripts.
func environment() []string { return []string{"MALLOC_ARENA_MAX=1"} }

func startChild(command []string) (*child, error) {
	// No context: the process outlives the script that it was started for, and is
	// stopped explicitly.
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // see above
	cmd.Env, cmd.Dir, cmd.SysProcAttr = environment(), workDir(), sysProcAttr()
	cmd.WaitDelay = time.Second
	c := &child{cmd: cmd, stderr: &prefixBuffer{}, exited: make(chan struct{})}
	cmd.Stderr = c.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: Wait would close it before all output is read.
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

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have exited already
	_ = c.in.Close()
	_ = c.pipe.Close()
}

// roundTrip sends a request and reads the reply. After any error other than a
// *Failure of the script the child can no longer be used.
func (c *child) roundTrip(ctx context.Context, frame []byte, files Files) (Outcome, error) {
	var out Outcome
	if _, err := c.in.Write(frame); err != nil {
		return out, err
	}
	server := fileServer{files: files}
	defer server.abort()
	for {
		kind, body, err := readFrame(c.out)
		if err != nil {
			return out, err
		}
		switch kind {
		case frameLine:
			err = out.addLine(body)
		case frameRead:
			err = server.send(ctx, c.in, body)
		case frameCreate:
			err = server.create(ctx, body)
		case frameData:
			err = server.write(body)
		case frameReply:
			if err := server.finish(); err != nil {
				return out, err
			}
			out.Output, err = decodeReply(body)
			return out, err
		case frameMemory:
			return out, errMemory
		default:
			return out, fmt.Errorf("unknown frame kind %q", kind)
		}
		if err != nil {
			return out, err
		}
	}
}

// addLine adds a log line. A child enforces the limits itself; one that does not is
// broken.
func (o *Outcome) addLine(body []byte) error {
	var line Line
	if err := json.Unmarshal(body, &line); err != nil {
		return fmt.Errorf("decode a log line: %w", err)
	}
	if len(o.Lines) > MaxLines || len(line.Text) > MaxLine {
		return errors.New("the child exceeds the log limit")
	}
	o.Lines = append(o.Lines, line)
	return nil
}

func decodeReply(body []byte) (json.RawMessage, error) {
	var r reply
	switch err := json.Unmarshal(body, &r); {
	case err != nil:
		return nil, fmt.Errorf("decode a reply: %w", err)
	case r.Failure != nil:
		return nil, r.Failure
	case len(r.Output) > MaxOutput:
		return nil, errors.New("the child exceeds the output limit")
	}
	return r.Output, nil
}

// exitMessages maps fatal errors of the Go runtime to messages for users.
var exitMessages = []struct{ text, message string }{
	{"stack overflow", "the script ran out of stack memory: its code or its data is nested too deeply"},
	{"out of memory", outOfMemory},
	{"cannot allocate memory", outOfMemory},
	{"failed to create new OS thread", outOfMemory},
	{"pthread_create failed", outOfMemory},
	{"ThreadSanitizer failed to allocate", outOfMemory}, // the race detector
	// The garbage collector crashes this way if it cannot allocate memory. A nil
	// pointer in the interpreter would be a panic, which is reported as such.
	{"SIGSEGV: segmentation violation", outOfMemory},
}

const outOfMemory = "the script tried to use more memory than its limit"

func (c *child) exitFailure() *Failure {
	output := c.stderr.String()
	for _, cause := range exitMessages {
		if strings.Contains(output, cause.text) {
			return &Failure{Kind: Memory, Message: cause.message}
		}
	}
	if c.cmd.ProcessState.ExitCode() > 0 {
		return &Failure{Kind: Crashed, Message: "the process of the script exited unexpectedly"}
	}
	return &Failure{Kind: Lost, Message: "the process of the script was killed"}
}

// prefixBuffer keeps the first bytes written to it.
type prefixBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const stderrLimit = 1 << 10

// Write implements io.Writer.
func (h *prefixBuffer) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(data[:min(len(data), stderrLimit-h.text.Len())])
	return len(data), nil
}

func (h *prefixBuffer) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
