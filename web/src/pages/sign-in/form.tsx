import type { ReactNode } from "react";
import type { ApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { ErrorNote } from "@/ui/states";

export interface FormProps {
	/** The label of the button. */
	verb: string;
	busy: boolean;
	/** An error that no field shows. */
	error?: ApiError;
	onSubmit: () => void;
	children: ReactNode;
}

export function Form({ verb, busy, error, onSubmit, children }: FormProps) {
	return (
		<form
			noValidate
			onSubmit={(event) => {
				event.preventDefault();
				onSubmit();
			}}
			className="flex flex-col gap-4"
		>
			{children}
			{error && <ErrorNote error={error} />}
			<Button type="submit" kind="primary" busy={busy} className="mt-2 w-full">
				{verb}
			</Button>
		</form>
	);
}
