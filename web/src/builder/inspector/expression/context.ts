import { createContext, useCallback, useContext, useEffect, useSyncExternalStore } from "react";
import type { Scope } from "@/builder/expression/scope";
import type { Gathered } from "../../data/gather";
import type { Form } from "./missing";
import type { Preview, Previews } from "./preview";

/** What the expression fields of a form share. */
export interface ExpressionState {
	readonly previews: Previews;
	readonly gathered: Gathered;
	/** What can be named at a pointer. */
	readonly scope: (pointer: string) => Scope;
	/** What people call a step. */
	readonly nameOf: (id: string) => string;
}

export const ExpressionContext = createContext<ExpressionState | null>(null);

export function useExpressions(): ExpressionState {
	const state = useContext(ExpressionContext);
	if (!state) throw new Error("There is nothing to evaluate expressions with here.");
	return state;
}

/** usePreview asks for the value of a text for as long as its field is on the page. */
export function usePreview(pointer: string, text: string, form: Form): Preview {
	const { previews } = useExpressions();
	useEffect(() => previews.ask(pointer, { text, form }), [previews, pointer, text, form]);
	useEffect(() => () => previews.forget(pointer), [previews, pointer]);
	return useSyncExternalStore(
		previews.watch,
		useCallback(() => previews.of(pointer), [previews, pointer]),
	);
}
