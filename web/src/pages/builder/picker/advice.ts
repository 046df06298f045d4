/** Advice for what people look for among the steps, but is done another way. */
interface Advice {
	readonly words: readonly string[];
	readonly text: string;
}

const advices: readonly Advice[] = [
	{
		words: ["try", "catch", "retry", "error", "failure", "fallback", "rescue"],
		text: "Every step can retry and handle its failures: select it, then open Retry or Error handling in its settings.",
	},
	{
		words: ["merge", "join", "sync", "gather"],
		text: "Any step can bring paths together: connect each of them to it, or choose them in its settings under Runs after.",
	},
	{
		words: ["parallel", "concurrent", "fork"],
		text: "Steps that come after the same step run in parallel: select that step and add a branch (Shift+A).",
	},
	{
		words: ["if", "condition", "filter"],
		text: "Any step can have a condition of its own: select it, then open Run when in its settings.",
	},
];

/** adviceFor returns how to do what the typed text names, if that is no step of its own. */
export function adviceFor(typed: string): string | undefined {
	const words = typed.toLowerCase().split(/\W+/);
	return advices.find((advice) => advice.words.some((word) => words.includes(word)))?.text;
}
