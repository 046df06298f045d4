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
			toast.error(new Error("The browser blocked copying. Select the text and copy it manually."));
		}
	};
	return { done, copy };
}

export interface CopyButtonProps {
	value: string | (() => string);
	label?: string;
	/** Shows the label next to the icon. */
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
