import { createContext, useCallback, useContext, useEffect, useSyncExternalStore } from "react";
import type { Scope } from "@/shared/workflow/expression/scope";
import type { Gathered } from "../../data/gather";
import type { Form } from "./missing";
import type { Preview, Previews } from "./preview";

/** The state shared by the expression fields of a form. */
export interface ExpressionState {
	readonly previews: Previews;
	readonly gathered: Gathered;
	/** The names available at a pointer. */
	readonly scope: (pointer: string) => Scope;
	/** The display name of a step. */
	readonly nameOf: (id: string) => string;
}

export const ExpressionContext = createContext<ExpressionState | null>(null);

export function useExpressions(): ExpressionState {
	const state = useContext(ExpressionContext);
	if (!state) throw new Error("There is nothing to evaluate expressions with here.");
	return state;
}

/** usePreview requests the value of an expression while its field is mounted. */
export function usePreview(pointer: string, text: string, form: Form): Preview {
	const { previews } = useExpressions();
	useEffect(() => previews.ask(pointer, { text, form }), [previews, pointer, text, form]);
	useEffect(() => () => previews.forget(pointer), [previews, pointer]);
	return useSyncExternalStore(
		previews.watch,
		useCallback(() => previews.of(pointer), [previews, pointer]),
	);
}
