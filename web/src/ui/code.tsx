import { cx } from "./class";
import { CopyButton } from "./copy";
import { inSentence } from "./sentence";

export interface CodeBlockProps {
	code: string;
	/** Read by screen readers. */
	label: string;
	wrap?: boolean;
	className?: string;
}

/** CodeBlock shows preformatted text with a copy button. */
export function CodeBlock({ code, label, wrap, className }: CodeBlockProps) {
	return (
		<div className={cx("relative rounded-8 border bg-sunken", className)}>
			<pre
				// biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
				tabIndex={0}
				// Not a region: a page can have many examples, and landmarks need names of their own.
				role="group"
				aria-label={label}
				className={cx(
					"max-h-96 overflow-auto py-3 pr-12 pl-3 font-mono text-12",
					wrap && "break-words whitespace-pre-wrap",
				)}
			>
				{code}
			</pre>
			<span className="absolute top-1.5 right-1.5">
				<CopyButton value={code} label={`Copy ${inSentence(label)}`} />
			</span>
		</div>
	);
}
