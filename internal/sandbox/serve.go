package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"time"
)

// errMemory ends a child whose script exceeded its memory limit.
var errMemory = errors.New("the script exceeded its memory limit")

// Serve is the main loop of a child process: it runs scripts one at a time, each
// with at most the given bytes of memory, until its input ends. A file that a script
// reads or creates can have a quarter of that. It changes limits of the whole process,
// which must not do anything else.
func Serve(in io.Reader, out io.Writer, memory int64) error {
	// Two threads: one for the script, one for the collector and the monitor.
	runtime.GOMAXPROCS(2)
	debug.SetTraceback("none")
	debug.SetMaxStack(int(min(memory/2, 1<<30)))
	time.Local = time.UTC // scripts see the same time zone on every machine
	monitor := newMemoryMonitor(memory)
	if err := confine(memory); err != nil {
		return fmt.Errorf("confine the process: %w", err)
	}
	return serve(in, host{out: out, data: make(chan []byte), maxFile: memory / fileShare}, monitor)
}

// incoming is a request with its frame kind.
type incoming struct {
	kind byte
	request
}

func serve(in io.Reader, h host, monitor *memoryMonitor) error {
	requests, disconnected := make(chan incoming), make(chan error, 1)
	// The input is read even while a script runs: if it ends, the server has
	// exited, and the script must end too.
	go func() { disconnected <- receive(in, requests, h.data) }()
	for {
		select {
		case r := <-requests:
			if err := handle(r, h, monitor, disconnected); err != nil {
				return ignoreEOF(err)
			}
		case err := <-disconnected:
			return ignoreEOF(err)
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func receive(in io.Reader, requests chan<- incoming, data chan<- []byte) error {
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return err
		}
		if kind == frameData {
			data <- body // the script waits for it
			continue
		}
		r := incoming{kind: kind}
		if err := json.Unmarshal(body, &r.request); err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		requests <- r
	}
}

// handle replies to one request. It returns an error if the script exceeds its
// memory or the server exits first. The error ends the process and the script.
func handle(r incoming, h host, monitor *memoryMonitor, disconnected <-chan error) error {
	replies := make(chan []byte, 1)
	go func() { replies <- replyFrame(r, h) }()
	stop := make(chan struct{})
	defer close(stop)
	select {
	case frame := <-replies:
		_, err := h.out.Write(frame)
		return err
	case <-monitor.watch(stop):
		// Tell the server, so that it need not guess from the exit status.
		frame, err := encodeFrame(frameMemory, nil)
		if err == nil {
			_, err = h.out.Write(frame)
		}
		return errors.Join(errMemory, err)
	case err := <-disconnected:
		return err
	}
}

func replyFrame(r incoming, h host) []byte {
	frame, err := encodeFrame(frameReply, execute(r, h))
	if err != nil {
		// This failure can always be encoded.
		frame, _ = encodeFrame(frameReply, reply{Failure: &Failure{Kind: Crashed, Message: "the result cannot be sent"}})
	}
	return frame
}

// execute runs or compiles the script. A panic is a bug in the interpreter.
func execute(r incoming, h host) (result reply) {
	defer func() {
		if cause := recover(); cause != nil {
			result = reply{Failure: &Failure{Kind: Crashed, Message: clip(fmt.Sprintf("the interpreter failed: %v", cause), MaxLine)}}
		}
	}()
	if r.kind == frameCheck {
		_, result.Failure = compile(r.Code)
		return result
	}
	return run(r.request, h)
}
