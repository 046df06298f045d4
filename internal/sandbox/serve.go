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

// errMemory ends a child whose script has used up its memory.
var errMemory = errors.New("the script has used up its memory")

// Serve is the life of a child: it runs one script after the other, each with
// at most that many bytes of memory, until its input ends. It changes limits of
// the whole process, which must be there for nothing else.
func Serve(in io.Reader, out io.Writer, memory int64) error {
	// Two threads: one for the script, one for the collector and the watch.
	runtime.GOMAXPROCS(2)
	debug.SetTraceback("none")
	debug.SetMaxStack(int(min(memory/2, 1<<30)))
	time.Local = time.UTC // scripts see the same time of day on every machine
	gauge := newGauge(memory)
	if err := confine(memory); err != nil {
		return fmt.Errorf("confine the process: %w", err)
	}
	return serve(in, out, gauge)
}

// incoming is a request with what to do with it.
type incoming struct {
	kind byte
	request
}

func serve(in io.Reader, out io.Writer, gauge *gauge) error {
	requests, gone := make(chan incoming), make(chan error, 1)
	// The input is read also while a script runs: its end means that the server
	// is gone, and then the script has to go too.
	go func() { gone <- receive(in, requests) }()
	for {
		select {
		case r := <-requests:
			if err := handle(r, out, gauge, gone); err != nil {
				return ended(err)
			}
		case err := <-gone:
			return ended(err)
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func receive(in io.Reader, requests chan<- incoming) error {
	for {
		kind, body, err := readFrame(in)
		if err != nil {
			return err
		}
		r := incoming{kind: kind}
		if err := json.Unmarshal(body, &r.request); err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		requests <- r
	}
}

// handle answers one request, unless the memory or the server is gone before.
// An error ends the process, and with it the script.
func handle(r incoming, out io.Writer, gauge *gauge, gone <-chan error) error {
	answer := make(chan []byte, 1)
	go func() { answer <- work(r, out) }()
	stop := make(chan struct{})
	defer close(stop)
	select {
	case frame := <-answer:
		_, err := out.Write(frame)
		return err
	case <-gauge.watch(stop):
		// Said as well as done: the server need not guess from an exit status.
		frame, err := encodeFrame(frameMemory, nil)
		if err == nil {
			_, err = out.Write(frame)
		}
		return errors.Join(errMemory, err)
	case err := <-gone:
		return err
	}
}

// work gives the answer to a request as a frame.
func work(r incoming, out io.Writer) []byte {
	frame, err := encodeFrame(frameReply, answer(r, out))
	if err != nil {
		// A failure as plain as this one can always be sent.
		frame, _ = encodeFrame(frameReply, reply{Failure: &Failure{Kind: Crashed, Message: "the result cannot be sent"}})
	}
	return frame
}

// answer runs or compiles the script. A panic is a mistake in the interpreter.
func answer(r incoming, out io.Writer) (answer reply) {
	defer func() {
		if cause := recover(); cause != nil {
			answer = reply{Failure: &Failure{Kind: Crashed, Message: clip(fmt.Sprintf("the interpreter failed: %v", cause), MaxLine)}}
		}
	}()
	if r.kind == frameCheck {
		_, answer.Failure = compile(r.Code)
		return answer
	}
	return run(r.request, out)
}
