package config_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
)

func TestPublicURL(t *testing.T) {
	t.Parallel()
	listening := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:8080"))
	for given, want := range map[string]string{
		"https://flows.example.com":       "https://flows.example.com",
		"https://flows.example.com/":      "https://flows.example.com",
		"HTTP://Flows.Example.com:8443":   "http://flows.example.com:8443",
		"https://example.com/flows/":      "https://example.com/flows",
		"https://example.com/a b":         "",
		"http://[2001:db8::1]:8080":       "http://[2001:db8::1]:8080",
		"":                                "",
		"flows.example.com":               "",
		"//flows.example.com":             "",
		"ftp://flows.example.com":         "",
		"javascript:alert(1)":             "",
		"https:flows.example.com":         "",
		"https://":                        "",
		"https://:8080":                   "",
		"https://me:secret@example.com":   "",
		"https://example.com?a=1":         "",
		"https://example.com?":            "",
		"https://example.com#":            "",
		"https://example.com/a/../b":      "",
		"https://example.com/a//b":        "",
		"https://example.com/%2e%2e/b":    "",
		"https://example.com/a%2Fb":       "",
		"https://example.com/\r\nX: y":    "",
		"https://exa\"><script>mple.com/": "",
		"https://example.com:port":        "",
		"https://example.com/./":          "",
	} {
		var p config.PublicURL
		err := p.UnmarshalText([]byte(given))
		if (err == nil) != (want != "") {
			t.Errorf("%q: %v", given, err)
		}
		if err == nil && p.Or(listening) != want {
			t.Errorf("%q: got %q", given, p.Or(listening))
		}
	}
}

func TestPublicURLDefault(t *testing.T) {
	t.Parallel()
	for listening, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "[::1]:80": "http://[::1]:80",
		"0.0.0.0:8080": "http://localhost:8080", "[::]:8080": "http://localhost:8080",
	} {
		if got := (config.PublicURL{}).Or(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listening))); got != want {
			t.Errorf("%s: got %s", listening, got)
		}
	}
}
