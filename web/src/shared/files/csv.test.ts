import { expect, test } from "vitest";
import { parseCsv, separatorOf } from "./csv";

test.each([
	[
		"a,b\n1,2\n",
		[
			["a", "b"],
			["1", "2"],
		],
	],
	[
		"\uFEFFa,b\r\n1,\r\n",
		[
			["a", "b"],
			["1", ""],
		],
	],
	[
		'a,b\n"x, ""y""\nz",2',
		[
			["a", "b"],
			['x, "y"\nz', "2"],
		],
	],
	["a\n\nb", [["a"], ["b"]]],
	[
		"a,b\n1,",
		[
			["a", "b"],
			["1", ""],
		],
	],
	["", []],
])("%j has the fields %j", (text, lines) => {
	expect(parseCsv(text, 10)).toEqual(lines);
});

test("shows a line that cannot be read as it is", () => {
	expect(parseCsv('a,b\n1,x"y\n2,3', 10)).toEqual([
		["a", "b"],
		["1", 'x"y'],
		["2", "3"],
	]);
	expect(parseCsv('a,b\n"1,2', 10)).toEqual([["a", "b"], ["1,2"]]);
});

test("stops after as many lines as are shown", () => {
	expect(parseCsv("a\n1\n2\n3\n4\n", 3)).toEqual([["a"], ["1"], ["2"]]);
});

test.each([
	["a,b;c\n1;2;3", ","],
	["a;b;c\n1,2,3", ";"],
	["a\tb\n", "\t"],
	["a|b|c", "|"],
	['"x;y;z",b\n', ","],
	["only", ","],
	["", ","],
])("the separator of %j is %j", (text, want) => {
	expect(separatorOf(text)).toBe(want);
});

test.each([
	[
		'a;b\n"x;y";1,5',
		";",
		[
			["a", "b"],
			["x;y", "1,5"],
		],
	],
	["a\tb\t\n", "\t", [["a", "b", ""]]],
	['a|"b|c"', "|", [["a", "b|c"]]],
	["=1+1,@SUM(A1)", ",", [["=1+1", "@SUM(A1)"]]],
] as const)("%j is separated by %j", (text, separator, want) => {
	expect(parseCsv(text, 10, separator)).toEqual(want);
});
