package expr_test

import "testing"

func TestURLFunctions(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`parseURL("https://ada:p%40ss@[2001:db8::1]:8080/x")`:                                     `{"fragment":null,"host":"2001:db8::1","password":"p@ss","path":"/x","port":8080,"query":{},"scheme":"https","user":"ada"}`,
		`parseURL("?a&b=1&a=%20+").query`:                                                         `{"a":["","  "],"b":"1"}`,
		`parseURL("").path`:                                                                       `null`,
		`parseURL("/a;b?c=d;e").query`:                                                            `{"c":"d;e"}`,
		`urlDecode("100%25")`:                                                                     `"100%"`,
		`buildURL({"scheme": "mailto", "path": "ada@example.com"})`:                               `"mailto:ada@example.com"`,
		`buildURL({"scheme": "mailto", "path": "a b?c#d"})`:                                       `"mailto:a%20b%3Fc%23d"`,
		`parseURL("mailto:a%20b%3Fc").path`:                                                       `"a b?c"`,
		`buildURL({"host": "a.example", "path": "x"})`:                                            `"//a.example/x"`,
		`buildURL({"scheme": "http", "host": "::1", "port": 80, "user": "a:b", "password": "@"})`: `"http://a%3Ab:%40@[::1]:80"`,
		`buildURL({"path": "/a?b", "query": {"c": [], "d": nil}, "fragment": "#"})`:               `"/a%3Fb#%23"`,
		`buildURL({})`:                           `""`,
		`addQuery("/a?", {"b": [1, true, "&"]})`: `"/a?b=1&b=true&b=%26"`,
		`addQuery("/a?b=1", nil)`:                `"/a?b=1"`,
		`map(["https://a.example/x?b=1&c=2#d", "http://u:p@h.example:1/", "mailto:a@b.c", "/a%20b"], buildURL(parseURL(#)) == #)`: `[true,true,true,true]`,
	})
	failTable(t, map[string]string{
		`urlDecode("%zz")`:                                 "argument 1 of urlDecode has a % that is not followed by two hexadecimal digits",
		`urlDecode("%ff")`:                                 "the decoded bytes are not UTF-8 text",
		`parseURL("https://a b/")`:                         "argument 1 of parseURL is not a valid URL",
		`parseURL("?a=%")`:                                 "the query of the URL is not encoded correctly",
		`parseURL("urn:%ff")`:                              "the decoded bytes are not UTF-8 text",
		`parseURL("urn:%zz")`:                              "argument 1 of parseURL is not a valid URL",
		`parseURL("/%ff")`:                                 "the decoded bytes are not UTF-8 text",
		`buildURL({"hsot": "a"})`:                          `argument 1 of buildURL has an unknown option; use "scheme", "user", "password", "host", "port", "path", "query" or "fragment"`,
		`buildURL({"host": "a.example/x"})`:                "argument 1 of buildURL: scheme, host or path is not valid in a URL",
		`buildURL({"scheme": "a b", "host": "a.example"})`: "argument 1 of buildURL: scheme, host or path is not valid in a URL",
		`buildURL({"host": "a", "port": 70000})`:           "argument 1 of buildURL: port must be a number from 0 to 65535",
		`buildURL({"host": 1})`:                            "argument 1 of buildURL: host must be a string, got int",
		`addQuery("/", [1])`:                               "argument 2 of addQuery must be a map, got array",
	})
}
