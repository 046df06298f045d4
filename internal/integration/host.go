package integration

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Hosts returns the hosts that may receive the credential of a connection with the
// given variables, in lower case, sorted and without duplicates. A host has a port
// only if it is not 443. One that reads an unset variable is left out.
func (i *Integration) Hosts(vars map[string]string) ([]string, error) {
	out := slices.Clone(i.hosts)
	for _, h := range i.Connection.Hosts {
		if slices.ContainsFunc(h.Name.Variables(), func(name string) bool { return vars[name] == "" }) {
			continue
		}
		host, err := h.resolve(vars)
		if err != nil {
			return nil, err
		}
		out = append(out, host)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// HostPatterns returns the hosts for people to read, before there is a connection:
// a variable as {name}, and a host within a domain as *.domain.
func (i *Integration) HostPatterns() []string {
	var out []string
	for _, h := range i.Connection.Hosts {
		if h.Within == nil {
			out = append(out, hostPattern(h.Name.Source()))
		}
		for _, domain := range h.Within {
			out = append(out, "*."+domain)
		}
	}
	return out
}

// hostPattern returns the source of a host for people to read.
func hostPattern(source string) string {
	return replaceExpressions(source, func(expression string) string {
		return "{" + cmp.Or(loneVariable(expression), "…") + "}"
	})
}

func (h Host) resolve(vars map[string]string) (string, error) {
	text, _, err := h.Name.Text(Env{Connection: vars})
	if err != nil {
		return "", err
	}
	host := strings.ToLower(text)
	if strings.Contains(host, "://") { // a service often tells the URL, not the host
		u, err := url.Parse(host)
		if err != nil || u.Scheme != "https" || u.User != nil {
			return "", fmt.Errorf("%q is not an https URL", text)
		}
		host = u.Host
	}
	if !isHost(host) {
		return "", fmt.Errorf("%q is not a host name", text)
	}
	host = strings.TrimSuffix(host, ":443")
	below := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	if h.Within != nil && !slices.ContainsFunc(h.Within, below) {
		return "", fmt.Errorf("the host %q is not within %s", host, strings.Join(h.Within, ", "))
	}
	return host, nil
}

// isHost reports whether text is a host name in lower case, optionally with a port.
func isHost(text string) bool {
	name, port, found := strings.Cut(text, ":")
	if number, err := strconv.ParseUint(port, 10, 16); found && (err != nil || number == 0) {
		return false
	}
	return isHostName(name)
}

func isHostName(text string) bool {
	outside := func(label string) bool { return !hostLabel.MatchString(label) }
	return len(text) <= 253 && !slices.ContainsFunc(strings.Split(text, "."), outside)
}

// authority returns the text between https:// and the path of a URL that may
// contain expressions, or "" if it starts differently.
func authority(source string) string {
	rest, ok := strings.CutPrefix(source, "https://")
	if !ok {
		return ""
	}
	end := 0
	for end < len(rest) && !strings.ContainsRune("/?#", rune(rest[end])) {
		if length := expressionLength(rest[end:]); length > 0 {
			end += length
		} else {
			end++
		}
	}
	return rest[:end]
}

// expressionLength returns the length of the expression that text starts with, 0
// if it does not start with one.
func expressionLength(text string) int {
	if !strings.HasPrefix(text, "${{") {
		return 0
	}
	end := strings.Index(text, "}}")
	if end < 0 {
		return 0
	}
	return end + len("}}")
}

func replaceExpressions(text string, by func(expression string) string) string {
	var out strings.Builder
	for text != "" {
		if length := expressionLength(text); length > 0 {
			out.WriteString(by(text[:length]))
			text = text[length:]
			continue
		}
		out.WriteByte(text[0])
		text = text[1:]
	}
	return out.String()
}

// loneVariable returns the name if text is exactly one variable of the connection.
func loneVariable(text string) string {
	if expressionLength(text) != len(text) || text == "" {
		return ""
	}
	inner := strings.TrimSpace(text[len("${{") : len(text)-len("}}")])
	name, ok := strings.CutPrefix(inner, "connection.")
	if !ok || !identifier.MatchString(name) {
		return ""
	}
	return name
}
