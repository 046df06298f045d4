import type { Json } from "@/shared/workflow/model";
import { type Form, isDynamic, type Known, missing } from "./missing";

// The previews of the expressions in a form. All mounted fields are evaluated together
// when typing pauses; outdated results are discarded.

export interface Ask {
	readonly text: string;
	readonly form: Form;
}

export type Question = { readonly expression: string } | { readonly template: string };

export type Answer =
	| { readonly valid: true; readonly value: Json; readonly type: string }
	| {
			readonly valid: false;
			readonly error: {
				readonly code: string;
				readonly message: string;
				readonly line: number;
				readonly column: number;
			};
	  };

export type Preview =
	/** There is no expression. */
	| { readonly state: "none" }
	/** The result is pending; `last` is the previous one. */
	| { readonly state: "asking"; readonly last?: Preview }
	| { readonly state: "value"; readonly value: Json; readonly type: string }
	/** What would have to run first. */
	| { readonly state: "missing"; readonly needs: readonly string[] }
	/** A mistake in the expression, independent of the data. */
	| { readonly state: "wrong"; readonly message: string; readonly line: number; readonly column: number }
	/** No value with this data: lists the steps that failed or were skipped, or else the error. */
	| { readonly state: "failed"; readonly steps: readonly string[]; readonly message: string }
	/** The server did not respond. */
	| { readonly state: "unknown" };

/** Interprets a result. Missing or unsuitable data is not a mistake in the expression. */
export function previewFor(ask: Ask, answer: Answer, known: Known): Preview {
	if (!answer.valid && answer.error.code === "expression_invalid") return wrong(answer.error);
	const needs = missing(ask.text, ask.form, known);
	if (needs.length > 0) return { state: "missing", needs };
	if (answer.valid) return { state: "value", value: answer.value, type: answer.type };
	return { state: "failed", steps: failedSteps(ask, known), message: answer.error.message };
}

/** The steps that an expression refers to and that did not succeed. */
function failedSteps({ text, form }: Ask, known: Known): string[] {
	const steps = new Set([...known.steps].filter((id) => !known.failed.has(id)));
	return missing(text, form, { ...known, steps }).map((need) => need.slice("steps.".length));
}

function wrong(error: { message: string; line: number; column: number }): Preview {
	return { state: "wrong", message: error.message, line: error.line, column: error.column };
}

export type Evaluate = (questions: readonly Question[], signal: AbortSignal) => Promise<readonly Answer[]>;

/** The maximum number of expressions per request. */
const maxBatch = 50;

const none: Preview = { state: "none" };

export class Previews {
	private readonly asks = new Map<string, Ask>();
	private readonly shown = new Map<string, Preview>();
	private readonly settled = new Map<string, Ask>();
	private readonly watchers = new Set<() => void>();
	private timer: ReturnType<typeof setTimeout> | undefined;
	private flight: AbortController | undefined;
	private evaluate: Evaluate;
	private known: Known;

	constructor(
		evaluate: Evaluate,
		known: Known,
		readonly rest = 250,
	) {
		this.evaluate = evaluate;
		this.known = known;
	}

	/** The data changed, so everything is evaluated again. */
	use(evaluate: Evaluate, known: Known): void {
		this.evaluate = evaluate;
		this.known = known;
		this.settled.clear();
		this.schedule();
	}

	ask(key: string, ask: Ask): void {
		const before = this.asks.get(key);
		if (before?.text === ask.text && before.form === ask.form) return;
		this.asks.set(key, ask);
		this.settled.delete(key);
		if (isDynamic(ask.text, ask.form)) this.show(key, asking(this.of(key)));
		else this.show(key, none);
		this.schedule();
	}

	forget(key: string): void {
		this.asks.delete(key);
		this.settled.delete(key);
		this.shown.delete(key);
	}

	of(key: string): Preview {
		return this.shown.get(key) ?? none;
	}

	readonly watch = (tell: () => void): (() => void) => {
		this.watchers.add(tell);
		return () => this.watchers.delete(tell);
	};

	stop(): void {
		clearTimeout(this.timer);
		this.flight?.abort();
	}

	private show(key: string, preview: Preview): void {
		this.shown.set(key, preview);
		for (const tell of this.watchers) tell();
	}

	private schedule(): void {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => void this.flush(), this.rest);
	}

	private async flush(): Promise<void> {
		this.flight?.abort();
		const flight = new AbortController();
		this.flight = flight;
		const open = [...this.asks].filter(([key, ask]) => !this.settled.has(key) && isDynamic(ask.text, ask.form));
		for (let i = 0; i < open.length; i += maxBatch) {
			const part = open.slice(i, i + maxBatch);
			try {
				const answers = await this.evaluate(
					part.map(([, ask]) => questionOf(ask)),
					flight.signal,
				);
				if (flight.signal.aborted) return;
				for (const [at, [key, ask]] of part.entries()) this.settle(key, ask, answers[at]);
			} catch {
				if (flight.signal.aborted) return;
				for (const [key, ask] of part) this.settle(key, ask, undefined);
			}
		}
	}

	private settle(key: string, ask: Ask, answer: Answer | undefined): void {
		if (this.asks.get(key) !== ask) return;
		this.settled.set(key, ask);
		this.show(key, answer ? previewFor(ask, answer, this.known) : { state: "unknown" });
	}
}

function questionOf(ask: Ask): Question {
	return ask.form === "bare" ? { expression: ask.text } : { template: ask.text };
}

function asking(last: Preview): Preview {
	const before = last.state === "asking" ? last.last : last;
	return before === undefined || before.state === "none" ? { state: "asking" } : { state: "asking", last: before };
}
