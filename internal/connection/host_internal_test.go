package connection

import (
	"net/url"
	"testing"
)

// TestCredentialStaysAtItsHosts tries to send a credential somewhere else.
func TestCredentialStaysAtItsHosts(t *testing.T) {
	t.Parallel()
	var hosts []Host
	for _, text := range []string{"api.example.com", "files.example.com:8443", "bücher.example", "http://10.0.0.5:3000", "192.0.2.7", "[2001:db8::1]", "http://plain.example"} {
		host, err := ParseHost(text)
		if err != nil {
			t.Fatal(text, err)
		}
		hosts = append(hosts, host)
	}
	for name, tc := range map[string]struct {
		allowed bool
		urls    []string
	}{
		"the hosts": {true, []string{
			"https://api.example.com", "https://api.example.com/a?b#c", "https://files.example.com:8443/", "http://10.0.0.5:3000/x", "https://192.0.2.7/", "https://[2001:db8::1]/", "http://plain.example/",
		}},
		"case":                         {true, []string{"https://API.Example.COM/", "HTTPS://api.example.com/"}},
		"the dot of the root":          {true, []string{"https://api.example.com./"}},
		"the usual port":               {true, []string{"https://api.example.com:443/", "https://api.example.com:/", "http://plain.example:80/"}},
		"an internationalized name":    {true, []string{"https://bücher.example/", "https://BÜCHER.example/", "https://xn--bcher-kva.example/", "https://XN--BCHER-KVA.example/"}},
		"notations of an address":      {true, []string{"https://[2001:DB8:0:0:0:0:0:1]/", "https://[2001:db8::0.0.0.1]/", "https://[::ffff:192.0.2.7]/", "https://[::ffff:c000:207]/"}},
		"a user":                       {false, []string{"https://api.example.com@evil.example/", "https://user:secret@api.example.com/", "https://api.example.com:443@evil.example/", "https://@api.example.com/"}},
		"another port":                 {false, []string{"https://api.example.com:8443/", "https://files.example.com/", "https://api.example.com:0443/", "https://api.example.com:0/", "https://api.example.com:80/", "http://10.0.0.5/", "https://[2001:db8::1]:8443/"}},
		"without encryption":           {false, []string{"http://api.example.com/", "http://api.example.com:443/", "http://192.0.2.7/", "http://files.example.com:8443/"}},
		"with encryption elsewhere":    {false, []string{"https://plain.example/", "https://10.0.0.5:3000/", "https://plain.example:80/"}},
		"other schemes":                {false, []string{"ws://api.example.com/", "wss://api.example.com/", "ftp://api.example.com/", "file://api.example.com/", "https:api.example.com", "//api.example.com/", "api.example.com", "javascript://api.example.com/"}},
		"a suffix or a prefix":         {false, []string{"https://example.com/", "https://x.api.example.com/", "https://api.example.com.evil.example/", "https://evilapi.example.com/", "https://api.example.co/", "https://api-example.com/"}},
		"more than one dot at the end": {false, []string{"https://api.example.com../", "https://.api.example.com/"}},
		"similar letters":              {false, []string{"https://аpi.example.com/", "https://api.exаmple.com/", "https://bucher.example/", "https://xn--bcher-kva.example.evil.example/"}},
		"other addresses":              {false, []string{"https://192.0.2.8/", "https://[2001:db8::2]/", "https://[2001:db8::1%25eth0]/", "https://[::192.0.2.7]/", "https://3221225991/", "https://0xc0000207/", "https://192.0.519/"}},
		"no host":                      {false, []string{"https:///", "https://", "https://:443/", ""}},
		"a backslash":                  {false, []string{`https://evil.example\@api.example.com/`, `https://evil.example%5c@api.example.com/`}},
	} {
		for _, text := range tc.urls {
			u, err := url.Parse(text)
			if err != nil {
				if tc.allowed {
					t.Errorf("%s: %s: %v", name, text, err)
				}
				continue // such a URL cannot be requested
			}
			if got := allows(hosts, u); got != tc.allowed {
				t.Errorf("%s: %s is allowed: %t", name, text, got)
			}
		}
	}
}

// TestAllowsWithTLS checks that only the scheme is wrong with a URL.
func TestAllowsWithTLS(t *testing.T) {
	t.Parallel()
	hosts := []Host{"127.0.0.1:9701", "http://plain.example"}
	for text, want := range map[string]bool{
		"http://127.0.0.1:9701/me": true, "https://127.0.0.1:9701/me": false, "http://127.0.0.1:9702/": false, "http://plain.example/": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := allowsWithTLS(hosts, u); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestParseHost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Host{
		"api.example.com": "api.example.com", "API.Example.COM.": "api.example.com", "api.example.com:443": "api.example.com", "https://api.example.com": "api.example.com",
		"api.example.com:8443": "api.example.com:8443", "http://10.0.0.5:3000": "http://10.0.0.5:3000", "http://plain.example:80": "http://plain.example", "HTTP://plain.example": "http://plain.example",
		"http://plain.example:443": "http://plain.example:443", "bücher.example": "xn--bcher-kva.example", "[2001:DB8::1]": "[2001:db8::1]", "[2001:db8::1]:8443": "[2001:db8::1]:8443",
		"[::ffff:192.0.2.7]": "192.0.2.7", "localhost": "localhost",
	} {
		got, err := ParseHost(text)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
			continue
		}
		if again, err := ParseHost(string(got)); err != nil || again != got {
			t.Errorf("%s: read again: %q, %v", got, again, err)
		}
	}
	for _, text := range []string{
		"", ".", " ", "https://", "*.example.com", "api.example.com/v1", "api.example.com?x", "api.example.com#x", "user@api.example.com", `api.example.com\x`, "ftp://api.example.com",
		"api.example.com:0", "api.example.com:65536", "api.example.com:x", "a b.example", "a..example", "-a.example", "[2001:db8::1", "2001:db8::1", "[fe80::1%25eth0]", "https://https://a.example", "api.example.com\n", "api_v1.exa$mple.com",
	} {
		if got, err := ParseHost(text); err == nil {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}
