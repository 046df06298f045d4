import { createContext, useContext } from "react";
import { sentence } from "@/ui/sentence";

export interface FieldProblem {
	/** From the root of the document. */
	readonly pointer: string;
	readonly message: string;
}

/** The state shared by the fields of a form. */
export interface FormState {
	readonly problems: readonly FieldProblem[];
	readonly readOnly: boolean;
}

export const FormContext = createContext<FormState>({ problems: [], readOnly: false });

/** The problems of a field, and with `inside` also those inside it. */
export function useProblem(pointer: string, inside: boolean): string | undefined {
	const { problems } = useContext(FormContext);
	const here = problems.filter(
		(problem) => problem.pointer === pointer || (inside && problem.pointer.startsWith(`${pointer}/`)),
	);
	return here.length > 0 ? here.map((problem) => sentence(problem.message)).join(" ") : undefined;
}
