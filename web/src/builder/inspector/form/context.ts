import { createContext, useContext } from "react";
import { sentence } from "@/ui/sentence";

export interface FieldProblem {
	/** From the top of the document. */
	readonly pointer: string;
	readonly message: string;
}

/** What every field of a form needs to know. */
export interface FormState {
	readonly problems: readonly FieldProblem[];
	readonly readOnly: boolean;
}

export const FormContext = createContext<FormState>({ problems: [], readOnly: false });

/** What is wrong at a field; of a field without fields of its own also what is wrong inside it. */
export function useProblem(pointer: string, inside: boolean): string | undefined {
	const { problems } = useContext(FormContext);
	const here = problems.filter(
		(problem) => problem.pointer === pointer || (inside && problem.pointer.startsWith(`${pointer}/`)),
	);
	return here.length > 0 ? here.map((problem) => sentence(problem.message)).join(" ") : undefined;
}
