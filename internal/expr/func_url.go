package expr

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

func urlFunctions() []function {
	return []function{
		fn("urlEncode", "urlEncode(value) string", "The value as text, escaped for one part of a URL.", 1, 1, urlEncode,
			`urlEncode("a b/ü&c")`, `"a%20b%2F%C3%BC%26c"`),
		fn("urlDecode", "urlDecode(text) string", "The text of one escaped part of a URL; + is a space.", 1, 1, urlDecode,
			`urlDecode("a%20b%2F%C3%BC+c")`, `"a b/ü c"`),
		fn("parseURL", "parseURL(text) map", "The parts of a URL: scheme, user, password, host, port, path, query and fragment, decoded. Parts that are missing are nil. The query is a map; a parameter that occurs several times is a list.", 1, 1, parseURL,
			`parseURL("https://shop.example:8443/a%20b?id=7&tag=x&tag=y#top")`, `{"fragment":"top","host":"shop.example","password":null,"path":"/a b","port":8443,"query":{"id":"7","tag":["x","y"]},"scheme":"https","user":null}`,
			`parseURL("mailto:ada@example.com").path`, `"ada@example.com"`),
		fn("buildURL", "buildURL(parts) string", "The URL with the parts that parseURL returns.", 1, 1, buildURL,
			`buildURL({"scheme": "https", "host": "shop.example", "path": "/a b", "query": {"tag": ["x", "y"], "id": 7}})`, `"https://shop.example/a%20b?id=7&tag=x&tag=y"`),
		fn("addQuery", "addQuery(url, parameters) string", "The URL with query parameters added, sorted by name. A list adds its parameter several times, nil none.", 2, 2, addQuery,
			`addQuery("https://shop.example/?a=1#top", {"q": "x y", "page": 2, "none": nil})`, `"https://shop.example/?a=1&page=2&q=x%20y#top"`),
	}
}

// urlEncode encodes a space as %20, which is valid in a path and in a query.
func urlEncode(m *evaluation, a args) (any, error) {
	s, err := m.text(a.values[0])
	if err != nil {
		return nil, err
	}
	return boxed(m.escapeURL(s))
}

func (m *evaluation) escapeURL(s string) (string, error) {
	if err := m.growText(3 * len(s)); err != nil {
		return "", err
	}
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), nil
}

func urlDecode(m *evaluation, a args) (any, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	if err := m.growText(len(s)); err != nil {
		return nil, err
	}
	if err := m.spend(len(s) / 8); err != nil {
		return nil, err
	}
	out, err := url.QueryUnescape(s)
	if err != nil {
		return nil, failf("argument 1 of urlDecode has a %% that is not followed by two hexadecimal digits")
	}
	if !utf8.ValidString(out) {
		return nil, failf("the decoded bytes are not UTF-8 text")
	}
	return out, nil
}

func (a args) url(m *evaluation) (*url.URL, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	if err := m.growText(weightObject + 4*len(s)); err != nil {
		return nil, err
	}
	if err := m.spend(timeSteps + len(s)/2); err != nil {
		return nil, err
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, failf("argument 1 of %s is not a valid URL", a.name)
	}
	return u, nil
}

func parseURL(m *evaluation, a args) (any, error) {
	u, err := a.url(m)
	if err != nil {
		return nil, err
	}
	query, err := m.queryObject(u.RawQuery)
	if err != nil {
		return nil, err
	}
	if err := m.growObject(8); err != nil {
		return nil, err
	}
	path := u.Path
	if u.Opaque != "" {
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return nil, failf("argument 1 of parseURL is not a valid URL")
		}
	}
	out := map[string]any{
		"scheme": orNil(u.Scheme), "user": nil, "password": nil, "host": orNil(u.Hostname()), "port": nil,
		"path": orNil(path), "query": query, "fragment": orNil(u.Fragment),
	}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		out["port"] = port
	}
	if u.User != nil {
		out["user"] = u.User.Username()
		if password, ok := u.User.Password(); ok {
			out["password"] = password
		}
	}
	for _, part := range out {
		if s, ok := part.(string); ok && !utf8.ValidString(s) {
			return nil, failf("the decoded bytes are not UTF-8 text")
		}
	}
	return out, nil
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (m *evaluation) queryObject(raw string) (map[string]any, error) {
	if err := m.grow(weightObject + (1+strings.Count(raw, "&"))*(2*weightKey+weightList+2*weightElement)); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, failf("the query of the URL is not encoded correctly")
		}
		switch before := out[name].(type) {
		case nil:
			out[name] = value
		case []any:
			out[name] = append(before, value)
		default:
			out[name] = []any{before, value}
		}
	}
	return out, nil
}

func buildURL(m *evaluation, a args) (any, error) {
	parts, err := a.options(m, 0, "scheme", "user", "password", "host", "port", "path", "query", "fragment")
	if err != nil {
		return nil, err
	}
	var text [6]string
	size := 0
	for i, name := range []string{"scheme", "user", "password", "host", "path", "fragment"} {
		if text[i], err = parts.text(name, ""); err != nil {
			return nil, err
		}
		size += len(text[i])
	}
	scheme, user, password, host, path, fragment := text[0], text[1], text[2], text[3], text[4], text[5]
	if err := m.growText(8 * size); err != nil {
		return nil, err
	}
	if host, err = parts.address(host); err != nil {
		return nil, err
	}
	u := url.URL{Scheme: scheme, Host: host, Path: path, Fragment: fragment}
	if host == "" && scheme != "" && !strings.HasPrefix(path, "/") {
		u.Path, u.Opaque = "", u.EscapedPath()
	}
	if host != "" && path != "" && !strings.HasPrefix(path, "/") {
		u.Path = "/" + path
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	} else if user != "" {
		u.User = url.User(user)
	}
	query, err := parts.object("query")
	if err != nil {
		return nil, err
	}
	if u.RawQuery, err = m.encodeQuery("", query); err != nil {
		return nil, err
	}
	out := u.String()
	if again, err := url.Parse(out); err != nil || again.Scheme != strings.ToLower(scheme) || again.Host != host {
		return nil, failf("argument 1 of buildURL: scheme, host or path is not valid in a URL")
	}
	return out, m.write(len(out))
}

// address returns the host with the port, if there is one.
func (o options) address(host string) (string, error) {
	if o.values["port"] == nil {
		if strings.Contains(host, ":") {
			host = "[" + strings.Trim(host, "[]") + "]" // an IPv6 address
		}
		return host, nil
	}
	port, ok := whole(o.values["port"])
	if !ok || port < 0 || port > 65535 {
		return "", failf("%s: port must be a number from 0 to 65535", o.of)
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port)), nil
}

func addQuery(m *evaluation, a args) (any, error) {
	u, err := a.url(m)
	if err != nil {
		return nil, err
	}
	parameters, err := a.object(1)
	if err != nil {
		return nil, err
	}
	if u.RawQuery, err = m.encodeQuery(u.RawQuery, parameters); err != nil {
		return nil, err
	}
	out := u.String()
	return out, m.write(2 * len(out))
}

func (m *evaluation) encodeQuery(query string, parameters map[string]any) (string, error) {
	names, err := m.keys(parameters)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(query)
	for _, name := range names {
		v, err := m.normalize(parameters[name])
		if err != nil {
			return "", err
		}
		items, ok := v.([]any)
		if !ok && v != nil {
			items = []any{v}
		}
		for _, item := range items {
			if err := m.addParameter(&b, name, item); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

func (m *evaluation) addParameter(b *strings.Builder, name string, v any) error {
	v, err := m.normalize(v)
	if err != nil {
		return err
	}
	text, err := m.text(v)
	if err != nil {
		return err
	}
	name, err = m.escapeURL(name)
	if err != nil {
		return err
	}
	text, err = m.escapeURL(text)
	if err != nil {
		return err
	}
	if b.Len() > 0 {
		b.WriteByte('&')
	}
	b.WriteString(name + "=" + text)
	return m.extend(2 * (len(name) + len(text) + 2))
}
