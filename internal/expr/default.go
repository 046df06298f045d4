package expr

import (
	"slices"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
	operators "github.com/expr-lang/expr/parser/operator"
)

// separators are the operators whose operands are read one by one, so that a ?? among
// them is clear.
var separators = []string{",", ";", ":", "?", "|", "="}

// UnclearDefault returns the operator before an operand that is a ?? without parentheses,
// or "". In a == b ?? c that is ==: the expression means a == (b ?? c), but in most
// languages ?? applies to everything before it. After a ??, other operators are errors.
func UnclearDefault(source string) string {
	l := lexer.New()
	l.Reset(file.NewSource(source))
	before := []string{""} // the last operator on each level of brackets
	for {
		token, err := l.Next()
		if err != nil || token.Kind == lexer.EOF {
			return ""
		}
		last := len(before) - 1
		_, isBinary := operators.Binary[token.Value]
		switch {
		case token.Is(lexer.Bracket, "(", "[", "{"):
			before = append(before, "")
		case token.Kind == lexer.Bracket && last > 0:
			before = before[:last]
		case token.Kind != lexer.Operator:
		case slices.Contains(separators, token.Value):
			before[last] = ""
		case token.Value == "??" && before[last] != "":
			return before[last]
		case token.Value != "??" && isBinary, token.Value == "not", token.Value == "!":
			before[last] = token.Value
		}
	}
}
