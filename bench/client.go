package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// request is a serialized request. The client shares the machine with the server,
// so it must use as little CPU as possible.
type request []byte

func newRequest(method, path, key, body string, headers ...string) request {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: bench\r\n", method, path)
	if key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", key)
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	for _, header := range headers {
		b.WriteString(header + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// connection speaks HTTP/1.1 with keep-alive, one request at a time.
type connection struct {
	conn   net.Conn
	reader *bufio.Reader
}

func dial(address string) (*connection, error) {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, reader: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// do sends a request and returns status and body.
func (c *connection) do(r request) (int, []byte, error) {
	if err := c.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, nil, err
	}
	if _, err := c.conn.Write(r); err != nil {
		return 0, nil, err
	}
	line, err := c.reader.ReadSlice('\n')
	if err != nil || len(line) < 12 {
		return 0, nil, fmt.Errorf("read the status: %w", err)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, nil, err
	}
	length := 0
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, nil, err
			}
		}
	}
	body := make([]byte, length)
	_, err = io.ReadFull(c.reader, body)
	return status, body, err
}

// sample is the result of a load.
type sample struct {
	count     int
	took      time.Duration
	latencies []time.Duration
	err       error
}

func (s sample) rate() float64 { return float64(s.count) / s.took.Seconds() }

func (s sample) percentile(p float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[min(len(s.latencies)-1, int(p*float64(len(s.latencies))))]
}

// load runs clients for a time. Each sends its next request when it has received
// the previous response. next returns the n-th request of a client.
func load(addresses []string, clients int, length time.Duration, want int, next func(client, n int) request) sample {
	var (
		mu    sync.Mutex
		total sample
		wg    sync.WaitGroup
	)
	begun := time.Now()
	end := begun.Add(length)
	for client := range clients {
		wg.Go(func() {
			mine := runClient(addresses[client%len(addresses)], client, end, want, next)
			mu.Lock()
			defer mu.Unlock()
			total.count += mine.count
			total.latencies = append(total.latencies, mine.latencies...)
			if mine.err != nil {
				total.err = mine.err
			}
		})
	}
	wg.Wait()
	total.took = time.Since(begun)
	slices.Sort(total.latencies)
	return total
}

func runClient(address string, client int, end time.Time, want int, next func(client, n int) request) (s sample) {
	c, err := dial(address)
	if err != nil {
		return sample{err: err}
	}
	defer func() { _ = c.conn.Close() }()
	for now := time.Now(); now.Before(end); {
		status, body, err := c.do(next(client, s.count))
		if err == nil && status != want {
			err = fmt.Errorf("status %d: %.300s", status, body)
		}
		if err != nil {
			s.err = err
			return s
		}
		after := time.Now()
		s.latencies = append(s.latencies, after.Sub(now))
		s.count++
		now = after
	}
	return s
}
