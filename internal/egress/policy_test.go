package egress_test

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/stepmill/stepmill/internal/egress"
)

func TestReservedAddressesAreDeniedByDefault(t *testing.T) {
	t.Parallel()
	denied := []string{
		"http://127.0.0.1/", "http://localhost/", "http://LOCALHOST:8080/", "http://localhost./", "http://a.localhost/",
		"http://10.1.2.3/", "http://172.16.0.1/", "http://192.168.1.1/", "http://169.254.169.254/", "http://100.64.0.1/",
		"http://0.0.0.0/", "http://224.0.0.1/", "http://255.255.255.255/", "http://192.0.2.1/", "http://198.18.0.1/",
		"http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[fe80::1%25eth0]/",
		"http://[fc00::1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b:1::1]/", "http://[2002:7f00:1::]/",
		"http://[2001::1]/", "http://[2001:db8::1]/", "http://[ff02::1]/", "http://[5f00::1]/", "http://[100::1]/",
		"http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://127.1/", "http://0177.0.0.1/", "http://1.2.3.4.5/",
	}
	for _, text := range denied {
		if err := (egress.Policy{}).CheckURL(parse(t, text)); err == nil {
			t.Errorf("%s is open", text)
		}
	}
	for _, text := range []string{"https://example.com/x", "http://93.184.216.34/", "http://[2606:2800:220:1::1]/", "http://a1/", "https://localhost.example.com"} {
		if err := (egress.Policy{}).CheckURL(parse(t, text)); err != nil {
			t.Errorf("%s is closed: %v", text, err)
		}
	}
}

func TestAllowOpensOnlyItsRange(t *testing.T) {
	t.Parallel()
	policy := egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, text := range []string{"http://127.0.0.1:9000/", "http://localhost:9000/", "http://[::ffff:127.0.0.1]/"} {
		if err := policy.CheckURL(parse(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"http://10.0.0.1/", "http://[::1]/"} {
		if err := policy.CheckURL(parse(t, text)); err == nil {
			t.Errorf("%s is open", text)
		}
	}
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
