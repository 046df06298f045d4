package integration

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
)

// Path is the path of a call below the base URL. Text that an expression inserts is
// escaped, so that it stays one segment; a list becomes several.
type Path struct {
	source string
	pieces []pathPiece
}

type pathPiece struct {
	text       string
	expression *expr.Program
}

// IsZero reports whether there is no path.
func (p Path) IsZero() bool { return p.source == "" }

// Source returns the text in the manifest.
func (p Path) Source() string { return p.source }

// Text renders the path.
func (p Path) Text(env Env) (string, error) {
	var out strings.Builder
	for _, piece := range p.pieces {
		if piece.expression == nil {
			out.WriteString(piece.text)
			continue
		}
		value, err := piece.expression.Eval(env.values(), expr.Budget{})
		if err != nil {
			return "", err
		}
		text, err := segments(value)
		if err != nil {
			return "", fmt.Errorf("%w in the path %s", err, p.source)
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// segments returns a value as segments of a path. A path that lacks one would mean
// something else, such as a whole collection.
func segments(value any) (string, error) {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var out []string
	for _, one := range list {
		text, err := scalar(one)
		switch {
		case err != nil:
			return "", errors.New("a value is not text")
		case text == "":
			return "", errors.New("a value is empty")
		case text == "." || text == "..":
			return "", errors.New("a value has dots only")
		}
		out = append(out, url.PathEscape(text))
	}
	if out == nil {
		return "", errors.New("a list is empty")
	}
	return strings.Join(out, "/"), nil
}

func (p *parser) path(pointer, source string, scope *expr.Scope) Path {
	out := Path{source: source}
	for rest := source; rest != ""; {
		if length := expressionLength(rest); length > 0 {
			program, err := scope.Compile(strings.TrimSpace(rest[len("${{") : length-len("}}")]))
			if err != nil {
				p.invalid(pointer, source, err)
			}
			out.pieces, rest = append(out.pieces, pathPiece{expression: program}), rest[length:]
			continue
		}
		next := strings.Index(rest, "${{")
		if next == 0 {
			p.invalid(pointer, source, errors.New("an expression lacks the }} at its end"))
		}
		if next <= 0 {
			next = len(rest)
		}
		out.pieces, rest = append(out.pieces, pathPiece{text: rest[:next]}), rest[next:]
	}
	if source != "" && !strings.HasPrefix(source, "/") {
		p.failf(pointer, "must start with a slash")
	}
	if strings.ContainsAny(withoutExpressions(source), "?#") {
		p.failf(pointer, "must not have a query or a fragment: use query")
	}
	return out
}
