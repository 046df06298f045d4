// Package search parses search queries, matches text against them and ranks the
// matches. It does not know what is searched or where it is stored, so results
// are the same on every database.
package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/stepmill/stepmill/internal/uid"
)

// The limits of a query. A name of any length a workflow can have is a valid
// query, so that everything can be found by its exact name.
const (
	MaxLength = 200 // characters
	MaxWords  = 50  // distinct
)

// Rank is how well an entry matches a query. Lower is better.
type Rank int

// The ranks, from best to none.
const (
	// Exact means that the name or the id equals the query.
	Exact Rank = iota
	// NamePrefix means that the name or the id begins with it.
	NamePrefix
	// WordPrefix means that each word begins a word of the name.
	WordPrefix
	// InName means that each word occurs in the name.
	InName
	// Elsewhere means that each word occurs in the name or in the other texts.
	Elsewhere
	// None means that a word is missing.
	None
)

// Entry is an item to search.
type Entry struct {
	// ID has a prefix that ends in an underscore. A query matches the id from its
	// beginning, prefix included. Empty for things that have no such id.
	ID   string
	Name string
	// Text has further texts of the entry, such as its description.
	Text []string
}

// Query is a parsed search query. The zero Query matches everything.
type Query struct {
	phrase string   // all words, folded and one space apart
	words  []string // each folded word once
}

// Parse parses a query. The error message is meant for the user and does not
// name the parameter.
func Parse(text string) (Query, error) {
	if utf8.RuneCountInString(text) > MaxLength {
		return Query{}, fmt.Errorf("must have at most %d characters", MaxLength)
	}
	words := strings.Fields(fold(text))
	q := Query{phrase: strings.Join(words, " ")}
	for _, word := range words {
		if !slices.Contains(q.words, word) {
			q.words = append(q.words, word)
		}
	}
	switch {
	case len(q.words) == 0:
		return Query{}, errors.New("must contain at least one word to search for")
	case len(q.words) > MaxWords:
		return Query{}, fmt.Errorf("must have at most %d words", MaxWords)
	}
	return q, nil
}

// IsZero reports whether the query is the zero Query.
func (q Query) IsZero() bool { return q.phrase == "" }

// IDPrefix returns the query as a prefix of an identifier of the kind, including
// the kind itself. It reports false if the query is not such a prefix.
func (q Query) IDPrefix(kind uid.Kind) (string, bool) {
	if !uid.IsPrefix(kind, q.phrase) {
		return "", false
	}
	return q.phrase, true
}

// Matches reports whether every word occurs in the entry.
func (q Query) Matches(e Entry) bool { return q.IsZero() || q.Rank(e) != None }

// Rank returns how well the entry matches.
func (q Query) Rank(e Entry) Rank {
	name := strings.Join(strings.Fields(fold(e.Name)), " ")
	id := q.matchesID(e.ID)
	switch {
	case q.phrase == name, id && q.phrase == e.ID:
		return Exact
	case id, strings.HasPrefix(name, q.phrase):
		return NamePrefix
	}
	rank := WordPrefix
	var missing []string
	for _, word := range q.words {
		switch {
		case beginsWord(name, word):
		case strings.Contains(name, word):
			rank = max(rank, InName)
		default:
			missing = append(missing, word)
		}
	}
	if len(missing) == 0 {
		return rank
	}
	return rankElsewhere(missing, e.Text)
}

func (q Query) matchesID(id string) bool {
	prefix := strings.IndexByte(id, '_')
	return prefix > 0 && len(q.phrase) > prefix && strings.HasPrefix(id, q.phrase)
}

// rankElsewhere searches the texts for the words that the name does not contain.
func rankElsewhere(words, texts []string) Rank {
	folded := make([]string, len(texts))
	for i, text := range texts {
		folded[i] = fold(text)
	}
	for _, word := range words {
		if !slices.ContainsFunc(folded, func(text string) bool { return strings.Contains(text, word) }) {
			return None
		}
	}
	return Elsewhere
}

func beginsWord(text, word string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return false
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if at == 0 || !inWord(before) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// fold normalizes text so that comparison ignores case, Unicode composition and
// compatibility forms.
func fold(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text)))
		}
	}
	return strings.ToLower(text)
}
