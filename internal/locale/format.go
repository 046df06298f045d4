package locale

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Digits bounds the decimal places of a formatted number. Halves are rounded away
// from zero, and zeros beyond Min are left out.
type Digits struct {
	Min, Max int
	// Ungrouped leaves out the separators of thousands.
	Ungrouped bool
}

// Number formats a decimal number: digits, optionally after a minus sign and with a
// point. A number that is rounded to zero has no minus sign.
func (l *Locale) Number(number string, digits Digits) string {
	negative, whole, fraction := round(number, digits)
	text := l.join(whole, fraction, separators{l.Group, l.Decimal, l.Sizes}, digits)
	if negative {
		text = strings.Replace(l.Negative, "#", text, 1)
	}
	return text
}

// Amount formats an amount of money, a number as for Number. The symbol is that of
// the currency, or its code.
func (l *Locale) Amount(number, symbol string, digits Digits) string {
	negative, whole, fraction := round(number, digits)
	text := l.join(whole, fraction, separators{l.CurrencyGroup, l.CurrencyDecimal, l.CurrencySizes}, digits)
	patterns := l.Currency
	if lettersNextToNumber(l.Currency[0], symbol) {
		patterns = l.CurrencyLetters
	}
	pattern := patterns[0]
	if negative {
		pattern = patterns[1]
	}
	return strings.NewReplacer("#", text, "¤", symbol).Replace(pattern)
}

// Symbol returns the symbol of a currency, or its code if it has none.
func (l *Locale) Symbol(currency string) string {
	if symbol, ok := l.Symbols[currency]; ok {
		return symbol
	}
	return currency
}

// lettersNextToNumber reports whether the symbol would touch the number with
// something else than a sign such as $.
func lettersNextToNumber(pattern, symbol string) bool {
	var r rune
	if strings.Index(pattern, "¤") < strings.Index(pattern, "#") {
		r, _ = utf8.DecodeLastRuneInString(symbol)
	} else {
		r, _ = utf8.DecodeRuneInString(symbol)
	}
	return !unicode.IsSymbol(r) && !unicode.Is(unicode.Z, r)
}

// round returns the digits before and after the point of the rounded number.
func round(number string, digits Digits) (negative bool, whole, fraction string) {
	number, negative = strings.CutPrefix(number, "-")
	whole, fraction, _ = strings.Cut(number, ".")
	if len(fraction) > digits.Max {
		up := fraction[digits.Max] >= '5'
		fraction = fraction[:digits.Max]
		if up {
			sum := increment(whole + fraction)
			point := len(sum) - digits.Max
			whole, fraction = sum[:point], sum[point:]
		}
	}
	for len(fraction) > digits.Min && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	if n := digits.Min - len(fraction); n > 0 {
		fraction += strings.Repeat("0", n)
	}
	if strings.Trim(whole+fraction, "0") == "" {
		negative = false
	}
	return negative, whole, fraction
}

func increment(number string) string {
	out := []byte(number)
	for i := len(out) - 1; i >= 0; i-- {
		if out[i] < '9' {
			out[i]++
			return string(out)
		}
		out[i] = '0'
	}
	return "1" + string(out)
}

type separators struct {
	group, decimal string
	sizes          [2]int
}

// join groups the digits and puts the parts together, with the digits of the locale.
func (l *Locale) join(whole, fraction string, by separators, digits Digits) string {
	var b strings.Builder
	zero, _ := utf8.DecodeRuneInString(l.Zero)
	write := func(digits string) {
		for _, d := range []byte(digits) {
			b.WriteRune(zero + rune(d-'0'))
		}
	}
	last, before := by.sizes[0], by.sizes[1]
	if digits.Ungrouped || len(whole) < last+l.MinGrouping {
		write(whole)
	} else {
		rest := len(whole) - last
		for i := 0; i < rest; {
			n := (rest-i-1)%before + 1
			write(whole[i : i+n])
			b.WriteString(by.group)
			i += n
		}
		write(whole[rest:])
	}
	if fraction != "" {
		b.WriteString(by.decimal)
		write(fraction)
	}
	return b.String()
}
