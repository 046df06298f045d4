import { useEffect, useState } from "react";
import { Button, IconButton } from "./button";
import { CheckIcon, CopyIcon } from "./icons";
import { toast } from "./toast";

function useCopy(value: string | (() => string)) {
	const [done, setDone] = useState(false);
	useEffect(() => {
		if (!done) return undefined;
		const timer = setTimeout(() => setDone(false), 2_000);
		return () => clearTimeout(timer);
	}, [done]);
	const copy = async () => {
		try {
			await navigator.clipboard.writeText(typeof value === "string" ? value : value());
			setDone(true);
		} catch {
			toast.error(new Error("The browser did not allow copying. Select the text and copy it by hand."));
		}
	};
	return { done, copy };
}

export interface CopyButtonProps {
	value: string | (() => string);
	label?: string;
	/** Shows the label as text beside the icon. */
	text?: boolean;
}

export function CopyButton({ value, label = "Copy", text }: CopyButtonProps) {
	const { done, copy } = useCopy(value);
	const shape = done ? CheckIcon : CopyIcon;
	return (
		<>
			{text ? (
				<Button icon={shape} onClick={copy}>
					{done ? "Copied" : label}
				</Button>
			) : (
				<IconButton icon={shape} label={done ? "Copied" : label} small onClick={copy} />
			)}
			<span role="status" className="sr-only">
				{done ? "Copied" : ""}
			</span>
		</>
	);
}

/** SecretOnce shows a value that cannot be read again. */
export function SecretOnce({ label, value, children }: { label: string; value: string; children?: string }) {
	return (
		<div className="flex flex-col gap-2 rounded-8 border border-waiting/40 bg-waiting-soft p-3">
			<p className="text-waiting">{children ?? "Copy it now: it is shown only this once."}</p>
			<div className="flex items-center gap-2">
				<code
					// biome-ignore lint/a11y/noNoninteractiveTabindex: a long value is scrolled by keyboard
					tabIndex={0}
					role="group"
					aria-label={label}
					className="min-w-0 flex-1 overflow-x-auto rounded-6 border bg-surface px-2 py-1.5 font-mono text-12 whitespace-nowrap"
				>
					{value}
				</code>
				<CopyButton value={value} label={`Copy ${label.toLowerCase()}`} />
			</div>
		</div>
	);
}
