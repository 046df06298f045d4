package digest

import (
	"errors"
	"strings"
)

// maxChallenge bounds a header with challenges. What a server sends is sent back to it.
const maxChallenge = 8 << 10

// scheme is a challenge of any scheme.
type scheme struct {
	scheme string
	params map[string]string // by name in lower case; nil if it has one value instead
}

var (
	errLong      = errors.New("the challenge is longer than 8 KiB")
	errMalformed = errors.New("the challenge is malformed")
	errRepeated  = errors.New("the challenge has a parameter twice")
)

// parse reads the value of a header WWW-Authenticate (RFC 9110, section 11.6.1), which can
// have several challenges. Before an error, it returns those that are complete.
func parse(text string) (out []scheme, err error) {
	if len(text) > maxChallenge {
		return nil, errLong
	}
	var current *scheme
	for p := (scanner{text}); ; {
		p.skip(" \t,")
		name := p.token()
		if name == "" {
			if p.rest != "" {
				return complete(out), errMalformed
			}
			return out, nil
		}
		if current != nil && p.eat("=") {
			value, ok := p.value()
			name = strings.ToLower(name)
			if !ok {
				return complete(out), errMalformed
			}
			if _, repeated := current.params[name]; repeated {
				return complete(out), errRepeated
			}
			current.params[name] = value
			continue
		}
		out = append(out, scheme{name, map[string]string{}})
		current = &out[len(out)-1]
		p.token68()
	}
}

// complete returns the challenges without the last one.
func complete(all []scheme) []scheme { return all[:max(0, len(all)-1)] }

type scanner struct{ rest string }

func (s *scanner) skip(characters string) { s.rest = strings.TrimLeft(s.rest, characters) }

// eat skips a text with spaces around it, if it comes next.
func (s *scanner) eat(text string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(s.rest, " \t"), text)
	if ok {
		s.rest = strings.TrimLeft(rest, " \t")
	}
	return ok
}

func (s *scanner) take(isPart func(byte) bool) string {
	n := 0
	for n < len(s.rest) && isPart(s.rest[n]) {
		n++
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

func (s *scanner) token() string {
	return s.take(func(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 })
}

func (s *scanner) value() (string, bool) {
	if !strings.HasPrefix(s.rest, `"`) {
		// Some servers do not quote what they should: everything but what ends a value.
		value := s.take(func(c byte) bool { return c > ' ' && c != ',' && c != '"' && c != 0x7f })
		return value, value != ""
	}
	var out strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return out.String(), true
		case c == '\\' && i+1 < len(s.rest):
			i++
			out.WriteByte(s.rest[i])
		default:
			out.WriteByte(c)
		}
	}
	return "", false
}

// token68 skips the single value that some schemes have in place of parameters.
func (s *scanner) token68() {
	after := scanner{strings.TrimLeft(s.rest, " \t")}
	value := after.take(func(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("-._~+/", c) >= 0 })
	after.take(func(c byte) bool { return c == '=' })
	if rest := strings.TrimLeft(after.rest, " \t"); value != "" && (rest == "" || rest[0] == ',') {
		s.rest = after.rest
	}
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
