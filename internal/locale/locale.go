// Package locale formats numbers and amounts of money as readers of a language and
// region expect them. It owns the data for that, which generate.mjs takes from the
// Unicode CLDR, and the rules that apply it. It does not choose a locale.
package locale

import (
	_ "embed"
	"encoding/json"
	"maps"
	"strings"
	"sync"
)

//go:embed locales.json
var source []byte

type tables struct {
	// Decimals has the decimal places of currencies that do not have two.
	Decimals map[string]int `json:"decimals"`
	// Locales has complete data for languages, and for other locales what differs
	// from the locale without its last part.
	Locales map[string]json.RawMessage `json:"locales"`
}

// Locale has the conventions of one language, and region or script.
type Locale struct {
	Decimal     string `json:"decimal"`
	Group       string `json:"group"`
	Sizes       [2]int `json:"sizes"`        // digits of the last group, and of those before
	MinGrouping int    `json:"min_grouping"` // digits before the last group, for groups at all
	Zero        string `json:"zero"`
	Negative    string `json:"negative"` // a pattern: # is the number

	CurrencyDecimal string `json:"currency_decimal"`
	CurrencyGroup   string `json:"currency_group"`
	CurrencySizes   [2]int `json:"currency_sizes"`
	// Currency has the patterns of positive and negative amounts: ¤ is the symbol.
	// CurrencyLetters has those for a symbol with a letter next to the number.
	Currency        [2]string         `json:"currency"`
	CurrencyLetters [2]string         `json:"currency_letters"`
	Symbols         map[string]string `json:"symbols"` // by currency; others have their code
}

// data parses the tables once. They are never changed.
var data = sync.OnceValue(func() tables {
	var t tables
	if err := json.Unmarshal(source, &t); err != nil {
		panic("locale: " + err.Error())
	}
	return t
})

// loaded caches the locales that were used, by their name in the tables.
var loaded sync.Map

const maxTag = 35 // bytes of a tag, as RFC 5646 recommends

// Find returns the locale for a tag such as "de-CH", or for the tag without its
// last parts. It returns nil if the language is not known.
func Find(tag string) *Locale {
	if len(tag) > maxTag {
		return nil
	}
	name := canonical(tag)
	for {
		if _, ok := data().Locales[name]; ok {
			return load(name)
		}
		i := strings.LastIndexByte(name, '-')
		if i < 0 {
			return nil
		}
		name = name[:i]
	}
}

// canonical returns a tag in the usual case: zh-Hant-TW.
func canonical(tag string) string {
	parts := strings.Split(strings.ToLower(strings.ReplaceAll(tag, "_", "-")), "-")
	for i, part := range parts[1:] {
		switch len(part) {
		case 2:
			parts[i+1] = strings.ToUpper(part)
		case 4:
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "-")
}

func load(name string) *Locale {
	if l, ok := loaded.Load(name); ok {
		return l.(*Locale)
	}
	l := &Locale{}
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		*l = *Find(name[:i])
		l.Symbols = maps.Clone(l.Symbols)
	}
	if err := json.Unmarshal(data().Locales[name], l); err != nil {
		panic("locale: " + err.Error())
	}
	loaded.Store(name, l)
	return l
}

// Decimals returns the usual number of decimal places of a currency.
func Decimals(currency string) int {
	if n, ok := data().Decimals[currency]; ok {
		return n
	}
	return 2
}
