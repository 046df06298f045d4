package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
)

func TestProxyURL(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                                  "",
		"http://proxy.example:3128":         "http://proxy.example:3128",
		"https://proxy.example":             "https://proxy.example",
		"http://10.0.0.1:8080/":             "http://10.0.0.1:8080/",
		"http://[2001:db8::1]:3128":         "http://[2001:db8::1]:3128",
		"http://me:s3cr3t@proxy.example:80": "http://me:xxxxx@proxy.example:80",
	} {
		var p config.ProxyURL
		if err := p.UnmarshalText([]byte(given)); err != nil || p.String() != want || (p.URL() == nil) != (given == "") {
			t.Errorf("%q: %v, %v", given, p, err)
		}
		if shown := fmt.Sprintf("%v %s", p, p); strings.Contains(shown, "s3cr3t") {
			t.Errorf("%q is shown as %s", given, shown)
		}
	}
	for _, given := range []string{
		"proxy.example:3128", "socks5://me:s3cr3t@proxy.example", "http://", "http://me:s3cr3t@", "http://me:s3cr3t@proxy.example/path",
		"http://me:s3cr3t@proxy.example?a=b", "http://me:s3cr3t@proxy.example#x", "http://me:s3cr3t%@proxy.example", "http://me:s3cr3t@pro xy",
	} {
		var p config.ProxyURL
		if err := p.UnmarshalText([]byte(given)); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", given, err)
		}
	}
}
