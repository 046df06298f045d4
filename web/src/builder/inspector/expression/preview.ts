import type { Json } from "@/builder/model";
import { type Form, isDynamic, type Known, missing } from "./missing";

// What the fields of the form show of their expressions. All fields that are on
// the page ask together, once typing rests; what is no longer asked for is not shown.

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
	/** The answer is on its way; `last` is what was there before. */
	| { readonly state: "asking"; readonly last?: Preview }
	| { readonly state: "value"; readonly value: Json; readonly type: string }
	/** What would have to run first. */
	| { readonly state: "missing"; readonly needs: readonly string[] }
	| { readonly state: "wrong"; readonly message: string; readonly line: number; readonly column: number }
	/** The server did not answer. */
	| { readonly state: "unknown" };

/** What an answer means. That data is missing is no mistake of the expression. */
export function judge(ask: Ask, answer: Answer, known: Known): Preview {
	if (!answer.valid && answer.error.code === "expression_invalid") return wrong(answer.error);
	const needs = missing(ask.text, ask.form, known);
	if (needs.length > 0) return { state: "missing", needs };
	return answer.valid ? { state: "value", value: answer.value, type: answer.type } : wrong(answer.error);
}

function wrong(error: { message: string; line: number; column: number }): Preview {
	return { state: "wrong", message: error.message, line: error.line, column: error.column };
}

export type Evaluate = (questions: readonly Question[], signal: AbortSignal) => Promise<readonly Answer[]>;

/** How many expressions the server takes at a time. */
const most = 50;

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

	/** Other data: everything is asked anew. */
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
		for (let i = 0; i < open.length; i += most) {
			const part = open.slice(i, i + most);
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
		this.show(key, answer ? judge(ask, answer, this.known) : { state: "unknown" });
	}
}

function questionOf(ask: Ask): Question {
	return ask.form === "bare" ? { expression: ask.text } : { template: ask.text };
}

function asking(last: Preview): Preview {
	const before = last.state === "asking" ? last.last : last;
	return before === undefined || before.state === "none" ? { state: "asking" } : { state: "asking", last: before };
}
