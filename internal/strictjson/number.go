package strictjson

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
)

// exactDigits is the number of integer digits, without an exponent, that a
// float64 always represents exactly.
const exactDigits = 15

// convertNumbers converts the numbers that encoding/json decoded into values of
// type any to int or float64. v must be settable, and p.hasAny true.
func convertNumbers(v reflect.Value, p *typeInfo) {
	switch p.kind {
	case kindAny:
		if !v.IsNil() {
			v.Set(reflect.ValueOf(convertNumber(v.Interface())))
		}
	case kindPointer:
		if !v.IsNil() {
			convertNumbers(v.Elem(), p.elem)
		}
	case kindSlice:
		for i := range v.Len() {
			convertNumbers(v.Index(i), p.elem)
		}
	case kindMap:
		convertMapNumbers(v, p)
	case kindStruct:
		for _, f := range p.fields {
			if !f.info.hasAny {
				continue
			}
			// An error means that an embedded pointer is nil.
			if fv, err := v.FieldByIndexErr(f.index); err == nil {
				convertNumbers(fv, f.info)
			}
		}
	}
}

func convertMapNumbers(v reflect.Value, p *typeInfo) {
	if m, ok := reflect.TypeAssert[map[string]any](v); ok {
		convertNumber(m)
		return
	}
	// Map values cannot be changed in place.
	for iter := v.MapRange(); iter.Next(); {
		value := reflect.New(p.elem.typ).Elem()
		value.Set(iter.Value())
		convertNumbers(value, p.elem)
		v.SetMapIndex(iter.Key(), value)
	}
}

// convertNumber returns v with its numbers as int or float64. It changes maps and
// slices in place. The scan has bounded their depth.
func convertNumber(v any) any {
	switch v := v.(type) {
	case float64:
		return fromFloat(v)
	case json.Number:
		return fromDigits(string(v))
	case []any:
		for i, e := range v {
			v[i] = convertNumber(e)
		}
	case map[string]any:
		for k, e := range v {
			switch e.(type) {
			case nil, string, bool:
			default:
				v[k] = convertNumber(e)
			}
		}
	}
	return v
}

// fromFloat returns f as an int if it is an integer that fits.
func fromFloat(f float64) any {
	// -2^63 is the smallest int64, 2^63 the first value above the largest.
	if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
		return fromInt(int64(f))
	}
	return f
}

func fromInt(n int64) any {
	if int64(int(n)) != n {
		return n // an int has 32 bits here
	}
	return int(n)
}

// fromDigits parses a number. It does not round integers.
func fromDigits(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return fromInt(n)
	}
	f, _ := strconv.ParseFloat(text, 64) // the scan rejects numbers out of range
	// Up to 2^53 floats are exact. In the rest of the range of int64 the exponent
	// is small enough for exact arithmetic, in any notation.
	if a := math.Abs(f); a >= 1<<53 && a <= 1<<63 {
		if r, ok := new(big.Rat).SetString(text); ok && r.IsInt() && r.Num().IsInt64() {
			return fromInt(r.Num().Int64())
		}
	}
	return fromFloat(f)
}
