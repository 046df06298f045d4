package openapi

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// baseURL is where the API is, with expressions in place of variables.
type baseURL struct {
	text    string
	source  string // in the document
	host    string
	example string // the host, without expressions
	fields  object // of the connection, for the variables
	first   string // the name of the first of them
}

func (b *baseURL) label(name string) string {
	if b.first != "" {
		return "${{ connection." + b.first + " }}"
	}
	return name
}

var (
	hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	hostText  = regexp.MustCompile(`^[a-z0-9.-]{1,100}$`)
	pathText  = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,100}$`)
	inBraces  = regexp.MustCompile(`\{([^{}]*)\}`)
)

// isHostName reports whether text is a host in lower case, optionally with a port.
func isHostName(text string) bool {
	name, port, found := strings.Cut(text, ":")
	if number, err := strconv.ParseUint(port, 10, 16); found && (err != nil || number == 0) {
		return false
	}
	return len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."), func(label string) bool { return !hostLabel.MatchString(label) })
}

// setBase finds the URL of the API: the first server with https, or that of the options.
func (c *converter) setBase() error {
	const give = "give its https URL as the server, such as https://api.example.com/v1"
	if given := c.options.Server; given != "" {
		if strings.ContainsAny(given, "{}") || !c.useServer(given, nil) {
			return &OptionError{"server", "must be an https URL without a user, a query and a fragment, such as https://api.example.com/v1"}
		}
		return nil
	}
	servers := c.document.root.get("servers").list()
	if len(servers) == 0 {
		return &OptionError{"server", "the document does not say where the API is: " + give}
	}
	for _, server := range servers {
		if !c.useServer(server.get("url").string(), server.get("variables")) {
			continue
		}
		if text := server.get("url").string(); insertPaths(text, server.get("variables")) != text {
			c.note(server, "a variable whose default has a slash is no field of connections: the URL has its default")
		}
		if len(servers) > 1 {
			c.note(server, fmt.Sprintf("of %d servers this one is used: give another one as the server if you need it", len(servers)))
		}
		return nil
	}
	return &OptionError{"server", fmt.Sprintf("the document has no server with an absolute https URL (the first is %q): %s", clip(servers[0].get("url").string(), 100), give)}
}

// useServer makes the base URL of the URL of a server, and reports whether that is possible.
func (c *converter) useServer(text string, variables *node) bool {
	if !isPlainURL(text) {
		return false
	}
	b := baseURL{source: text}
	if name, rest, ok := strings.Cut(text, "://"); ok && strings.HasPrefix(name, "{") {
		variable := variables.get(strings.Trim(name, "{}"))
		if values := variable.get("enum").list(); variable.get("default").string() == "https" || slices.ContainsFunc(values, func(n *node) bool { return n.string() == "https" }) {
			text = "https://" + rest
		}
	}
	if text = insertPaths(text, variables); !isPlainURL(text) {
		return false
	}
	scheme, rest, _ := strings.Cut(text, "://")
	if !strings.EqualFold(scheme, "https") {
		return false
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	authority, path = lowerHost(authority), strings.Trim(path, "/")
	used := names{"label": 1, "account": 1}
	for _, name := range reservedFields() {
		used[name] = 1
	}
	b.host = b.insert(authority, variables, used, hostField)
	b.example = inExpressions.ReplaceAllString(b.host, "example")
	if !isHostName(b.example) {
		return false
	}
	b.text = "https://" + b.host
	if hasPath && path != "" {
		b.text += "/" + b.insert(path, variables, used, pathField)
	}
	plain := inExpressions.ReplaceAllString(b.text, "x")
	if _, err := url.Parse(plain); err != nil || strings.ContainsAny(plain, "{}") || hasDots(plain) {
		return false
	}
	c.base = b
	return true
}

// isPlainURL reports whether the URL of a server has only parts that base URLs have, and
// nothing that would be an expression.
func isPlainURL(text string) bool {
	return isClean(text) && len(text) <= 500 && !strings.Contains(text, "${") && !strings.ContainsAny(text, " ?#@\\")
}

// insertPaths puts the defaults of variables that have a slash in their place. What people
// enter for such a variable would become a part of the host, or of a segment.
func insertPaths(text string, variables *node) string {
	return inBraces.ReplaceAllStringFunc(text, func(name string) string {
		standard := variables.get(strings.Trim(name, "{}")).get("default").string()
		switch {
		case !strings.Contains(standard, "/") || len(standard) > 500:
			return name
		case strings.Contains(text, "/"+name):
			return strings.Trim(standard, "/")
		}
		return strings.TrimSuffix(standard, "/")
	})
}

// lowerHost returns a host in lower case, without its variables.
func lowerHost(text string) string {
	var out strings.Builder
	last := 0
	for _, at := range inBraces.FindAllStringIndex(text, -1) {
		out.WriteString(strings.ToLower(text[last:at[0]]) + text[at[0]:at[1]])
		last = at[1]
	}
	return out.String() + strings.ToLower(text[last:])
}

var inExpressions = regexp.MustCompile(`\$\{\{[^}]*\}\}`)

// hasDots reports whether a segment of a path is only dots.
func hasDots(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool { return segment == "." || segment == ".." })
}

// reservedFields are names of fields that ways to authenticate have.
func reservedFields() []string {
	return []string{"token", "username", "password", "client_id", "client_secret", "client_certificate", "client_key"}
}

// fieldOf returns the field for a variable of a URL, or the text to write in its place.
// Around it are before and after.
type fieldOf func(variable *node, before, after string) (field object, text string)

// insert puts expressions in place of the variables in a part of a URL.
func (b *baseURL) insert(text string, variables *node, used names, how fieldOf) string {
	var out strings.Builder
	known := map[string]string{}
	last := 0
	for _, at := range inBraces.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		out.WriteString(text[last:at[0]])
		last = at[1]
		if expression, ok := known[name]; ok {
			out.WriteString(expression)
			continue
		}
		variable := variables.get(name)
		field, fixed := how(variable, text[:at[0]], text[at[1]:])
		if field != nil {
			fieldName := used.unique(identifier(name, "server"))
			b.first = cmp.Or(b.first, fieldName)
			described := object{{"title", cmp.Or(title(name), "Server")}}
			described.set("help", plain(variable.get("description").string(), maxHelp))
			b.fields.set(fieldName, append(described, field...))
			fixed = "${{ connection." + fieldName + " }}"
		}
		known[name] = fixed
		out.WriteString(fixed)
	}
	return out.String() + text[last:]
}

// choices returns the values of a variable, nil unless all match.
func choices(variable *node, pattern *regexp.Regexp) []string {
	var out []string
	for _, value := range variable.get("enum").list() {
		if !pattern.MatchString(value.string()) {
			return nil
		}
		if !slices.Contains(out, value.string()) && len(out) < maxEnum {
			out = append(out, value.string())
		}
	}
	return out
}

// hostField is the field for a variable in a host. Its values cannot be anything, because
// the host receives the credential.
func hostField(variable *node, before, after string) (object, string) {
	standard := variable.get("default").string()
	values := choices(variable, hostText)
	var out object
	switch isLabel := (before == "" || strings.HasSuffix(before, ".")) && (after == "" || strings.HasPrefix(after, ".")); {
	case strings.Contains(before, ":"):
		return nil, standard // a port
	case len(values) == 1:
		return nil, values[0]
	case len(values) > 1:
		out.set("enum", values)
		if !slices.Contains(values, standard) {
			standard = ""
		}
	case after == "" && before != "" && !strings.HasSuffix(before, "."), before != "" && strings.Contains(standard, "."):
		return nil, standard // the end of a domain, which people must not complete to another one
	case before == "" && (after == "" || strings.HasPrefix(after, ":")):
		out.set("format", "host")
		if !isHostName(standard) {
			standard = ""
		}
	case isLabel:
		out.set("format", "host_label")
		if !hostLabel.MatchString(standard) {
			standard = ""
		}
	default:
		out.set("pattern", "[a-z0-9-]{1,60}")
		if !hostLabel.MatchString(standard) || len(standard) > 60 {
			standard = ""
		}
	}
	out.set("default", standard)
	return out, ""
}

// pathField is the field for a variable in the path of a server.
func pathField(variable *node, _, _ string) (object, string) {
	standard := variable.get("default").string()
	values := choices(variable, pathText)
	if len(values) == 1 {
		return nil, values[0]
	}
	var out object
	if out.set("enum", values); values == nil {
		out.set("pattern", "[A-Za-z0-9._~-]{1,100}")
	}
	if pathText.MatchString(standard) && (values == nil || slices.Contains(values, standard)) {
		out.set("default", standard)
	}
	return out, ""
}
