package expr_test

import "testing"

// The locales themselves are tested in package locale.
func TestFormatNumber(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`formatNumber(0)`:                                                      `"0"`,
		`formatNumber(-0.0)`:                                                   `"0"`,
		`formatNumber(-0.0004)`:                                                `"0"`,
		`formatNumber(1.0005)`:                                                 `"1.001"`,
		`formatNumber(-1.0005)`:                                                `"-1.001"`,
		`formatNumber(0.1 + 0.2)`:                                              `"0.3"`,
		`formatNumber(9007199254740993)`:                                       `"9,007,199,254,740,993"`,
		`formatNumber(1e21)`:                                                   `"1,000,000,000,000,000,000,000"`,
		`formatNumber(1e-7, "en", {"maxDecimals": 20})`:                        `"0.0000001"`,
		`formatNumber(fromJSON("123456789012345678901234567890"))`:             `"123,456,789,012,345,678,901,234,567,890"`,
		`formatNumber(1.005, "en", {"maxDecimals": 2})`:                        `"1.01"`,
		`formatNumber(999.5, "en", {"maxDecimals": 0})`:                        `"1,000"`,
		`formatNumber(1, "en", {"minDecimals": 5})`:                            `"1.00000"`,
		`formatNumber(1234.5, "de_ch", {"grouping": false, "minDecimals": 2})`: `"1234.50"`,
		`formatNumber(1234, "fa")`:                                             `"۱٬۲۳۴"`,
		`formatCurrency(1.005, "eur")`:                                         `"€1.01"`,
		`formatCurrency(1, "KWD", "en")`:                                       "\"KWD\u00a01.000\"",
		`formatCurrency(1, "XYZ", "en")`:                                       "\"XYZ\u00a01.00\"",
		`formatCurrency(-5, "CHF", "de-CH")`:                                   `"CHF-5.00"`,
		`formatCurrency(-0.001, "USD")`:                                        `"$0.00"`,
		`formatCurrency(5.125, "USD", "en", {"maxDecimals": 3})`:               `"$5.125"`,
		`formatCurrency(5, "JPY", "ja", {"minDecimals": 2})`:                   `"￥5.00"`,
	})
	failTable(t, map[string]string{
		`formatNumber("1")`:                                           "argument 1 of formatNumber must be a number, got string",
		`formatNumber(nil)`:                                           "argument 1 of formatNumber must be a number, got nil; use ?? to give a default",
		`formatNumber(1, "xx")`:                                       "argument 2 of formatNumber is not a known locale such as en or de-CH",
		`formatNumber(1, nil)`:                                        "argument 2 of formatNumber must be a string, got nil; use ?? to give a default",
		`formatNumber(1, "en", {"maxDecimals": 21})`:                  "argument 3 of formatNumber: maxDecimals must be a whole number from 0 to 20",
		`formatNumber(1, "en", {"minDecimals": 1.5})`:                 "argument 3 of formatNumber: minDecimals must be a whole number from 0 to 20",
		`formatNumber(1, "en", {"minDecimals": 3, "maxDecimals": 2})`: "argument 3 of formatNumber: minDecimals must not exceed maxDecimals",
		`formatNumber(1, "en", {"decimals": 2})`:                      `argument 3 of formatNumber has an unknown option; use "minDecimals", "maxDecimals" or "grouping"`,
		`formatCurrency(1, "€")`:                                      "argument 2 of formatCurrency is not the code of a currency such as EUR",
		`formatCurrency(1, "EUR", "en", {"display": "name"})`:         `argument 4 of formatCurrency: display must be "symbol" or "code"`,
	})
}
