package expr

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/locale"
)

func formatFunctions() []function {
	return []function{
		fn("formatNumber", "formatNumber(number[, locale[, options]]) string", `The number as people write it in a language and region, such as "en", "de-CH" or "en-IN"; en is the default. Halves are rounded away from zero. The options are minDecimals, 0 by default, maxDecimals, 3 by default, and grouping, which is false to leave out the separators of thousands.`, 1, 3, formatNumber,
			`formatNumber(1234567.891)`, `"1,234,567.891"`,
			`formatNumber(1234567.891, "de-CH", {"maxDecimals": 2})`, `"1'234'567.89"`,
			`formatNumber(-1234567.5, "en-IN", {"minDecimals": 2})`, `"-12,34,567.50"`),
		fn("formatCurrency", "formatCurrency(amount, currency[, locale[, options]]) string", `An amount of money as people write it in a language and region, en by default. The currency is its code, such as "EUR", and determines the number of decimal places, unless the options minDecimals and maxDecimals do. The option display is "symbol", the default, or "code". The option grouping is as for formatNumber. Spaces are non-breaking.`, 2, 4, formatCurrency,
			`formatCurrency(-1234.5, "USD")`, `"-$1,234.50"`,
			`formatCurrency(1234.5, "EUR", "de")`, "\"1.234,50\u00a0€\"",
			`formatCurrency(1234.5, "JPY", "ja")`, `"￥1,235"`,
			`formatCurrency(1234.5, "EUR", "en", {"display": "code", "maxDecimals": 0})`, "\"EUR\u00a01,235\""),
	}
}

const (
	formatSteps = 20 // to find a locale and format a number
	maxDecimals = 20
)

func formatNumber(m *evaluation, a args) (any, error) {
	number, err := a.decimal(m)
	if err != nil {
		return nil, err
	}
	l, err := a.locale(1)
	if err != nil {
		return nil, err
	}
	given, err := a.options(m, 2, "minDecimals", "maxDecimals", "grouping")
	if err != nil {
		return nil, err
	}
	digits, err := given.digits(0, 3)
	if err != nil {
		return nil, err
	}
	return l.Number(number, digits), nil
}

func formatCurrency(m *evaluation, a args) (any, error) {
	number, err := a.decimal(m)
	if err != nil {
		return nil, err
	}
	currency, err := a.text(1)
	if err != nil {
		return nil, err
	}
	if !isCurrency(currency) {
		return nil, failf("argument 2 of formatCurrency is not the code of a currency such as EUR")
	}
	currency = strings.ToUpper(currency)
	l, err := a.locale(2)
	if err != nil {
		return nil, err
	}
	given, err := a.options(m, 3, "display", "minDecimals", "maxDecimals", "grouping")
	if err != nil {
		return nil, err
	}
	usual := locale.Decimals(currency)
	digits, err := given.digits(usual, usual)
	if err != nil {
		return nil, err
	}
	display, err := given.choice("display", "symbol", "code")
	if err != nil {
		return nil, err
	}
	symbol := currency
	if display == "symbol" {
		symbol = l.Symbol(currency)
	}
	return l.Amount(number, symbol, digits), nil
}

// isCurrency reports whether code has three letters. New currencies are valid before
// the data of locales has them.
func isCurrency(code string) bool {
	for _, c := range []byte(code) {
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(code) == 3
}

// decimal returns argument 1, a number, with all its digits. It charges for
// formatting it.
func (a args) decimal(m *evaluation) (string, error) {
	var text string
	switch v := a.values[0].(type) {
	case int:
		text = strconv.Itoa(v)
	case json.Number:
		text = string(v)
	}
	if text == "" || strings.ContainsAny(text, "eE") {
		f, err := a.number()
		if err != nil {
			return "", err
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return "", a.wrong(0, "a finite number")
		}
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	if err := m.growText(maxDecimals + 8*len(text)); err != nil {
		return "", err
	}
	return text, m.spend(formatSteps + len(text)/4)
}

// locale returns the locale that argument i names, by default English.
func (a args) locale(i int) (*locale.Locale, error) {
	tag := "en"
	if a.has(i) {
		var err error
		if tag, err = a.text(i); err != nil {
			return nil, err
		}
	}
	if l := locale.Find(tag); l != nil {
		return l, nil
	}
	return nil, failf("argument %d of %s is not a known locale such as en or de-CH", i+1, a.name)
}

// digits returns the options minDecimals, maxDecimals and grouping. An option that
// contradicts the default of the other one replaces it.
func (o options) digits(lo, hi int) (locale.Digits, error) {
	lowest, hasMin, err := o.decimals("minDecimals")
	if err != nil {
		return locale.Digits{}, err
	}
	highest, hasMax, err := o.decimals("maxDecimals")
	if err != nil {
		return locale.Digits{}, err
	}
	grouping, err := o.flag("grouping", true)
	if err != nil {
		return locale.Digits{}, err
	}
	switch {
	case hasMin && hasMax:
		lo, hi = lowest, highest
	case hasMin:
		lo, hi = lowest, max(hi, lowest)
	case hasMax:
		lo, hi = min(lo, highest), highest
	}
	if lo > hi {
		return locale.Digits{}, failf("%s: minDecimals must not exceed maxDecimals", o.of)
	}
	return locale.Digits{Min: lo, Max: hi, Ungrouped: !grouping}, nil
}

func (o options) decimals(name string) (n int, given bool, err error) {
	if o.values[name] == nil {
		return 0, false, nil
	}
	n, ok := whole(o.values[name])
	if !ok || n < 0 || n > maxDecimals {
		return 0, false, failf("%s: %s must be a whole number from 0 to %d", o.of, name, maxDecimals)
	}
	return n, true, nil
}
