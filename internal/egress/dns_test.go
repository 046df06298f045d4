package egress_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stepmill/stepmill/internal/egress"
)

const (
	typeA     = 1
	typeCNAME = 5
	typeAAAA  = 28
)

// record is one resource record, written without compression.
type record struct {
	name string
	kind uint16
	data []byte
}

func address(name, text string) record {
	addr := netip.MustParseAddr(text)
	if addr.Is4() {
		return record{name, typeA, addr.AsSlice()}
	}
	return record{name, typeAAAA, addr.AsSlice()}
}

func alias(name, to string) record { return record{name, typeCNAME, wireName(to)} }

func wireName(name string) []byte {
	var out []byte
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		out = append(append(out, byte(len(label))), label...)
	}
	return append(out, 0)
}

// nameServer returns the records of the requested type and all aliases, each with
// a TTL of 0.
func nameServer(t *testing.T, answer func(name string, kind uint16) []record) egress.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			if reply := respond(packet[:n], answer); reply != nil {
				conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func respond(query []byte, answer func(name string, kind uint16) []record) []byte {
	if len(query) < 12 {
		return nil
	}
	var labels []string
	at := 12
	for query[at] != 0 {
		labels = append(labels, string(query[at+1:at+1+int(query[at])]))
		at += 1 + int(query[at])
	}
	kind := binary.BigEndian.Uint16(query[at+1:])
	question := query[12 : at+5]
	var answers []byte
	count := uint16(0)
	for _, r := range answer(strings.Join(labels, "."), kind) {
		if r.kind != kind && r.kind != typeCNAME {
			continue
		}
		answers = append(answers, wireName(r.name)...)
		answers = binary.BigEndian.AppendUint16(answers, r.kind)
		answers = binary.BigEndian.AppendUint16(answers, 1) // IN
		answers = binary.BigEndian.AppendUint32(answers, 0) // TTL
		answers = binary.BigEndian.AppendUint16(answers, uint16(len(r.data)))
		answers = append(answers, r.data...)
		count++
	}
	reply := append([]byte{query[0], query[1], 0x85, 0x80, 0, 1}, byte(count>>8), byte(count), 0, 0, 0, 0)
	return append(append(reply, question...), answers...)
}

// publicAndPrivateServers starts a public server and a private decoy on one port.
func publicAndPrivateServers(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	server := serve(t, outside, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "hello")
	})
	port := portOf(server.Listener.Addr())
	for _, inside := range []string{"127.0.0.1", "[::1]"} {
		if listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", inside, port)); err == nil {
			t.Cleanup(func() { listener.Close() })
			decoyOn(t, listener)
		}
	}
	return fmt.Sprintf("http://host.test:%d/?key=%s", port, secret), calls
}

func TestNamesWithOnlyPrivateAddressesAreDenied(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]record{
		"v4":             {address("host.test", "127.0.0.1")},
		"v6":             {address("host.test", "::1")},
		"both":           {address("host.test", "127.0.0.1"), address("host.test", "::1"), address("host.test", "10.0.0.1")},
		"mapped":         {address("host.test", "::ffff:127.0.0.1")},
		"unspecified":    {address("host.test", "0.0.0.0"), address("host.test", "::")},
		"chain":          {alias("host.test", "b.test"), alias("b.test", "c.test"), address("c.test", "127.0.0.1")},
		"chain to local": {alias("host.test", "localhost"), address("localhost", "127.0.0.1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := publicAndPrivateServers(t)
			resolver := nameServer(t, func(string, uint16) []record { return answers })
			_, err := get(t, newClient(t, egress.Config{Policy: internet, Resolver: resolver}), url)
			e := wantError(t, err, egress.Denied)
			if strings.Contains(e.Message, "127.0.0.1") || !strings.Contains(e.Message, "host.test") {
				t.Errorf("the message is %q", e.Message)
			}
		})
	}
}

func TestDialsOnlyThePublicAddressesOfAName(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]record{
		"private first": {address("host.test", "127.0.0.1"), address("host.test", outside)},
		"private last":  {address("host.test", outside), address("host.test", "127.0.0.1")},
		"two families":  {address("host.test", "::1"), address("host.test", outside)},
		"chain":         {alias("host.test", "b.test"), address("b.test", "127.0.0.1"), address("b.test", outside)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, calls := publicAndPrivateServers(t)
			client := newClient(t, egress.Config{Policy: internet, Resolver: nameServer(t, func(string, uint16) []record { return answers })})
			for range 20 {
				mustGet(t, client, url)
			}
			if calls.Load() != 20 {
				t.Errorf("%d calls came", calls.Load())
			}
		})
	}
}

// The name has a public address when it is checked and a private one afterwards.
func TestRejectsDNSRebinding(t *testing.T) {
	t.Parallel()
	url, calls := publicAndPrivateServers(t)
	var asked atomic.Int64
	resolver := nameServer(t, func(_ string, kind uint16) []record {
		if kind == typeA && asked.Add(1)%2 == 1 {
			return []record{address("host.test", outside)}
		}
		return []record{address("host.test", "127.0.0.1"), address("host.test", "::1")}
	})
	client := newClient(t, egress.Config{Policy: internet, Resolver: resolver})
	const rounds = 1000
	for range rounds {
		if _, err := get(t, client, url); err != nil {
			wantError(t, err, egress.Denied)
		}
	}
	if n := calls.Load(); n != rounds/2 {
		t.Errorf("%d of %d calls arrived", n, rounds)
	}
}

func TestUnresolvableNames(t *testing.T) {
	t.Parallel()
	empty := nameServer(t, func(string, uint16) []record { return nil })
	_, err := get(t, newClient(t, egress.Config{Resolver: empty}), "http://host.test./?key="+secret)
	wantError(t, err, egress.ConnectionFailed)
	_, err = get(t, newClient(t, egress.Config{Resolver: names{}}), "http://host.test/")
	wantError(t, err, egress.ConnectionFailed)
}

// silentResolver never responds.
type silentResolver struct{}

func (silentResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestFallsBackToTheNextAddress(t *testing.T) {
	t.Parallel()
	server := serve(t, outside, hello)
	port := portOf(server.Listener.Addr())
	resolver := names{"host.test": {"127.1.0.2", "127.1.0.3", outside}, "dead.test": {"127.1.0.2", "127.1.0.3"}}
	client := newClient(t, egress.Config{Policy: internet, Resolver: resolver})
	mustGet(t, client, fmt.Sprintf("http://host.test:%d", port))
	_, err := get(t, client, fmt.Sprintf("http://dead.test:%d", port))
	if e := wantError(t, err, egress.ConnectionFailed); !strings.Contains(e.Message, "connection refused") {
		t.Errorf("the message is %q", e.Message)
	}
}
