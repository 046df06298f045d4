// Undo stores whole documents, which share their unchanged parts.

const maxSteps = 200;
const groupWithin = 500;

export interface History<T> {
	readonly past: readonly T[];
	readonly present: T;
	readonly future: readonly T[];
	/** The kind of the last change, to group continuous typing. */
	readonly group: string | null;
	readonly at: number;
}

export function startHistory<T>(present: T): History<T> {
	return { past: [], present, future: [], group: null, at: 0 };
}

/**
 * Records a change. Changes of the same group, such as typing in one field, form one undo
 * step if they are at most half a second apart.
 */
export function record<T>(history: History<T>, next: T, at: number, group: string | null = null): History<T> {
	if (next === history.present) return history;
	const typing = group !== null && group === history.group && at - history.at <= groupWithin;
	const past = typing && history.past.length > 0 ? history.past : [...history.past, history.present].slice(-maxSteps);
	return { past, present: next, future: [], group, at };
}

export function canUndo(history: History<unknown>): boolean {
	return history.past.length > 0;
}

export function canRedo(history: History<unknown>): boolean {
	return history.future.length > 0;
}

export function undo<T>(history: History<T>): History<T> {
	if (!canUndo(history)) return history;
	const present = history.past.at(-1) as T;
	return { past: history.past.slice(0, -1), present, future: [history.present, ...history.future], group: null, at: 0 };
}

export function redo<T>(history: History<T>): History<T> {
	if (!canRedo(history)) return history;
	const [present, ...future] = history.future as [T, ...T[]];
	return { past: [...history.past, history.present].slice(-maxSteps), present, future, group: null, at: 0 };
}
