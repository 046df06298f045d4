package egress_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/test/lane"
)

// No notation of a reserved address reaches a listener on all addresses.
func TestNeverDialsReservedAddresses(t *testing.T) {
	t.Parallel()
	decoy := newDecoy(t)
	client := newClient(t, egress.Config{Resolver: names{}})
	hosts := reservedHosts()
	if len(hosts) < 300 {
		t.Fatalf("only %d ways", len(hosts))
	}
	for _, host := range hosts {
		for _, scheme := range []string{"http", "https"} {
			url := fmt.Sprintf("%s://%s:%d/?key=%s", scheme, host, decoy.port, secret)
			_, err := client.Do(t.Context(), egress.Request{URL: url, Timeout: 3 * time.Minute})
			if err == nil {
				t.Fatalf("%s was called", url)
			}
			t.Run(url, func(t *testing.T) { wantError(t, err, egress.Denied) })
		}
	}
}

// reservedHosts returns the first, middle and last address of every reserved
// range, in every notation that some program parses as an address.
func reservedHosts() []string {
	hosts := []string{
		"localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.localhost.", "127.1", "127.0.1", "10.1", "0", "1",
		"0x7f.1", "0x7f.0x0.0x0.0x1", "0177.1", "00177.0000.0000.0001", "127.0.0.1.", "127.0.0.0x1", "1.2.3.4.5",
		"localhost.localhost", "①②⑦.⓪.⓪.①", "127。0。0。1", "１２７.0.0.1",
		"[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000::0001]", "[::1%25lo]", "[fe80::1%25eth0]", "[fe80::1]", "[febf::1]",
		"[fec0::1]", "[fc00::1]", "[fd00::2]", "[fdff:ffff::1]", "[ff00::1]", "[ff02::1]", "[ff0e::1]", "[100::1]",
		"[64:ff9b:1::1]", "[64:ff9b:1:ffff::1]", "[2001::1]", "[2001:0:7f00:1::]", "[2001:10::1]", "[2001:20::1]", "[2001:1ff::1]",
		"[2001:db8::1]", "[2001:db8:ffff::1]", "[3fff::1]", "[3fff:fff::1]", "[2620:4f:8000::1]", "[5f00::1]", "[4000::1]",
		"[1fff::1]", "[e000::1]", "[::ffff:0:127.0.0.1]", "[::ffff:0:0]", "[0:0:0:0:0:ffff:7f00:0001]",
	}
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "0.255.255.255", "10.0.0.0", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
		"127.0.0.1", "127.0.0.2", "127.1.0.1", "127.255.255.254", "169.254.169.254", "169.254.170.2", "172.16.0.1",
		"172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.0.2.2", "192.88.99.1", "192.168.0.1",
		"192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
		"240.0.0.1", "255.255.255.255", "168.63.129.16",
	} {
		hosts = append(hosts, notations(netip.MustParseAddr(text).As4())...)
	}
	return hosts
}

func notations(a [4]byte) []string {
	number := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
	high, low := number>>16, number&0xffff
	dotted := netip.AddrFrom4(a).String()
	return []string{
		dotted,
		dotted + ".",
		fmt.Sprintf("%d", number),
		fmt.Sprintf("0x%x", number),
		fmt.Sprintf("0X%08X", number),
		fmt.Sprintf("0%o", number),
		fmt.Sprintf("%d.%d", a[0], number&0xffffff),
		fmt.Sprintf("%d.%d.%d", a[0], a[1], low),
		fmt.Sprintf("0%o.0%o.0%o.0%o", a[0], a[1], a[2], a[3]),
		fmt.Sprintf("0x%x.0x%x.0x%x.0x%x", a[0], a[1], a[2], a[3]),
		fmt.Sprintf("[::ffff:%s]", dotted),
		fmt.Sprintf("[::ffff:%x:%x]", high, low),
		fmt.Sprintf("[::%s]", dotted),
		fmt.Sprintf("[64:ff9b::%s]", dotted),
		fmt.Sprintf("[64:ff9b:1::%x:%x]", high, low),
		fmt.Sprintf("[2002:%x:%x::1]", high, low),
		fmt.Sprintf("[2001:0:%x:%x::1]", high, low),
	}
}

func TestSocketCheckRejectsReservedAddresses(t *testing.T) {
	t.Parallel()
	decoy := newDecoy(t)
	server := serve(t, outside, hello)
	client := newClient(t, egress.Config{Policy: internet})
	var closed []netip.AddrPort
	for _, text := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "10.0.0.1", "fe80::1"} {
		target := netip.AddrPortFrom(netip.MustParseAddr(text), decoy.port)
		closed = append(closed, target)
		_, err := client.Connect(t.Context(), target)
		wantError(t, err, egress.Denied)
	}
	conn, err := client.Connect(t.Context(), append(closed, netip.MustParseAddrPort(server.Listener.Addr().String()))...)
	if err != nil {
		t.Fatal(err)
	}
	if to := conn.RemoteAddr().String(); to != server.Listener.Addr().String() {
		t.Errorf("connected to %s", to)
	}
	conn.Close()
}

func TestAllowsPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2a00:1450::1", "2001:200::1"} {
		if !(egress.Policy{}).Allows(netip.MustParseAddr(text)) {
			t.Errorf("%s is closed", text)
		}
	}
}

func TestAllowsNoAddressTheStandardLibraryCallsPrivate(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(lane.Seed(), 0))
	for range 10_000 {
		var v6 [16]byte
		binary.BigEndian.PutUint64(v6[:], random.Uint64())
		v4 := netip.AddrFrom4([4]byte(v6[:4]))
		for _, addr := range []netip.Addr{v4, netip.AddrFrom16(v6), netip.AddrFrom16(v4.As16())} {
			plain := addr.Unmap()
			if (egress.Policy{}).Allows(addr) && (!plain.IsGlobalUnicast() || plain.IsPrivate()) {
				t.Fatalf("%s is open", addr)
			}
		}
	}
}
