import type { ReactNode } from "react";
import { cx } from "./class";

type Tone = "neutral" | "accent" | "good" | "bad" | "warn";

const tones: Record<Tone, string> = {
	neutral: "bg-sunken text-muted",
	accent: "bg-accent-soft text-accent",
	good: "bg-succeeded-soft text-succeeded",
	bad: "bg-failed-soft text-failed",
	warn: "bg-waiting-soft text-waiting",
};

export function Badge({ tone = "neutral", children, mono }: { tone?: Tone; children: ReactNode; mono?: boolean }) {
	return (
		<span
			className={cx(
				"inline-flex h-5 max-w-full items-center gap-1 truncate rounded-6 px-1.5 text-12 font-medium whitespace-nowrap",
				mono && "font-mono",
				tones[tone],
			)}
		>
			{children}
		</span>
	);
}

export function Kbd({ children }: { children: ReactNode }) {
	return (
		<kbd className="inline-flex h-5 min-w-5 items-center justify-center rounded-6 border bg-sunken px-1 font-sans text-12 text-muted">
			{children}
		</kbd>
	);
}
