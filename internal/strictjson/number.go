package strictjson

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
)

// exactDigits is how many digits before the decimal point, without an
// exponent, certainly survive in a float64.
const exactDigits = 15

// settle replaces the numbers that encoding/json put into values of type any
// by int or float64. v can be set, and p.hasAny is true.
func settle(v reflect.Value, p *plan) {
	switch p.kind {
	case kindAny:
		if !v.IsNil() {
			v.Set(reflect.ValueOf(native(v.Interface())))
		}
	case kindPointer:
		if !v.IsNil() {
			settle(v.Elem(), p.elem)
		}
	case kindSlice:
		for i := range v.Len() {
			settle(v.Index(i), p.elem)
		}
	case kindMap:
		settleMap(v, p)
	case kindStruct:
		for _, f := range p.fields {
			if !f.plan.hasAny {
				continue
			}
			// The error is about an embedded pointer that stayed nil.
			if fv, err := v.FieldByIndexErr(f.index); err == nil {
				settle(fv, f.plan)
			}
		}
	}
}

func settleMap(v reflect.Value, p *plan) {
	if m, ok := reflect.TypeAssert[map[string]any](v); ok {
		native(m)
		return
	}
	// Map values cannot be changed in place.
	for iter := v.MapRange(); iter.Next(); {
		value := reflect.New(p.elem.typ).Elem()
		value.Set(iter.Value())
		settle(value, p.elem)
		v.SetMapIndex(iter.Key(), value)
	}
}

// native returns v with its numbers as int or float64. It changes maps and
// slices in place. The scan has limited their depth.
func native(v any) any {
	switch v := v.(type) {
	case float64:
		return fromFloat(v)
	case json.Number:
		return fromDigits(string(v))
	case []any:
		for i, e := range v {
			v[i] = native(e)
		}
	case map[string]any:
		for k, e := range v {
			switch e.(type) {
			case nil, string, bool:
			default:
				v[k] = native(e)
			}
		}
	}
	return v
}

// fromFloat returns f as an integer if it is one that fits.
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

// fromDigits reads a number without rounding it on the way to an integer.
func fromDigits(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return fromInt(n)
	}
	f, _ := strconv.ParseFloat(text, 64) // the scan has refused what is out of range
	// Up to 2^53 floats are exact. In the rest of the range of int64 the
	// exponent is small enough for exact arithmetic, whatever was written.
	if a := math.Abs(f); a >= 1<<53 && a <= 1<<63 {
		if r, ok := new(big.Rat).SetString(text); ok && r.IsInt() && r.Num().IsInt64() {
			return fromInt(r.Num().Int64())
		}
	}
	return fromFloat(f)
}
