import type { Choice } from "./choices";

/** search returns the choices that match the text, best match first. Every word must match. */
export function search(choices: readonly Choice[], typed: string): Choice[] {
	const words = wordsOf(typed);
	if (words.length === 0) return [...choices];
	const scored = choices.flatMap((choice) => {
		const score = scoreOf(choice, words);
		return score === 0 ? [] : [{ choice, score }];
	});
	return scored.sort((a, b) => b.score - a.score).map(({ choice }) => choice);
}

/**
 * What a match is worth: the beginning of a name, then a keyword, then the rest of the name, then the description. A
 * word in the middle of a title, as in "Find tasks with a filter", says less about a choice than a keyword does.
 */
const beginning = { whole: 10, start: 6, inside: 2 };
const keyword = { whole: 8, start: 4, inside: 0 };
const rest = { whole: 5, start: 3, inside: 2 };
const description = { whole: 1, start: 1, inside: 0 };
/** What it adds if the typed text is all of the title, or all of a keyword: "merge" is more than merging a pull request. */
const exact = 3;

function scoreOf(choice: Choice, words: readonly string[]): number {
	// Of an operation, people see the name of the service; of an action of Stepmill, both parts of its name.
	const names = [choice.title, ...(choice.service ? [choice.service] : choice.key.split("."))].map(wordsOf);
	const keywords = (choice.keywords ?? []).map(wordsOf);
	const fields: [string[], Worth][] = [
		[names.flatMap(([first]) => first ?? []), beginning],
		[keywords.flat(), keyword],
		[[...names.flatMap(([, ...others]) => others), ...wordsOf(choice.key)], rest],
		[wordsOf(`${choice.summary} ${choice.group}`), description],
	];
	let score = 0;
	for (const word of words) {
		const best = Math.max(...fields.map(([among, worth]) => match(word, among, worth)));
		if (best === 0) return 0;
		score += best;
	}
	const all = words.join(" ");
	return [wordsOf(choice.title), ...keywords].some((one) => one.join(" ") === all) ? score + exact : score;
}

interface Worth {
	readonly whole: number;
	readonly start: number;
	readonly inside: number;
}

function match(word: string, among: readonly string[], worth: Worth): number {
	if (among.includes(word)) return worth.whole;
	if (among.some((one) => one.startsWith(word))) return worth.start;
	// Two letters are inside of too many words: "if" is in "Shopify".
	return word.length > 2 && among.some((one) => one.includes(word)) ? worth.inside : 0;
}

/** The words of a text in lower case, without a plural s: "emails" finds "email". */
function wordsOf(text: string): string[] {
	return text
		.toLowerCase()
		.split(/[^\p{L}\p{N}]+/u)
		.filter(Boolean)
		.map((word) => (word.length > 3 && !word.endsWith("ss") ? word.replace(/s$/, "") : word));
}
