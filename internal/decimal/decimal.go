// Package decimal owns exact decimal numbers: their canonical text, their sum, and
// a text form that sorts like the numbers. Tables and keys keep numbers this way, so
// that no digit is lost and two databases order them alike.
package decimal

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// The bounds of a number: how many digits it has without leading and trailing
// zeros, and the power of ten of its first digit.
const (
	MaxDigits   = 64
	MaxExponent = 400
)

// Decimal is the number 0.DIGITS × 10^exp, negated if neg is set. The digits have
// neither leading nor trailing zeros; zero has none. The zero value is zero.
type Decimal struct {
	neg    bool
	digits string
	exp    int
}

var (
	errSyntax   = errors.New("is not a number")
	errDigits   = fmt.Errorf("has more than %d significant digits", MaxDigits)
	errExponent = fmt.Errorf("is beyond 10 to the power of %d", MaxExponent)
)

// Parse parses a number as JSON writes it.
func Parse(text string) (Decimal, error) {
	rest, neg := strings.CutPrefix(text, "-")
	mantissa, exponent := rest, 0
	if at := strings.IndexAny(rest, "eE"); at >= 0 {
		mantissa = rest[:at]
		n, err := strconv.Atoi(rest[at+1:])
		switch {
		case errors.Is(err, strconv.ErrRange):
			n = 1 << 30 // rejected below, unless the number is zero
		case err != nil:
			return Decimal{}, errSyntax
		}
		exponent = n
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	if !isDigits(whole) || len(whole) > 1 && whole[0] == '0' || point && !isDigits(fraction) {
		return Decimal{}, errSyntax
	}
	return normalize(neg, whole+fraction, exponent+len(whole))
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// normalize returns 0.digits × 10^exp within the bounds.
func normalize(neg bool, digits string, exp int) (Decimal, error) {
	short := strings.TrimLeft(digits, "0")
	exp -= len(digits) - len(short)
	short = strings.TrimRight(short, "0")
	switch {
	case short == "":
		return Decimal{}, nil
	case len(short) > MaxDigits:
		return Decimal{}, errDigits
	case exp > MaxExponent || exp < -MaxExponent:
		return Decimal{}, errExponent
	}
	return Decimal{neg: neg, digits: short, exp: exp}, nil
}

// IsInteger reports whether d is a whole number.
func (d Decimal) IsInteger() bool { return len(d.digits) <= d.exp || d.digits == "" }

// maxPlain is how many digits a number may need to be written without an exponent.
const maxPlain = 21

// String returns the canonical text: equal numbers have the same one.
func (d Decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	sign := ""
	if d.neg {
		sign = "-"
	}
	n := len(d.digits)
	switch {
	case n <= d.exp && d.exp <= maxPlain:
		return sign + d.digits + strings.Repeat("0", d.exp-n)
	case 0 < d.exp && d.exp < n:
		return sign + d.digits[:d.exp] + "." + d.digits[d.exp:]
	case -6 < d.exp && d.exp <= 0:
		return sign + "0." + strings.Repeat("0", -d.exp) + d.digits
	}
	text := sign + d.digits[:1]
	if n > 1 {
		text += "." + d.digits[1:]
	}
	return text + fmt.Sprintf("e%+d", d.exp-1)
}

// Sortable returns a text that compares bytewise like the numbers compare: a sign,
// the exponent and the digits. A negative number has the complement of both, and a
// terminator that sorts after every digit.
func (d Decimal) Sortable() string {
	if d.digits == "" {
		return "1"
	}
	text := fmt.Sprintf("%03d", d.exp+MaxExponent) + d.digits
	if !d.neg {
		return "2" + text
	}
	return "0" + strings.Map(func(r rune) rune { return '9' - r + '0' }, text) + "~"
}

// Add returns the exact sum.
func (d Decimal) Add(o Decimal) (Decimal, error) {
	scale := max(d.scale(), o.scale())
	sum := new(big.Int).Add(d.scaled(scale), o.scaled(scale))
	digits := new(big.Int).Abs(sum).String()
	return normalize(sum.Sign() < 0, digits, len(digits)-scale)
}

// scale returns the number of digits after the decimal point; it is negative for a
// whole number with trailing zeros.
func (d Decimal) scale() int { return len(d.digits) - d.exp }

func (d Decimal) scaled(scale int) *big.Int {
	n := new(big.Int)
	if d.digits == "" {
		return n
	}
	n.SetString(d.digits+strings.Repeat("0", scale-d.scale()), 10)
	if d.neg {
		n.Neg(n)
	}
	return n
}
