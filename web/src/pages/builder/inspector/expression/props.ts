import type { Form } from "./missing";

export interface ExpressionFieldProps {
	label: string;
	value: string;
	onChange: (text: string) => void;
	/** From the root of the document. */
	pointer: string;
	form: Form;
	/** Multi-line. */
	lines?: boolean;
	autoFocus?: boolean;
	placeholder?: string;
}
