// Writes locales.json, from the Unicode CLDR data in Node.js, and the test cases in
// testdata/intl.json, which are results of Intl.NumberFormat. Run it with
// `node internal/locale/generate.mjs` to take over newer data.
import { writeFileSync } from "node:fs";

const alphabet = [..."abcdefghijklmnopqrstuvwxyz"];
const pairs = alphabet.flatMap((a) => alphabet.map((b) => a + b));
const currencies = Intl.supportedValuesOf("currency");

function isAvailable(locale) {
	return new Intl.NumberFormat(locale).resolvedOptions().locale === locale;
}

/** The languages with a code of two letters, and their scripts and regions. */
function availableLocales() {
	const languages = [...pairs, "fil"].filter(isAvailable);
	const scripts = ["Arab", "Cyrl", "Deva", "Guru", "Hans", "Hant", "Latn"];
	const written = languages.flatMap((language) => scripts.map((script) => `${language}-${script}`)).filter(isAvailable);
	const regions = [...pairs.map((pair) => pair.toUpperCase()), "419"];
	const regional = [...languages, ...written].flatMap((base) => regions.map((region) => `${base}-${region}`));
	return [...languages, ...written, ...regional.filter(isAvailable)];
}

const numeric = ["integer", "group", "decimal", "fraction"];

/** The pattern of a formatted number: # is the number and ¤ the currency. */
function patternOf(parts) {
	const text = parts.map((part) => (numeric.includes(part.type) ? "#" : part.type === "currency" ? "¤" : part.value));
	return text.join("").replace(/#+/, "#");
}

function partOf(parts, type) {
	return parts.find((part) => part.type === type)?.value;
}

function currencyFormat(locale, currency, currencyDisplay) {
	return new Intl.NumberFormat(locale, { style: "currency", currency, currencyDisplay });
}

/** The number of digits in the last group, and in those before. */
function sizesOf(parts) {
	const sizes = parts.filter((part) => part.type === "integer").map((part) => [...part.value].length);
	return [sizes.at(-1), sizes.at(-2)];
}

/**
 * The symbol of a currency with its marks of direction, which are not in its part:
 * the text without the rest of the pattern.
 */
function symbolOf(locale, code, patterns) {
	const parts = currencyFormat(locale, code).formatToParts(1);
	const text = parts.map((part) => part.value).join("");
	const number = parts.filter((part) => numeric.includes(part.type)).map((part) => part.value);
	const candidates = patterns.flatMap((pattern) => {
		const [prefix, suffix] = pattern.replace("#", number.join("")).split("¤");
		return text.startsWith(prefix) && text.endsWith(suffix)
			? [text.slice(prefix.length, text.length - suffix.length)]
			: [];
	});
	// Europe's English locales write the euro with a pattern of its own.
	return candidates.sort((a, b) => a.length - b.length)[0] ?? partOf(parts, "currency");
}

function dataOf(locale) {
	const plain = new Intl.NumberFormat(locale);
	const long = plain.formatToParts(12345678901234.5);
	const money = ["symbol", "narrowSymbol"]
		.flatMap((display) => ["GBP", "INR", "USD", "EUR"].map((code) => currencyFormat(locale, code, display)))
		.find((format) => /^\p{Sc}$/u.test(partOf(format.formatToParts(1), "currency")));
	const letters = currencyFormat(locale, "GBP", "code");
	const longMoney = money.formatToParts(12345678901234.5);
	const currency = [patternOf(money.formatToParts(1)), patternOf(money.formatToParts(-1))];
	const currencyLetters = [patternOf(letters.formatToParts(1)), patternOf(letters.formatToParts(-1))];
	const symbols = currencies.map((code) => [code, symbolOf(locale, code, [currency[0], currencyLetters[0]])]);
	return {
		decimal: partOf(long, "decimal"),
		group: partOf(long, "group"),
		sizes: sizesOf(long),
		min_grouping: [1234, 12345, 123456].findIndex((n) => partOf(plain.formatToParts(n), "group")) + 1,
		zero: plain.format(0),
		negative: patternOf(plain.formatToParts(-1)),
		currency_decimal: partOf(longMoney, "decimal"),
		currency_group: partOf(longMoney, "group"),
		currency_sizes: sizesOf(longMoney),
		currency,
		currency_letters: currencyLetters,
		symbols: Object.fromEntries(symbols.filter(([code, symbol]) => code !== symbol)),
	};
}

/** What differs from the locale without its last part. */
function difference(data, base) {
	const changed = Object.entries(data).filter(
		([key, value]) => key !== "symbols" && JSON.stringify(value) !== JSON.stringify(base[key]),
	);
	const codes = [...new Set([...Object.keys(data.symbols), ...Object.keys(base.symbols)])].sort();
	const symbols = codes.filter((code) => data.symbols[code] !== base.symbols[code]);
	const own = symbols.map((code) => [code, data.symbols[code] ?? code]);
	return Object.fromEntries([...changed, ...(own.length > 0 ? [["symbols", Object.fromEntries(own)]] : [])]);
}

/** The value as JSON, with spaces and marks of direction that can be told apart. */
function escaped(value) {
	return JSON.stringify(value).replace(
		/[\u00a0\u00ad\u061c\u2000-\u200f\u2028-\u202f\u2060-\u206f]/g,
		(c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
	);
}

const all = new Map(availableLocales().map((locale) => [locale, dataOf(locale)]));
const locales = {};
for (const [locale, data] of all) {
	const base = all.get(locale.replace(/-[^-]+$/, ""));
	const own = locale.includes("-") && base ? difference(data, base) : data;
	if (Object.keys(own).length > 0) locales[locale] = own;
}
const decimals = Object.fromEntries(
	currencies
		.map((code) => [code, currencyFormat("en", code).resolvedOptions().maximumFractionDigits])
		.filter(([, digits]) => digits !== 2),
);
const lines = Object.entries(locales).map(([locale, data]) => `    ${JSON.stringify(locale)}: ${escaped(data)}`);
writeFileSync(
	new URL("locales.json", import.meta.url),
	`{\n  "cldr": "${process.versions.cldr}",\n  "decimals": ${JSON.stringify(decimals)},\n  "locales": {\n${lines.join(",\n")}\n  }\n}\n`,
);

/** Test cases: a number, as a string so that all its digits count, and the result. */
function* cases() {
	const tested =
		"en en-GB en-IN en-CA en-ZA de de-AT de-CH fr fr-CA fr-CH es es-MX it nl pt pt-PT pl sv nb da fi cs hu ru uk tr el he ar ar-EG fa hi bn ja ko zh zh-Hant th id vi";
	for (const locale of tested.split(" ")) {
		const plain = { signDisplay: "negative" };
		for (const number of [
			"0",
			"-0.0004",
			"0.5",
			"-7",
			"999.9995",
			"1234.5",
			"-12345",
			"1234567.891",
			"-98765432109876543210.5",
		])
			yield { locale, number, want: new Intl.NumberFormat(locale, plain).format(number) };
		for (const [min, max, grouping] of [
			[2, 2, "auto"],
			[0, 0, "auto"],
			[1, 4, false],
		]) {
			const options = { ...plain, minimumFractionDigits: min, maximumFractionDigits: max, useGrouping: grouping };
			const format = new Intl.NumberFormat(locale, options);
			for (const number of ["-1234.56785", "0.005", "-0.995", "9999.995"])
				yield { locale, number, min, max, ...(!grouping && { ungrouped: true }), want: format.format(number) };
		}
		for (const currency of ["USD", "EUR", "CHF", "INR", "JPY", "KWD"])
			for (const currencyDisplay of ["symbol", "code"]) {
				const format = new Intl.NumberFormat(locale, { ...plain, style: "currency", currency, currencyDisplay });
				for (const number of ["12", "-1234567.8955"])
					yield {
						locale,
						number,
						currency,
						...(currencyDisplay === "code" && { code: true }),
						want: format.format(number),
					};
			}
	}
}

const rows = [...cases()].map((one) => `  ${escaped(one)}`);
writeFileSync(new URL("testdata/intl.json", import.meta.url), `[\n${rows.join(",\n")}\n]\n`);
