package expr

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// wrapMaps puts parentheses around maps that are arguments. The parser reads a
// brace at the start of the body of map or filter as a block, so that map(list,
// {id: .id}) would need them. wrapMaps returns their positions, in characters of
// the new text, so that positions in it can be mapped back.
func wrapMaps(source string) (string, []int) {
	if !strings.Contains(source, "{") {
		return source, nil
	}
	tokens, err := lexer.Lex(file.NewSource(source))
	if err != nil {
		return source, nil // the parser will say what is wrong
	}
	places := mapPlaces(tokens)
	if len(places) == 0 {
		return source, nil
	}
	chars := []rune(source)
	var text []rune
	var inserted []int
	from := 0
	for _, p := range places {
		text = append(append(text, chars[from:p.at]...), p.bracket)
		inserted = append(inserted, len(text)-1)
		from = p.at
	}
	return string(append(text, chars[from:]...)), inserted
}

type place struct {
	at      int // characters
	bracket rune
}

// mapPlaces finds the maps that are arguments. Unlike a block, they begin with a
// key and a colon, or are empty.
func mapPlaces(tokens []lexer.Token) []place {
	var places []place
	var open []bool // for each bracket that is open, whether it is such a map
	for i, t := range tokens {
		switch {
		case t.Kind != lexer.Bracket:
		case t.Value == "(" || t.Value == "[" || t.Value == "{":
			isMap := t.Value == "{" && isArgument(tokens[:i]) && isMapStart(tokens[i+1:])
			if isMap {
				places = append(places, place{at: t.From, bracket: '('})
			}
			open = append(open, isMap)
		case len(open) > 0:
			if open[len(open)-1] {
				places = append(places, place{at: t.To, bracket: ')'})
			}
			open = open[:len(open)-1]
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return a.at - b.at })
	return places
}

func isArgument(before []lexer.Token) bool {
	if len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	return last.Is(lexer.Operator, ",") || last.Is(lexer.Bracket, "(")
}

func isMapStart(after []lexer.Token) bool {
	if len(after) == 0 {
		return false
	}
	if after[0].Is(lexer.Bracket, "}") {
		return true
	}
	isKey := after[0].Is(lexer.Identifier) || after[0].Is(lexer.String) || after[0].Is(lexer.Number)
	return isKey && len(after) > 1 && after[1].Is(lexer.Operator, ":")
}

// original maps a position in the text with insertions to the original text.
func original(inserted []int, at int) int {
	n := 0
	for _, i := range inserted {
		if i < at {
			n++
		}
	}
	return at - n
}
