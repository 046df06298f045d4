import type { ReactNode } from "react";
import { Button } from "./button";
import { CopyButton } from "./copy";
import { Dialog } from "./dialog";
import { inSentence } from "./sentence";

export interface OnceDialogProps {
	title: ReactNode;
	description?: ReactNode;
	/** The label of the value, such as "API key". */
	label: string;
	value: string;
	/** The label of the button that closes the dialog. */
	done?: string;
	onDone: () => void;
	/** Additional content below the value. */
	children?: ReactNode;
}

/**
 * OnceDialog shows a value that cannot be read again. Neither Escape nor a click outside
 * closes it: the user must confirm that they have saved the value.
 */
export function OnceDialog({
	title,
	description,
	label,
	value,
	done = "I have stored it",
	onDone,
	children,
}: OnceDialogProps) {
	return (
		<Dialog
			open
			locked
			onOpenChange={(open) => !open && onDone()}
			title={title}
			description={description}
			actions={
				<Button kind="primary" onClick={onDone}>
					{done}
				</Button>
			}
		>
			<Value label={label} value={value} />
			{children}
		</Dialog>
	);
}

function Value({ label, value }: { label: string; value: string }) {
	return (
		<div className="flex flex-col gap-2 rounded-8 border border-waiting/40 bg-waiting-soft p-3">
			<p className="text-waiting">Copy it now. It is not shown again.</p>
			<div className="flex items-center gap-2">
				<code
					// biome-ignore lint/a11y/noNoninteractiveTabindex: makes a long value scrollable by keyboard
					tabIndex={0}
					role="group"
					aria-label={label}
					className="min-w-0 flex-1 overflow-x-auto rounded-6 border bg-surface px-2 py-1.5 font-mono text-12 whitespace-nowrap"
				>
					{value}
				</code>
				<CopyButton value={value} label={`Copy ${inSentence(label)}`} />
			</div>
		</div>
	);
}
