package expr_test

import (
	"testing"
)

// evalTable checks each expression's result, given as JSON.
func evalTable(t *testing.T, table map[string]string) {
	t.Helper()
	for source, want := range table {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			if got := eval(t, source); got != canonicalJSON(t, want) {
				t.Errorf("%s = %s, want %s", source, got, want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`trigger.type + "/" + trigger.id`:        `"webhook/hook"`,
		`trigger.payload.name`:                   `"Ada"`,
		`trigger.headers['x-github-delivery']`:   `"d-1"`,
		`trigger.query.page`:                     `"2"`,
		`steps.get.output.body.total`:            `120`,
		`steps["get"].status`:                    `"succeeded"`,
		`steps["g" + "et"].output.body.total`:    `120`,
		`steps.bad.error.code`:                   `"timeout"`,
		`steps.get`:                              `{"error":null,"output":{"body":{"total":120}},"status":"succeeded"}`,
		`item.sku + string(index)`:               `"x3"`,
		`run.id`:                                 `"run_1"`,
		`run.started_at`:                         `"2026-11-15T09:30:00.123Z"`,
		`workflow.name + workflow.id`:            `"Big orderwf_1"`,
		`workflow.version`:                       `7`,
		`secrets.token`:                          `"s3cret"`,
		`secrets["token"]`:                       `"s3cret"`,
		`links.ask.page + links["ask"].callback`: `"https://x/phttps://x/c"`,
		`vars.limits.max`:                        `10`,
		`keys(trigger)`:                          `["files","headers","id","payload","query","type"]`,
		`keys(vars)`:                             `["limits","region"]`,
		`let root = trigger; root.payload.name`:  `"Ada"`,
	})
}

// A missing key is nil at any depth.
func TestMissingKeys(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`trigger.payload.no`:                    `null`,
		`trigger.payload.no.such.key[3].x["y"]`: `null`,
		`steps.skip.output.x.y`:                 `null`,
		`steps.never.output.x.y`:                `null`,
		`steps.never`:                           `null`,
		`secrets.missing`:                       `null`,
		`links.missing.page`:                    `null`,
		`vars.missing.x`:                        `null`,
		`trigger.payload.tags[9]`:               `null`,
		`trigger.payload.tags[-9]`:              `null`,
		`trigger.payload.tags["x"]`:             `null`,
		`trigger.payload.tags.length`:           `null`,
		`trigger.payload.name.x`:                `null`,
		`trigger.payload.id.x.y`:                `null`,
		`trigger.payload.name[0]`:               `null`,
		`(nil).x`:                               `null`,
		`trigger.payload.none?.x`:               `null`,
		`trigger.payload.deep?.a?.b`:            `1`,
		`trigger.payload.no.x ?? "default"`:     `"default"`,
		`trigger.payload.ok ?? false`:           `true`,
		`false ?? true`:                         `false`,
		`trigger.payload.no[1:2]`:               `null`,
		`trigger.payload[nil]`:                  `null`,
		`filter(trigger.payload.no, # > 1)`:     `[]`,
		`len(steps.skip.output.items)`:          `0`,
	})
}

func TestIndexes(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`trigger.payload.tags[1]`:     `"b"`,
		`trigger.payload.tags[-1]`:    `"c"`,
		`trigger.payload.tags[4 / 2]`: `"c"`,
		`trigger.payload.tags[1:]`:    `["b","c"]`,
		`trigger.payload.tags[:-1]`:   `["a","b"]`,
		`trigger.payload.tags[5:1]`:   `[]`,
		`"größe"[1:3]`:                `"rö"`,
		`"größe"[-2:]`:                `"ße"`,
		`"abc"[:99]`:                  `"abc"`,
		`{"1": "a"}[1]`:               `"a"`,
		`{"true": "a"}[true]`:         `"a"`,
	})
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`1 + 2 * 3`:                              `7`,
		`7 / 2`:                                  `3.5`,
		`6 / 2`:                                  `3`,
		`7 % 3`:                                  `1`,
		`7.0 % 3`:                                `1`,
		`-7 % -1`:                                `0`,
		`2 ** 10`:                                `1024`,
		`2 ^ 3`:                                  `8`,
		`-trigger.payload.id`:                    `-42`,
		`+3`:                                     `3`,
		`1 == 1.0`:                               `true`,
		`1 < 1.5 && 2.5 > 2`:                     `true`,
		`9007199254740993 == 9007199254740992.0`: `false`,
		`9223372036854775807 + 1`:                `9223372036854775807e0`,
		`9223372036854775807 * 2`:                `18446744073709552000`,
		`-9223372036854775807 - 2`:               `-9223372036854775808e0`,
		`0x10 + 0b11 + 1_000`:                    `1019`,
		`1..4`:                                   `[1,2,3,4]`,
		`3..1`:                                   `[]`,
		`9223372036854775806..9223372036854775807`: `[9223372036854775806,9223372036854775807]`,
		`1 < 2 < 3`: `true`,
	})
}

func TestOperators(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`"a" + "b"`:                              `"ab"`,
		`"a" < "b"`:                              `true`,
		`"abc" contains "bc"`:                    `true`,
		`"abc" not contains "bc"`:                `false`,
		`"abc" startsWith "ab"`:                  `true`,
		`"abc" endsWith "bc"`:                    `true`,
		`"abc" matches "^a.c$"`:                  `true`,
		`"abc" matches ("^a" + ".c$")`:           `true`,
		`nil contains "a"`:                       `false`,
		`trigger.payload.no matches "a"`:         `false`,
		`"a" in trigger.payload.tags`:            `true`,
		`"a" not in trigger.payload.tags`:        `false`,
		`"name" in trigger.payload`:              `true`,
		`1.0 in [1, 2]`:                          `true`,
		`1 in nil`:                               `false`,
		`nil in {"": 1}`:                         `false`,
		`[1, {"a": [2]}] == [1.0, {"a": [2]}]`:   `true`,
		`{"a": 1} == {"a": 1, "b": nil}`:         `false`,
		`"1" == 1`:                               `false`,
		`nil == trigger.payload.no`:              `true`,
		`nil == false`:                           `false`,
		`!trigger.payload.no`:                    `true`,
		`not true || true and false`:             `false`,
		`trigger.payload.no && 1 / 0 > 1`:        `false`,
		`trigger.payload.ok or 1 / 0 > 1`:        `true`,
		`trigger.payload.id > 41 ? "big" : 0`:    `"big"`,
		`if trigger.payload.no { 1 } else { 2 }`: `2`,
		`let a = 2; let b = a * 3; a + b`:        `8`,
		`1; 2`:                                   `2`,
		"`raw \\n` + 'x'":                        `"raw \\nx"`,
		`"a" /* note */ + "b" // note`:           `"ab"`,
	})
}

func TestLoops(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`{a: 1, "b": [true, nil], (1 + 1): 2}`:                       `{"2":2,"a":1,"b":[true,null]}`,
		`map(trigger.payload.lines, {id: .sku, n: #index})`:          `[{"id":"x","n":0},{"id":"y","n":1}]`,
		`trigger.payload.lines | map({id: .sku}) | first() | keys()`: `["id"]`,
		`map([1], {})`:                                            `[{}]`,
		`map([1], {let x = # + 1; x * 2})`:                        `[4]`,
		`map(1..2, map(1..2, #))`:                                 `[[1,2],[1,2]]`,
		`map(1..2, let outer = #; map(1..2, outer * 10 + #))`:     `[[11,12],[21,22]]`,
		`filter(map(1..4, # * 2), # > 4)`:                         `[6,8]`,
		`reduce(["a", "b"], #acc + #)`:                            `"ab"`,
		`sum(trigger.payload.lines, .qty)`:                        `5`,
		`sum([0.5, 1])`:                                           `1.5`,
		`count([true, false, nil])`:                               `1`,
		`groupBy([1, 2, 1], #)[1]`:                                `[1,1]`,
		`sortBy([{"k": nil}, {"k": 2}, {"k": 1}], .k, "desc")`:    `[{"k":2},{"k":1},{"k":null}]`,
		`map(sortBy([[1, "b"], [0, "a"], [1, "a"]], #[0]), #[1])`: `["a","b","a"]`,
		`uniq([1, 1.0, "1", [1], [1.0], nil, nil])`:               `[1,"1",[1],null]`,
	})
}

func TestTimes(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`date("2026-11-15") == date("2026-11-15T00:00:00Z")`: `true`,
		`now() > "2026-01-01"`:                               `true`,
		`date("2026-11-16") - date("2026-11-15")`:            `86400`,
		`[now()]`:              `["2026-11-15T09:30:00.000Z"]`,
		`{"at": {"t": now()}}`: `{"at":{"t":"2026-11-15T09:30:00.000Z"}}`,
		`string(date(0.5))`:    `"1970-01-01T00:00:00.500Z"`,
		`now().Year`:           `null`,
		`type(now())`:          `"time"`,
		`date(run.started_at) < addDuration(now(), "1h30.5s")`: `true`,
	})
}

func TestRuntimeErrors(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`1 / 0`:                           "division by zero",
		`1 % 0`:                           "division by zero",
		`0.0 / 0.0`:                       "division by zero",
		`1e308 * 10`:                      "the result is not a finite number",
		`(-8) ** 0.5`:                     "the result is not a finite number",
		`float("NaN")`:                    "the result is not a finite number",
		`float("Inf")`:                    "the result is not a finite number",
		`float("1e999")`:                  "the string is not a number",
		`1.5 % 2`:                         "cannot use % on float and int",
		`trigger.payload.no > 1`:          "cannot use > on nil and int; use ?? to give a default",
		`"1" > 1`:                         "cannot use > on string and int",
		`"n" + 1`:                         "cannot use + on string and int; use string() to join text",
		`-"a"`:                            "cannot use - on int and string",
		`!"a"`:                            "expected true or false, got string",
		`"a" && true`:                     "expected true or false, got string",
		`1 ? 2 : 3`:                       "expected true or false, got int",
		`filter([1], "x")`:                "expected true or false, got string",
		`map("abc", #)`:                   "expected an array, got string",
		`upper(nil)`:                      "argument 1 of upper must be a string, got nil; use ?? to give a default",
		`"a" in "abc"`:                    "in needs an array or a map; for text use contains",
		`"a" matches 1`:                   "cannot use matches on string and int",
		`"a" matches ("(" + "a")`:         "the pattern is not a regular expression: missing closing )",
		`sort([1, "a"])`:                  "cannot sort string and int together",
		`sort([1], "up")`:                 `the order must be "asc" or "desc"`,
		`reduce([], #acc)`:                "reduce of an empty array needs a start value",
		`{([1]): 1}`:                      "array cannot be a key",
		`int("4x")`:                       "the string is not a whole number that fits",
		`int("99999999999999999999999")`:  "the string is not a whole number that fits",
		`int(1e300)`:                      "the number is too large for int",
		`fromJSON("{")`:                   "the text is not valid JSON",
		`fromBase64("_-8")`:               "the decoded bytes are not UTF-8 text",
		`fromBase64("a")`:                 "the string is not base64",
		`fromBase64("/w==")`:              "the decoded bytes are not UTF-8 text",
		`date("yesterday")`:               "argument 1 of date is not a valid date or time",
		`addDuration(now(), "9999999w")`:  `argument 2 of addDuration is not a duration such as "3d" or "1h30m"`,
		`addDuration("9999-12-31", "3d")`: "the time is outside of the years 0 to 9999",
		`round(1, 99)`:                    "argument 2 of round must be from 0 to 15",
		`(true)[1:2]`:                     "cannot slice bool",
		`[1]["a":]`:                       "the end of a slice must be a whole number, got string",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			e := mustFail(t, source)
			if e.Code != "expression_failed" || e.Message != want {
				t.Errorf("%s: %s %q, want %q", source, e.Code, e.Message, want)
			}
		})
	}
}
